#include "critical_path/what_if/duration_edits.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "critical_path/edge_index.h"
#include "critical_path/what_if/saturating_sum.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns value * numerator / denominator, rounded.
absl::int128 Proportion(absl::int128 value, absl::int128 numerator, absl::int128 denominator) {
  return (value * numerator + denominator / 2) / denominator;
}

bool IsOwnTime(const Schedule& schedule, const GraphEdge& edge) {
  return edge.event != kNoEvent && edge.bound_by != BoundBy::kNothing &&
         !DelayOf(schedule, edge).has_value();
}

// The part of an event's own time that ends in one node: the longest of the edges into it that are
// booked on the event.
struct OwnPart {
  GraphEventId event = kNoEvent;
  int64_t time_ps = 0;
};

// Calls visit(part, node) for each.
template <typename Visit>
void VisitOwnParts(const Schedule& schedule, const EdgeIndex& incoming, const Visit& visit) {
  std::vector<OwnPart> parts;
  for (NodeId node = 0; node < schedule.graph.nodes.size(); ++node) {
    parts.clear();
    for (EdgeId id : incoming.Of(node)) {
      const GraphEdge& edge = schedule.graph.edges[id];
      if (!IsOwnTime(schedule, edge)) continue;
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const OwnPart& p) { return p.event == edge.event; });
      if (part == parts.end()) part = parts.insert(part, {edge.event, 0});
      part->time_ps = std::max(part->time_ps, edge.weight_ps);
    }
    for (const OwnPart& part : parts) visit(part, node);
  }
}

// Gives the edges into a node that are an event's own time another length.
void ResizePart(const OwnPart& part, int64_t time_ps, absl::Span<const EdgeId> incoming,
                Schedule* schedule) {
  for (EdgeId id : incoming) {
    GraphEdge& edge = schedule->graph.edges[id];
    if (edge.event != part.event || !IsOwnTime(*schedule, edge)) continue;
    edge.weight_ps = part.time_ps == 0
                         ? time_ps
                         : static_cast<int64_t>(Proportion(edge.weight_ps, time_ps, part.time_ps));
  }
}

}  // namespace

std::vector<int64_t> OwnTimes(const Schedule& schedule) {
  const EdgeIndex incoming(schedule.graph, &GraphEdge::to);
  std::vector<int64_t> times_ps(schedule.graph.events.size());
  VisitOwnParts(schedule, incoming, [&](const OwnPart& part, NodeId) {
    times_ps[part.event] = SaturatingSum(times_ps[part.event], part.time_ps);
  });
  return times_ps;
}

absl::Status ScaleTimes(const Selection& selection, int64_t factor, Schedule* schedule) {
  for (GraphEdge& edge : schedule->graph.edges) {
    const bool is_meant = selection.delay.has_value()
                              ? DelayOf(*schedule, edge) == selection.delay &&
                                    selection.Contains(schedule->graph.nodes[edge.to].event)
                              : IsOwnTime(*schedule, edge) && selection.events[edge.event];
    if (!is_meant) continue;
    const absl::int128 scaled_ps = Proportion(edge.weight_ps, factor, kFactorOne);
    if (scaled_ps > std::numeric_limits<int64_t>::max()) {
      return absl::OutOfRangeError("a time would be longer than 106 days");
    }
    edge.weight_ps = static_cast<int64_t>(scaled_ps);
  }
  return absl::OkStatus();
}

absl::Status SetTimes(const Selection& selection, int64_t duration_ps, Schedule* schedule) {
  if (selection.delay.has_value()) {
    for (GraphEdge& edge : schedule->graph.edges) {
      const bool is_meant = DelayOf(*schedule, edge) == selection.delay &&
                            selection.Contains(schedule->graph.nodes[edge.to].event);
      if (is_meant) edge.weight_ps = duration_ps;
    }
    return absl::OkStatus();
  }
  std::vector<int64_t> durations_ps(schedule->graph.events.size(), -1);
  for (GraphEventId event : selection.ToVector()) durations_ps[event] = duration_ps;
  return SetOwnTimes(durations_ps, schedule);
}

absl::Status SetOwnTimes(const std::vector<int64_t>& durations_ps, Schedule* schedule) {
  const std::vector<int64_t> own_ps = OwnTimes(*schedule);
  const EdgeIndex incoming(schedule->graph, &GraphEdge::to);
  // How much of each event has been given out, before and after: rounding the sums instead of the
  // parts makes the parts add up.
  std::vector<int64_t> old_sum_ps(own_ps.size()), new_sum_ps(own_ps.size());
  std::vector<bool> has_part(own_ps.size());
  struct Resized {
    OwnPart part;
    NodeId node;
    int64_t time_ps;
  };
  std::vector<Resized> resized;
  VisitOwnParts(*schedule, incoming, [&](const OwnPart& part, NodeId node) {
    const GraphEventId event = part.event;
    if (durations_ps[event] < 0) return;
    // All the time of an event that had none goes to its end.
    if (own_ps[event] == 0 && node != schedule->end_nodes[event]) return;
    has_part[event] = true;
    old_sum_ps[event] = SaturatingSum(old_sum_ps[event], part.time_ps);
    const int64_t sum_ps = own_ps[event] == 0
                               ? durations_ps[event]
                               : static_cast<int64_t>(Proportion(
                                     old_sum_ps[event], durations_ps[event], own_ps[event]));
    resized.push_back({part, node, sum_ps - new_sum_ps[event]});
    new_sum_ps[event] = sum_ps;
  });
  for (GraphEventId event = 0; event < durations_ps.size(); ++event) {
    if (durations_ps[event] <= 0 || has_part[event]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("'", Printable(schedule->graph.EventName(event)), "' (event ",
                     schedule->graph.events[event].position, ") has no time of its own to set"));
  }
  for (const Resized& change : resized) {
    ResizePart(change.part, change.time_ps, incoming.Of(change.node), schedule);
  }
  return absl::OkStatus();
}

}  // namespace meridian
