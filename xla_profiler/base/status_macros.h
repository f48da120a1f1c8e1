#ifndef XLA_PROFILER_BASE_STATUS_MACROS_H_
#define XLA_PROFILER_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status from the enclosing function unless it is OK.
#define RETURN_IF_ERROR(expression)                    \
  do {                                                 \
    absl::Status meridian_status = (expression);       \
    if (!meridian_status.ok()) return meridian_status; \
  } while (false)

// ASSIGN_OR_RETURN(const Plane plane, ReadPlane(bytes)): declares or assigns the value, or returns
// the status from the enclosing function.
#define ASSIGN_OR_RETURN(lhs, expression) \
  MERIDIAN_ASSIGN_OR_RETURN_(MERIDIAN_CONCAT_(meridian_statusor_, __LINE__), lhs, expression)

#define MERIDIAN_ASSIGN_OR_RETURN_(statusor, lhs, expression) \
  auto statusor = (expression);                               \
  if (!statusor.ok()) return std::move(statusor).status();    \
  lhs = *std::move(statusor)

#define MERIDIAN_CONCAT_(a, b) MERIDIAN_CONCAT_INNER_(a, b)
#define MERIDIAN_CONCAT_INNER_(a, b) a##b

#endif  // XLA_PROFILER_BASE_STATUS_MACROS_H_
