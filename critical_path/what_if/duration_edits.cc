#include "critical_path/what_if/duration_edits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_join.h"
#include "critical_path/graph/path_graph.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns value * numerator / denominator, rounded.
absl::int128 Proportion(absl::int128 value, absl::int128 numerator, absl::int128 denominator) {
  return (value * numerator + denominator / 2) / denominator;
}

// Returns what a part becomes when the whole does; of a whole without time it becomes all.
int64_t Rescaled(int64_t part_ps, int64_t whole_ps, int64_t new_whole_ps) {
  return whole_ps == 0 ? new_whole_ps
                       : static_cast<int64_t>(Proportion(part_ps, new_whole_ps, whole_ps));
}

bool IsOwnTime(const WhatIfGraph& edited, const GraphEdge& edge) {
  return edge.event != kNoEvent && edge.bound_by != BoundBy::kNothing &&
         !DelayOf(edited, edge).has_value();
}

// The part of an event's own time that ends in one instant: the longest of the edges into it that
// are booked on the event.
struct OwnPart {
  GraphEventId event = kNoEvent;
  int64_t time_ps = 0;
};

// Calls visit(part, instant, edges) for each part of the own times of the events that are wanted, with
// all edges into the instant in which the part ends.
template <typename Wants, typename Visit>
void VisitOwnParts(const WhatIfGraph& edited, const EdgesByInstant& incoming, const Wants& wants,
                   const Visit& visit) {
  std::vector<OwnPart> parts;
  for (InstantId instant = 0; instant < edited.graph.instants.size(); ++instant) {
    parts.clear();
    for (EdgeId id : incoming.Of(instant)) {
      const GraphEdge& edge = edited.graph.edges[id];
      if (edge.event == kNoEvent || !wants(edge.event) || !IsOwnTime(edited, edge)) continue;
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const OwnPart& p) { return p.event == edge.event; });
      if (part == parts.end()) part = parts.insert(part, {edge.event, 0});
      part->time_ps = std::max(part->time_ps, edge.weight_ps);
    }
    for (const OwnPart& part : parts) visit(part, instant, incoming.Of(instant));
  }
}

std::vector<int64_t> OwnTimes(const WhatIfGraph& edited, const EdgesByInstant& incoming) {
  std::vector<int64_t> times_ps(edited.graph.events.size());
  VisitOwnParts(
      edited, incoming, [](GraphEventId) { return true; },
      [&](const OwnPart& part, InstantId, absl::Span<const EdgeId>) {
        times_ps[part.event] = SaturatingSum(times_ps[part.event], part.time_ps);
      });
  return times_ps;
}

// Gives the events these own times, by event; a negative one leaves an event as it is.
absl::Status SetOwnTimes(const std::vector<int64_t>& durations_ps,
                         const std::vector<int64_t>& own_ps, const EdgesByInstant& incoming,
                         WhatIfGraph* edited) {
  // By event: the sum of the parts visited so far, with the old and with the new times. Rounding
  // the sums instead of the parts makes the parts add up.
  std::vector<int64_t> old_sum_ps(own_ps.size()), new_sum_ps(own_ps.size());
  std::vector<bool> has_part(own_ps.size());
  const auto resize = [&](const OwnPart& part, InstantId instant, absl::Span<const EdgeId> edges) {
    const GraphEventId event = part.event;
    // All the time of an event that had none goes to its end.
    if (own_ps[event] == 0 && instant != edited->end_instants[event]) return;
    has_part[event] = true;
    old_sum_ps[event] = SaturatingSum(old_sum_ps[event], part.time_ps);
    const int64_t sum_ps = Rescaled(old_sum_ps[event], own_ps[event], durations_ps[event]);
    const int64_t time_ps = sum_ps - std::exchange(new_sum_ps[event], sum_ps);
    for (EdgeId id : edges) {
      GraphEdge& edge = edited->graph.edges[id];
      if (edge.event != event || !IsOwnTime(*edited, edge) || edited->IsFrozen(edge)) continue;
      edge.weight_ps = Rescaled(edge.weight_ps, part.time_ps, time_ps);
    }
  };
  VisitOwnParts(
      *edited, incoming, [&](GraphEventId event) { return durations_ps[event] >= 0; }, resize);
  for (GraphEventId event = 0; event < durations_ps.size(); ++event) {
    if (durations_ps[event] <= 0 || has_part[event]) continue;
    return FailedPrecondition("'", Printable(edited->graph.EventName(event)), "' (event ",
                              edited->graph.events[event].position,
                              ") has no time of its own to set");
  }
  return absl::OkStatus();
}

// The events of each rank that have instants, in the order of their starts.
using EventsByRank = std::map<int64_t, std::vector<GraphEventId>>;

EventsByRank FindEventsByRank(const WhatIfGraph& edited) {
  EventsByRank by_rank;
  for (GraphEventId id = 0; id < edited.graph.events.size(); ++id) {
    if (edited.start_instants[id] != kNoInstant) by_rank[edited.RankOf(id)].push_back(id);
  }
  for (auto& [rank, events] : by_rank) {
    std::sort(events.begin(), events.end(), [&](GraphEventId a, GraphEventId b) {
      return std::make_pair(edited.graph.events[a].start_ps, a) <
             std::make_pair(edited.graph.events[b].start_ps, b);
    });
  }
  return by_rank;
}

// Returns by lane what is the same place on other ranks: the devices, or the n-th of the host's
// threads in the order in which these began. Stages of a pipeline take forward and backward passes,
// which are on two threads, in different orders.
std::vector<int64_t> FindPlaces(const WhatIfGraph& edited, const EventsByRank& by_rank) {
  constexpr int64_t kNoPlace = -1, kDevice = 0;
  std::vector<int64_t> places(edited.graph.lanes.size(), kNoPlace);
  for (const auto& [rank, events] : by_rank) {
    int64_t threads = 0;
    for (const GraphEventId id : events) {
      int64_t& place = places[edited.LaneOf(id)];
      if (place == kNoPlace) place = edited.IsOnDevice(id) ? kDevice : ++threads;
    }
  }
  return places;
}

// Lowers each delay before an event to the median of those before its counterparts.
void LevelDelays(GraphEventId event, absl::Span<const GraphEventId> counterparts,
                 const EdgesByInstant& incoming, WhatIfGraph* edited) {
  std::vector<GraphEdge>& edges = edited->graph.edges;
  for (EdgeId lowered : incoming.Of(edited->start_instants[event])) {
    const std::optional<Delay> delay = DelayOf(*edited, edges[lowered]);
    if (!delay.has_value() || edited->IsFrozen(edges[lowered])) continue;
    std::vector<int64_t> times_ps;
    for (GraphEventId counterpart : counterparts) {
      std::optional<int64_t> time_ps;
      for (EdgeId id : incoming.Of(edited->start_instants[counterpart])) {
        if (DelayOf(*edited, edges[id]) != delay) continue;
        time_ps = std::max(time_ps.value_or(0), edges[id].weight_ps);
      }
      if (time_ps.has_value()) times_ps.push_back(*time_ps);
    }
    if (times_ps.empty()) continue;
    edges[lowered].weight_ps = std::min(edges[lowered].weight_ps, LowerMedian(std::move(times_ps)));
  }
}

}  // namespace

std::vector<int64_t> OwnTimes(const WhatIfGraph& edited) {
  return OwnTimes(edited, EdgesByInstant(edited.graph, &GraphEdge::to));
}

absl::Status ScaleTimes(const Selection& selection, int64_t factor, WhatIfGraph* edited) {
  for (GraphEdge& edge : edited->graph.edges) {
    const bool is_meant = selection.delay.has_value()
                              ? IsSelectedDelay(*edited, selection, edge)
                              : IsOwnTime(*edited, edge) && selection.events[edge.event];
    if (!is_meant || edited->IsFrozen(edge)) continue;
    const absl::int128 scaled_ps = Proportion(edge.weight_ps, factor, kFactorOne);
    if (scaled_ps > std::numeric_limits<int64_t>::max()) {
      return absl::OutOfRangeError("a time would be longer than 106 days");
    }
    edge.weight_ps = static_cast<int64_t>(scaled_ps);
  }
  return absl::OkStatus();
}

absl::Status SetTimes(const Selection& selection, int64_t duration_ps, WhatIfGraph* edited) {
  if (selection.delay.has_value()) {
    for (GraphEdge& edge : edited->graph.edges) {
      if (!edited->IsFrozen(edge) && IsSelectedDelay(*edited, selection, edge)) {
        edge.weight_ps = duration_ps;
      }
    }
    return absl::OkStatus();
  }
  std::vector<int64_t> durations_ps(edited->graph.events.size(), -1);
  for (GraphEventId event = 0; event < durations_ps.size(); ++event) {
    if (selection.events[event]) durations_ps[event] = duration_ps;
  }
  const EdgesByInstant incoming(edited->graph, &GraphEdge::to);
  return SetOwnTimes(durations_ps, OwnTimes(*edited, incoming), incoming, edited);
}

RankCounterparts::RankCounterparts(const WhatIfGraph& measured)
    : incoming_(measured.graph, &GraphEdge::to), numbers_(measured.graph.events.size(), kNone) {
  using Op = std::tuple<int64_t, NameId, int64_t>;
  const EventsByRank by_rank = FindEventsByRank(measured);
  const std::vector<int64_t> places = FindPlaces(measured, by_rank);
  absl::flat_hash_map<std::pair<Op, uint32_t>, uint32_t> numbers;
  for (const auto& [rank, events] : by_rank) {
    absl::flat_hash_map<Op, uint32_t> seen;
    for (const GraphEventId id : events) {
      const GraphEvent& event = measured.graph.events[id];
      const Op op(event.step, event.name, places[measured.LaneOf(id)]);
      const uint32_t next = static_cast<uint32_t>(numbers.size());
      numbers_[id] = numbers.try_emplace({op, seen[op]++}, next).first->second;
    }
  }
  events_ = Buckets<GraphEventId>(numbers.size(), [&](const auto& visit) {
    for (GraphEventId id = 0; id < numbers_.size(); ++id) {
      if (numbers_[id] != kNone) visit(numbers_[id], id);
    }
  });
}

absl::StatusOr<int64_t> LevelRank(int64_t rank, WhatIfGraph* edited) {
  return LevelRank(rank, RankCounterparts(*edited), edited);
}

absl::StatusOr<int64_t> LevelRank(int64_t rank, const RankCounterparts& counterparts,
                                  WhatIfGraph* edited) {
  std::set<int64_t> ranks;
  for (const Lane& lane : edited->graph.lanes) ranks.insert(lane.rank);
  if (ranks.count(rank) == 0 || ranks.size() < 2) {
    return InvalidArgument("rank ", rank, " cannot be levelled with others; there are the ranks ",
                           absl::StrJoin(ranks, ", "), "; traces of several ranks are needed");
  }
  const std::vector<bool> communicates = FindCommunication(*edited);
  const EdgesByInstant& incoming = counterparts.incoming();
  const std::vector<int64_t> own_ps = OwnTimes(*edited, incoming);
  // By event: its own time after levelling; -1 when it stays.
  std::vector<int64_t> new_own_ps(own_ps.size(), -1);
  int64_t matched = 0;
  std::vector<GraphEventId> others;
  for (GraphEventId mine = 0; mine < own_ps.size(); ++mine) {
    if (edited->RankOf(mine) != rank) continue;
    others.clear();
    for (const GraphEventId other : counterparts.Of(mine)) {
      if (other != mine) others.push_back(other);
    }
    if (others.empty()) continue;
    ++matched;
    if (!communicates[mine]) {
      std::vector<int64_t> times_ps;
      for (GraphEventId other : others) times_ps.push_back(own_ps[other]);
      const int64_t median_ps = LowerMedian(std::move(times_ps));
      if (median_ps < own_ps[mine]) new_own_ps[mine] = median_ps;
    }
    LevelDelays(mine, others, incoming, edited);
  }
  if (matched == 0) return InvalidArgument("no event of rank ", rank, " occurs on another rank");
  RETURN_IF_ERROR(SetOwnTimes(new_own_ps, own_ps, incoming, edited));
  return matched;
}

}  // namespace meridian
