// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went: the critical path across its ranks, who kept others waiting and
// why, what would help, and a timeline to see it on.
#ifndef PIPELINE_PATH_STAGE_H_
#define PIPELINE_PATH_STAGE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/xspace/device_work.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/job/job_analysis.h"
#include "report/run_report.pb.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct PathStageOptions {
  InputFileOptions input;
  // Whether all ranks are there with all their events, on clocks that are known. Otherwise nobody
  // is blamed, and nothing is asked what would help.
  bool can_compare_ranks = true;
  // Within what the clocks of the ranks are known; absent when nobody knows. Who is late by less is
  // not known to be.
  std::optional<double> clock_uncertainty_ms;
  // What if their links were as fast as the others' is asked, too.
  std::vector<CombinedLink> slow_links;
  // Called before each file is read; may be null.
  std::function<void(size_t position)> progress;
  // As in JobInput, and how much work a window has (VisitWindows).
  ProfiledRun* profiled = nullptr;
  size_t window_work = kWindowWork;
};

// Reads profiles of one run on one clock and fills in steps, path, blame, what_if, timeline, and of
// the run what steps take. Returns the run's graph, or of a long run that of the window in its middle.
// Errors are those of AnalyzeJob.
absl::StatusOr<PathGraph> DescribePath(FileSystem& file_system,
                                       const std::vector<std::string>& traces,
                                       const PathStageOptions& options, RunReport* report);

// Describes windows in the same way; `visit` calls both functions as VisitWindows does.
using WindowVisitor =
    absl::FunctionRef<absl::Status(absl::FunctionRef<absl::Status(JobWindow window)> describe,
                                   absl::FunctionRef<void(size_t number)> merge)>;
absl::StatusOr<PathGraph> DescribeWindows(WindowVisitor visit, const PathStageOptions& options,
                                          RunReport* report);

}  // namespace meridian

#endif  // PIPELINE_PATH_STAGE_H_
