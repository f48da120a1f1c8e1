// SPDX-License-Identifier: Apache-2.0
// What `compare` and `combine --baseline` have in common.
#ifndef TOOLS_COMPARED_RUNS_H_
#define TOOLS_COMPARED_RUNS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/command_line/flag.h"

namespace meridian {

extern Flag<std::string> FLAGS_max_regression;

// Returns the share that --max_regression names; nullopt when it is not given.
absl::StatusOr<std::optional<double>> MaxRegression();

// InvalidArgument when outputs would go to the folder of a run that is compared.
absl::Status CheckApart(const std::string& compared, const std::string& output_dir);

// Returns the report of a run, or of what `combine` made of it (ReportOfRun).
absl::StatusOr<RunReport> ComparedRunReport(const std::string& folder);

// Returns the exit code: that of a failed check for a step that takes longer by more than the share,
// that of bad input where the share is given and there are no steps.
int ComparisonExit(const Comparison& comparison, std::optional<double> max_regression);

}  // namespace meridian

#endif  // TOOLS_COMPARED_RUNS_H_
