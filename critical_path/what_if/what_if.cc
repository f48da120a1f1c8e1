#include "critical_path/what_if/what_if.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/selection.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Kind = WhatIfEdit::Kind;

// Returns to how many events or delays the edit was applied. Counterparts are found when an edit is the
// first to need them.
absl::StatusOr<int64_t> ApplyEdit(const WhatIfEdit& edit,
                                  std::optional<RankCounterparts>* counterparts,
                                  WhatIfGraph* edited) {
  if (edit.kind == Kind::kLevel) {
    if (!counterparts->has_value()) counterparts->emplace(*edited);
    return LevelRank(edit.subject.conditions[0].number, **counterparts, edited);
  }
  ASSIGN_OR_RETURN(const Selection selection, Select(*edited, edit.subject));
  RETURN_IF_ERROR(edit.kind == Kind::kScale ? ScaleTimes(selection, edit.factor, edited)
                                            : SetTimes(selection, edit.duration_ps, edited));
  return selection.count;
}

}  // namespace

WhatIfRun::WhatIfRun(const PathGraph& measured, const CriticalPath& path, bool hta_compatible)
    : measured_(measured),
      hta_compatible_(hta_compatible),
      order_(absl::OutOfRangeError("the graph's times span more than 13 days")) {
  if (!TimesFit(measured)) return;
  result_.edited =
      hta_compatible ? MakeHtaWhatIfGraph(measured, path) : MakeWhatIfGraph(measured, path);
  order_ = PathOrder::Create(result_.edited.graph);
  weights_ps_.reserve(result_.edited.graph.edges.size());
  for (const GraphEdge& edge : result_.edited.graph.edges) weights_ps_.push_back(edge.weight_ps);
}

void WhatIfRun::Restore() {
  if (!std::exchange(is_edited_, true)) return;
  PathGraph& graph = result_.edited.graph;
  for (EdgeId id = 0; id < graph.edges.size(); ++id) graph.edges[id].weight_ps = weights_ps_[id];
  graph.instants = measured_.instants;
  graph.events = measured_.events;
  graph.window_end_ps = measured_.window_end_ps;
  result_.matched.clear();
}

absl::StatusOr<const WhatIfResult*> WhatIfRun::Ask(absl::Span<const WhatIfEdit> edits) {
  RETURN_IF_ERROR(order_.status());
  Restore();
  for (const WhatIfEdit& edit : edits) {
    const absl::StatusOr<int64_t> matched = ApplyEdit(edit, &counterparts_, &result_.edited);
    if (!matched.ok()) return Annotate(matched.status(), edit.text);
    result_.matched.push_back(*matched);
  }
  const PathGraph& graph = result_.edited.graph;
  ASSIGN_OR_RETURN(const LongestPaths paths, FindLongestPaths(graph, *order_));
  if (*absl::c_max_element(paths.lengths_ps) >= kTimeLimitPs) {
    return absl::OutOfRangeError("the edited run lasts longer than 13 days");
  }
  ASSIGN_OR_RETURN(result_.path, LongestPathOf(graph, paths));
  if (!hta_compatible_) PutTimes(paths.lengths_ps, &result_.edited);
  return &result_;
}

absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph& measured, const CriticalPath& path,
                                       bool hta_compatible, absl::Span<const WhatIfEdit> edits) {
  WhatIfRun run(measured, path, hta_compatible);
  RETURN_IF_ERROR(run.Ask(edits).status());
  return std::move(run.result_);
}

}  // namespace meridian
