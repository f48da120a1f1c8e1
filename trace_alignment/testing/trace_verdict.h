// SPDX-License-Identifier: Apache-2.0
// Whether the profiles of one run, one file per node, keep happens-before.
#ifndef TRACE_ALIGNMENT_TESTING_TRACE_VERDICT_H_
#define TRACE_ALIGNMENT_TESTING_TRACE_VERDICT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct TraceVerdict {
  // No collective violates happens-before, and at least one could have.
  bool holds = false;
  // The report as text for people.
  std::string report;
};

inline absl::StatusOr<TraceVerdict> CheckTraces(const std::vector<std::string>& traces) {
  ASSIGN_OR_RETURN(const CollectiveRun run, ReadCollectiveRun(FileSystem::Posix(), traces));
  const ValidationReport report = Validate(run);
  return TraceVerdict{report.checked() > 0 && report.violations() == 0, FormatValidation(report)};
}

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_TRACE_VERDICT_H_
