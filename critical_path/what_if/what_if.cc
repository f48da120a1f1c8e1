#include "critical_path/what_if/what_if.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/event_index.h"
#include "critical_path/what_if/structure_edits.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Kind = WhatIfEdit::Kind;

bool NeedsOrder(Kind kind) {
  return kind != Kind::kScale && kind != Kind::kSet && kind != Kind::kLink && kind != Kind::kUnlink;
}

absl::StatusOr<GraphEventId> TheOnly(const Selection& selection, const Selector& selector) {
  if (selection.count == 1) return selection.ToVector().front();
  return absl::InvalidArgumentError(
      absl::StrCat(selector.text, " means ", selection.count,
                   " events; expected one, e.g. by event=N, its place in the trace file"));
}

// Returns to how many events, delays or edges the edit was applied.
absl::StatusOr<int64_t> ApplyEdit(const WhatIfEdit& edit, WhatIfGraph* edited) {
  if (NeedsOrder(edit.kind) && !edited->keeps_order()) {
    return absl::InvalidArgumentError(
        "HTA's graph does not keep the order of threads and streams; leave --hta_compatible out");
  }
  if (edit.kind == Kind::kLevel) return LevelRank(edit.subject.conditions[0].number, edited);
  const EventIndex index(*edited);
  const bool is_of_times = edit.kind == Kind::kScale || edit.kind == Kind::kSet;
  ASSIGN_OR_RETURN(const Selection selection,
                   is_of_times ? index.Select(edit.subject) : index.SelectEvents(edit.subject));
  Selection object;
  if (edit.object.has_value()) {
    ASSIGN_OR_RETURN(object, index.SelectEvents(*edit.object));
  }
  switch (edit.kind) {
    case Kind::kScale:
      RETURN_IF_ERROR(ScaleTimes(selection, edit.factor, edited));
      break;
    case Kind::kSet:
      RETURN_IF_ERROR(SetTimes(selection, edit.duration_ps, edited));
      break;
    case Kind::kRemove:
      return RemoveEvents(index, selection, edited);
    case Kind::kAdd:
      RETURN_IF_ERROR(AddEvents(edit.name, edit.duration_ps, selection, edited));
      break;
    case Kind::kLink: {
      ASSIGN_OR_RETURN(const GraphEventId from, TheOnly(selection, edit.subject));
      ASSIGN_OR_RETURN(const GraphEventId to, TheOnly(object, *edit.object));
      LinkEvents(from, to, edit.duration_ps, edited);
      break;
    }
    case Kind::kUnlink:
      return UnlinkEvents(selection, object, edited);
    case Kind::kMoveBefore:
    case Kind::kMoveAfter: {
      ASSIGN_OR_RETURN(const GraphEventId target, TheOnly(object, *edit.object));
      RETURN_IF_ERROR(
          MoveEvents(index, selection.ToVector(), target, edit.kind == Kind::kMoveBefore, edited));
      break;
    }
    case Kind::kOverlap:
      RETURN_IF_ERROR(
          OverlapEvents(selection, edit.object.has_value() ? &object : nullptr, edited));
      break;
    case Kind::kLevel:
      break;
  }
  return selection.count;
}

int64_t CountChanges(const PathGraph& measured, const WhatIfGraph& edited) {
  int64_t changed = 0;
  for (GraphEventId id = 0; id < edited.graph.events.size(); ++id) {
    const bool is_new = id >= measured.events.size();
    const bool is_removed = edited.start_instants[id] == kNoInstant;
    if (is_new || is_removed) {
      // An event that was added and removed again is no change.
      if (!is_new || !is_removed) ++changed;
      continue;
    }
    const GraphEvent &before = measured.events[id], &after = edited.graph.events[id];
    if (before.start_ps != after.start_ps || before.duration_ps != after.duration_ps) ++changed;
  }
  return changed;
}

// Sums of a few times below this do not overflow.
constexpr int64_t kLimitPs = int64_t{1} << 60;

// Saved graphs are checked when they are read, but traces may hold any number, too. Edits add edges
// and instants, whose numbers must not run out.
absl::Status CheckSizeAndTimes(const PathGraph& graph) {
  if (graph.instants.size() > kNoInstant / 2 || graph.edges.size() > kNoEdge / 2) {
    return absl::OutOfRangeError("the graph has too many edges to be run again");
  }
  const auto fits = [](int64_t time_ps) { return -kLimitPs < time_ps && time_ps < kLimitPs; };
  bool all_fit = fits(graph.window_start_ps) && fits(graph.window_end_ps);
  for (const Instant& instant : graph.instants) all_fit = all_fit && fits(instant.time_ps);
  for (const GraphEvent& event : graph.events) {
    all_fit = all_fit && fits(event.start_ps) && fits(event.duration_ps);
  }
  return all_fit ? absl::OkStatus()
                 : absl::OutOfRangeError("the graph's times span more than 13 days");
}

}  // namespace

absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph& measured, const CriticalPath& path,
                                       bool hta_compatible, absl::Span<const WhatIfEdit> edits) {
  RETURN_IF_ERROR(CheckSizeAndTimes(measured));
  WhatIfResult result;
  result.edited =
      hta_compatible ? MakeHtaWhatIfGraph(measured, path) : MakeWhatIfGraph(measured, path);
  for (const WhatIfEdit& edit : edits) {
    const absl::StatusOr<int64_t> matched = ApplyEdit(edit, &result.edited);
    if (!matched.ok()) {
      return Annotate(matched.status(), absl::StrCat(edit.line, ":", edit.column, ": ", edit.text));
    }
    result.matched.push_back(*matched);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> times_ps, EarliestTimes(result.edited.graph));
  if (*std::max_element(times_ps.begin(), times_ps.end()) >= kLimitPs) {
    return absl::OutOfRangeError("the edited run lasts longer than 13 days");
  }
  if (!hta_compatible) {
    PutTimes(times_ps, &result.edited);
    result.changed_events = CountChanges(measured, result.edited);
    DropRemoved(&result.edited);
  }
  ASSIGN_OR_RETURN(result.path, FindLongestPath(result.edited.graph));
  return result;
}

}  // namespace meridian
