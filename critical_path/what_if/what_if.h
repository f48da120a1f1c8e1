// What a run would be if: edits applied to a measured graph, and its schedule run again.
#ifndef CRITICAL_PATH_WHAT_IF_WHAT_IF_H_
#define CRITICAL_PATH_WHAT_IF_WHAT_IF_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"
#include "critical_path/what_if/schedule.h"
#include "critical_path/what_if/what_if_edits.h"

namespace meridian {

struct WhatIfResult {
  // With the new times (those of HTA's graphs stay, since its edges do not explain them), and
  // without what was removed.
  Schedule schedule;
  CriticalPath path;
  // For each edit the events, delays or edges that it was applied to.
  std::vector<int64_t> matched;
  // Events that start at another time than measured, last another time, or are new or removed.
  int64_t changed_events = 0;
};

// Applies the edits in order and runs the schedule again. HTA's graphs take scale, set, link and
// unlink only. Errors of an edit are InvalidArgument or FailedPrecondition with its line and column
// (what matches nothing, what removes everything, ...); FailedPrecondition also when events would
// wait for each other in a circle; OutOfRange for times beyond 13 days.
absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph& measured, const CriticalPath& path,
                                       bool hta_compatible, absl::Span<const WhatIfEdit> edits);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_WHAT_IF_H_
