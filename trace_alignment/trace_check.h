// Happens-before of a run's profiles as a verdict: what happens_before_test.bzl asks for.
#ifndef TRACE_ALIGNMENT_TRACE_CHECK_H_
#define TRACE_ALIGNMENT_TRACE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct TraceVerdict {
  // No collective violates happens-before, and at least one could have.
  bool holds = false;
  // For people.
  std::string report;
};

// `traces` are the profiles of one run, one per node. Errors are those of damaged files.
absl::StatusOr<TraceVerdict> CheckTraces(FileSystem& file_system,
                                         const std::vector<std::string>& traces);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TRACE_CHECK_H_
