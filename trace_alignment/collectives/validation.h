// SPDX-License-Identifier: Apache-2.0
// The happens-before check of a run as a report, and as the verdict that happens_before_test.bzl
// asks for.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
#define TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ValidationReport;

// Checks happens-before of every instance of the run's table. The worst violations come first.
ValidationReport Validate(const CollectiveRun& run);

// Returns the report as text for people.
std::string FormatValidation(const ValidationReport& report);

// Returns the violations as comma-separated values with a title line.
std::string ValidationCsv(const ValidationReport& report);

struct TraceVerdict {
  // No collective violates happens-before, and at least one could have.
  bool holds = false;
  // The report as text for people.
  std::string report;
};

// Judges the profiles of one run, one file per node. Errors are those of damaged files.
absl::StatusOr<TraceVerdict> CheckTraces(FileSystem& file_system,
                                         const std::vector<std::string>& traces);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_VALIDATION_H_
