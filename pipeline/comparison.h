// SPDX-License-Identifier: Apache-2.0
// What is different between two runs, and what is not: what steps of one run differ by among themselves
// is no difference.
//
//   before   |== compute ==|=== exposed communication ===|
//   after    |== compute ==|====== exposed communication ======|
//                           + 45 ms: the same transfers take 1.5 times as long
//
// Steps are compared by their mean, since the means of the parts of their critical path add up to it;
// operations by the median of their steps.
#ifndef PIPELINE_COMPARISON_H_
#define PIPELINE_COMPARISON_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "report/comparison.pb.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// `before` and `after` of the result are the reports' titles.
Comparison CompareRuns(const RunReport& before, const RunReport& after);

// Returns the answer for a terminal: the headline, the parts of a step, what changed most.
std::string ComparisonText(const Comparison& comparison);

// Reports stay readable with so many operations; the longest stay.
inline constexpr size_t kMostOperations = 300;

// Returns whether a step takes longer by more than the share of what it took, and not by chance.
bool IsRegression(const Comparison& comparison, double share);

// Returns the report that `combine` left in the folder; NotFound when there is none there.
absl::StatusOr<RunReport> ReadRunReport(FileSystem& file_system, const std::string& folder);

// How far the means of two runs of the same kind may differ by chance, from the values of their steps:
// once in a hundred comparisons they differ more. At least what the halves of a run differ by. Absent
// with fewer than two steps in a run.
std::optional<double> NoiseOfMeans(absl::Span<const double> before, absl::Span<const double> after);

}  // namespace meridian

#endif  // PIPELINE_COMPARISON_H_
