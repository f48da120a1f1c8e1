#include "critical_path/what_if/rank_leveling.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "critical_path/edge_index.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/event_index.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr int kNumDelays = 3;

// What makes events of different ranks the same: name, kind of lane, occurrence.
using OpKey = std::tuple<NameId, TrackKind, int64_t>;

// The events of each key, in order of rank.
std::map<OpKey, std::vector<GraphEventId>> FindCounterparts(const Schedule& schedule) {
  const PathGraph& graph = schedule.graph;
  std::vector<GraphEventId> order;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    if (schedule.start_nodes[id] != kNoNode) order.push_back(id);
  }
  const auto rank_of = [&](GraphEventId id) { return graph.lanes[schedule.LaneOf(id)].rank; };
  std::sort(order.begin(), order.end(), [&](GraphEventId a, GraphEventId b) {
    return std::make_tuple(rank_of(a), graph.events[a].start_ps, a) <
           std::make_tuple(rank_of(b), graph.events[b].start_ps, b);
  });
  std::map<std::tuple<int64_t, NameId, TrackKind>, int64_t> seen;
  std::map<OpKey, std::vector<GraphEventId>> counterparts;
  for (GraphEventId id : order) {
    const TrackKind kind = graph.lanes[schedule.LaneOf(id)].kind;
    const NameId name = graph.events[id].name;
    const int64_t occurrence = seen[{rank_of(id), name, kind}]++;
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
        if (RankOf(id) == rank_) {
          mine = id;
        } else {
          others.push_back(id);
        }
      }
      if (mine == kNoEvent || others.empty()) continue;
      ++matched;
      LevelEvent(mine, others);
    }
    if (matched > 0) RETURN_IF_ERROR(SetOwnTimes(new_own_ps_, &schedule_));
    return matched;
  }

 private:
  int64_t RankOf(GraphEventId id) const { return schedule_.graph.lanes[schedule_.LaneOf(id)].rank; }

  // Returns the time of that delay before an event, if it has one.
  std::optional<int64_t> DelayBefore(GraphEventId event, Delay delay) const {
    std::optional<int64_t> time_ps;
    for (EdgeId id : incoming_.Of(schedule_.start_nodes[event])) {
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
    for (EdgeId id : incoming_.Of(schedule_.start_nodes[mine])) {
      GraphEdge& edge = schedule_.graph.edges[id];
      if (DelayOf(schedule_, edge) == delay) edge.weight_ps = std::min(edge.weight_ps, median_ps);
    }
  }

  const int64_t rank_;
  Schedule& schedule_;
  const std::vector<bool> communicates_;
  const std::vector<int64_t> own_ps_;
  const EdgeIndex incoming_;
  std::vector<int64_t> new_own_ps_;
};

}  // namespace

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
