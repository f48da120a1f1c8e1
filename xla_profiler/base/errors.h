// SPDX-License-Identifier: Apache-2.0
// What to do when something is wrong. Our own mistakes stop the program (MERIDIAN_CHECK); whatever
// input and environment can do is an absl::Status, and goes up with RETURN_IF_ERROR and
// ASSIGN_OR_RETURN until a command turns it into its exit code.
//
// Libraries choose the code of a status by who has to act:
//   2  the user: wrong flag or input (InvalidArgument, NotFound, AlreadyExists, OutOfRange,
//      FailedPrecondition, Unimplemented, DataLoss)
//   3  the environment: I/O error, disk full, no permission, missing program, time-out (all other)
#ifndef XLA_PROFILER_BASE_ERRORS_H_
#define XLA_PROFILER_BASE_ERRORS_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Stops the program, in every build, when the condition does not hold.
#define MERIDIAN_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

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

namespace meridian {

inline constexpr int kExitDone = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitEnvironment = 3;

// Returns kExitDone for OK, else kExitBadInput or kExitEnvironment as listed above.
int ExitCode(const absl::Status& status);

// Return an error whose message is the parts, joined as absl::StrCat does.
template <typename... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status FailedPrecondition(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status NotFound(const Parts&... parts) {
  return absl::NotFoundError(absl::StrCat(parts...));
}

// Returns the status with "context: " in front of its message, unless that is there; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);
template <typename T>
absl::StatusOr<T> Annotate(absl::StatusOr<T> result, absl::string_view context) {
  if (result.ok()) return result;
  return Annotate(result.status(), context);
}

// Returns the status of a failed system call, e.g. "out/a.pb: No space left on device". A missing
// file is NotFound (the user named it); a full disk, quota or I/O error is the environment's.
absl::Status ErrnoToStatus(int error_number, absl::string_view context);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_ERRORS_H_
