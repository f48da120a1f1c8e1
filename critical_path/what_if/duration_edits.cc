#include "critical_path/what_if/duration_edits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/event_index.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
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

// The part of an event's own time that ends in one instant: the longest of the edges into it that
// are booked on the event.
struct OwnPart {
  GraphEventId event = kNoEvent;
  int64_t time_ps = 0;
};

// Calls visit(part, instant) for each part of each event's own time.
template <typename Visit>
void VisitOwnParts(const Schedule& schedule, const EdgesByInstant& incoming, const Visit& visit) {
  std::vector<OwnPart> parts;
  for (InstantId instant = 0; instant < schedule.graph.instants.size(); ++instant) {
    parts.clear();
    for (EdgeId id : incoming.Of(instant)) {
      const GraphEdge& edge = schedule.graph.edges[id];
      if (!IsOwnTime(schedule, edge)) continue;
      auto part = std::find_if(parts.begin(), parts.end(),
                               [&](const OwnPart& p) { return p.event == edge.event; });
      if (part == parts.end()) part = parts.insert(part, {edge.event, 0});
      part->time_ps = std::max(part->time_ps, edge.weight_ps);
    }
    for (const OwnPart& part : parts) visit(part, instant);
  }
}

// Gives a part another length: the edges into its instant that are booked on the event.
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

// Gives the events these own times, by event; a negative one leaves an event as it is.
absl::Status SetOwnTimes(const std::vector<int64_t>& durations_ps, Schedule* schedule) {
  const std::vector<int64_t> own_ps = OwnTimes(*schedule);
  const EdgesByInstant incoming(schedule->graph, &GraphEdge::to);
  // By event: the sum of the parts visited so far, with the old and with the new times. Rounding
  // the sums instead of the parts makes the parts add up.
  std::vector<int64_t> old_sum_ps(own_ps.size()), new_sum_ps(own_ps.size());
  std::vector<bool> has_part(own_ps.size());
  struct Resized {
    OwnPart part;
    InstantId instant;
    int64_t time_ps;
  };
  std::vector<Resized> resized;
  VisitOwnParts(*schedule, incoming, [&](const OwnPart& part, InstantId instant) {
    const GraphEventId event = part.event;
    if (durations_ps[event] < 0) return;
    // All the time of an event that had none goes to its end.
    if (own_ps[event] == 0 && instant != schedule->end_instants[event]) return;
    has_part[event] = true;
    old_sum_ps[event] = SaturatingSum(old_sum_ps[event], part.time_ps);
    const int64_t sum_ps = own_ps[event] == 0
                               ? durations_ps[event]
                               : static_cast<int64_t>(Proportion(
                                     old_sum_ps[event], durations_ps[event], own_ps[event]));
    resized.push_back({part, instant, sum_ps - new_sum_ps[event]});
    new_sum_ps[event] = sum_ps;
  });
  for (GraphEventId event = 0; event < durations_ps.size(); ++event) {
    if (durations_ps[event] <= 0 || has_part[event]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("'", Printable(schedule->graph.EventName(event)), "' (event ",
                     schedule->graph.events[event].position, ") has no time of its own to set"));
  }
  for (const Resized& change : resized) {
    ResizePart(change.part, change.time_ps, incoming.Of(change.instant), schedule);
  }
  return absl::OkStatus();
}

constexpr int kNumDelays = 3;

// What makes events of different ranks counterparts: name, kind of lane, and how many of that name
// and kind the rank has before.
using OpKey = std::tuple<NameId, TrackKind, int64_t>;

// Returns the events of each key, in order of rank.
std::map<OpKey, std::vector<GraphEventId>> FindCounterparts(const Schedule& schedule) {
  const PathGraph& graph = schedule.graph;
  std::vector<GraphEventId> order;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    if (schedule.start_instants[id] != kNoInstant) order.push_back(id);
  }
  std::sort(order.begin(), order.end(), [&](GraphEventId a, GraphEventId b) {
    return std::make_tuple(schedule.RankOf(a), graph.events[a].start_ps, a) <
           std::make_tuple(schedule.RankOf(b), graph.events[b].start_ps, b);
  });
  std::map<std::tuple<int64_t, NameId, TrackKind>, int64_t> seen;
  std::map<OpKey, std::vector<GraphEventId>> counterparts;
  for (GraphEventId id : order) {
    const TrackKind kind = graph.lanes[schedule.LaneOf(id)].kind;
    const NameId name = graph.events[id].name;
    const int64_t occurrence = seen[{schedule.RankOf(id), name, kind}]++;
    counterparts[{name, kind, occurrence}].push_back(id);
  }
  return counterparts;
}

class Leveler {
 public:
  Leveler(int64_t rank, Schedule* schedule)
      : rank_(rank),
        schedule_(*schedule),
        communicates_(FindCommunication(*schedule)),
        own_ps_(OwnTimes(*schedule)),
        incoming_(schedule->graph, &GraphEdge::to),
        new_own_ps_(schedule->graph.events.size(), -1) {}

  absl::StatusOr<int64_t> Level() {
    int64_t matched = 0;
    for (const auto& [key, events] : FindCounterparts(schedule_)) {
      GraphEventId mine = kNoEvent;
      std::vector<GraphEventId> others;
      for (GraphEventId id : events) {
        if (schedule_.RankOf(id) == rank_) mine = id;
        if (schedule_.RankOf(id) != rank_) others.push_back(id);
      }
      if (mine == kNoEvent || others.empty()) continue;
      ++matched;
      LevelEvent(mine, others);
    }
    if (matched > 0) RETURN_IF_ERROR(SetOwnTimes(new_own_ps_, &schedule_));
    return matched;
  }

 private:
  // Returns the time of that delay before an event, if it has one.
  std::optional<int64_t> DelayBefore(GraphEventId event, Delay delay) const {
    std::optional<int64_t> time_ps;
    for (EdgeId id : incoming_.Of(schedule_.start_instants[event])) {
      const GraphEdge& edge = schedule_.graph.edges[id];
      if (DelayOf(schedule_, edge) != delay) continue;
      time_ps = std::max(time_ps.value_or(0), edge.weight_ps);
    }
    return time_ps;
  }

  void LevelEvent(GraphEventId mine, const std::vector<GraphEventId>& others) {
    if (!communicates_[mine]) {
      std::vector<int64_t> times_ps;
      for (GraphEventId other : others) times_ps.push_back(own_ps_[other]);
      const int64_t median_ps = LowerMedian(std::move(times_ps));
      if (median_ps < own_ps_[mine]) new_own_ps_[mine] = median_ps;
    }
    for (int i = 0; i < kNumDelays; ++i) LevelDelay(static_cast<Delay>(i), mine, others);
  }

  void LevelDelay(Delay delay, GraphEventId mine, const std::vector<GraphEventId>& others) {
    std::vector<int64_t> times_ps;
    for (GraphEventId other : others) {
      const std::optional<int64_t> time_ps = DelayBefore(other, delay);
      if (time_ps.has_value()) times_ps.push_back(*time_ps);
    }
    if (times_ps.empty()) return;
    const int64_t median_ps = LowerMedian(std::move(times_ps));
    for (EdgeId id : incoming_.Of(schedule_.start_instants[mine])) {
      GraphEdge& edge = schedule_.graph.edges[id];
      if (DelayOf(schedule_, edge) == delay) edge.weight_ps = std::min(edge.weight_ps, median_ps);
    }
  }

  const int64_t rank_;
  Schedule& schedule_;
  const std::vector<bool> communicates_;
  const std::vector<int64_t> own_ps_;
  const EdgesByInstant incoming_;
  // By event: its own time after levelling; -1 when it stays.
  std::vector<int64_t> new_own_ps_;
};

}  // namespace

std::vector<int64_t> OwnTimes(const Schedule& schedule) {
  const EdgesByInstant incoming(schedule.graph, &GraphEdge::to);
  std::vector<int64_t> times_ps(schedule.graph.events.size());
  VisitOwnParts(schedule, incoming, [&](const OwnPart& part, InstantId) {
    times_ps[part.event] = SaturatingSum(times_ps[part.event], part.time_ps);
  });
  return times_ps;
}

absl::Status ScaleTimes(const Selection& selection, int64_t factor, Schedule* schedule) {
  for (GraphEdge& edge : schedule->graph.edges) {
    const bool is_meant = selection.delay.has_value()
                              ? IsSelectedDelay(*schedule, selection, edge)
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
      if (IsSelectedDelay(*schedule, selection, edge)) edge.weight_ps = duration_ps;
    }
    return absl::OkStatus();
  }
  std::vector<int64_t> durations_ps(schedule->graph.events.size(), -1);
  for (GraphEventId event : selection.ToVector()) durations_ps[event] = duration_ps;
  return SetOwnTimes(durations_ps, schedule);
}

absl::StatusOr<int64_t> LevelRank(int64_t rank, Schedule* schedule) {
  std::set<int64_t> ranks;
  for (const Lane& lane : schedule->graph.lanes) ranks.insert(lane.rank);
  if (ranks.count(rank) == 0 || ranks.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " cannot be levelled with others; there are the ranks ",
                     absl::StrJoin(ranks, ", "), "; traces of several ranks are needed"));
  }
  ASSIGN_OR_RETURN(const int64_t matched, Leveler(rank, schedule).Level());
  if (matched == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no event of rank ", rank, " occurs on another rank"));
  }
  return matched;
}

}  // namespace meridian
