// SPDX-License-Identifier: Apache-2.0
// What a run would be if: edits applied to a measured graph, which is then run again.
#ifndef CRITICAL_PATH_WHAT_IF_WHAT_IF_H_
#define CRITICAL_PATH_WHAT_IF_WHAT_IF_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/what_if_edits.h"
#include "critical_path/what_if/what_if_graph.h"

namespace meridian {

struct WhatIfResult {
  // The edited graph with its new times. HTA's graphs keep their times, since their edges do not
  // explain them.
  WhatIfGraph edited;
  CriticalPath path;
  // By edit: how many events or delays it was applied to.
  std::vector<int64_t> matched;
};

// A run that several questions are asked about. What they share is made once, and one graph serves
// all of them.
class WhatIfRun {
 public:
  // Keeps a reference to the measured graph.
  WhatIfRun(const PathGraph& measured, const CriticalPath& path, bool hta_compatible);

  // As RunWhatIf; the result lasts until the next question.
  absl::StatusOr<const WhatIfResult*> Ask(absl::Span<const WhatIfEdit> edits);

 private:
  friend absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph&, const CriticalPath&, bool,
                                                absl::Span<const WhatIfEdit>);
  // Takes the last question's edits and times back.
  void Restore();

  const PathGraph& measured_;
  const bool hta_compatible_;
  bool is_edited_ = false;
  WhatIfResult result_;
  // The times of the edges without edits, in ps.
  std::vector<int64_t> weights_ps_;
  absl::StatusOr<PathOrder> order_;
  // Absent until an edit needs them.
  std::optional<RankCounterparts> counterparts_;
};

// Applies the edits in order and runs the graph again. Errors of an edit are InvalidArgument or
// FailedPrecondition with its text (what matches nothing, ...); OutOfRange for times
// beyond 13 days.
absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph& measured, const CriticalPath& path,
                                       bool hta_compatible, absl::Span<const WhatIfEdit> edits);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_WHAT_IF_H_
