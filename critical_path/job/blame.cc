#include "critical_path/job/blame.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "critical_path/graph/step_times.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Adds to a sum that stays in the range of an int64: saved graphs may hold any times.
void AddClamped(absl::int128 part, int64_t* sum) { *sum = SaturateToInt64(*sum + part); }

struct Arrival {
  int64_t time_ps = 0;
  int64_t rank = 0;
  InstantId instant = 0;
  std::optional<int64_t> step;
};

bool IsEarlier(const Arrival& a, const Arrival& b) { return a.time_ps < b.time_ps; }

// Returns the first of a rank's arrivals that is not before that time.
std::vector<Arrival>::const_iterator FirstArrival(const std::vector<Arrival>& arrivals,
                                                  int64_t time_ps) {
  return absl::c_lower_bound(arrivals, Arrival{time_ps, 0, 0, std::nullopt}, IsEarlier);
}

// What time is spent in: the name of the event that it is booked on, or kNoName, and the reason.
constexpr NameId kNoName = std::numeric_limits<NameId>::max();
using Op = std::pair<NameId, BoundBy>;
using TimeByOp = absl::flat_hash_map<Op, absl::int128>;
using StepOp = std::pair<std::optional<int64_t>, Op>;

// Returns how long those who were not last to come to a meeting had waited at some time, on average.
absl::int128 WaitedPs(const std::vector<Arrival>& arrivals, const Arrival& last, int64_t time_ps) {
  absl::int128 sum = 0;
  for (const Arrival& arrival : arrivals) {
    if (&arrival == &last || arrival.time_ps >= time_ps) continue;
    sum += absl::int128(time_ps) - arrival.time_ps;
  }
  return sum / (arrivals.size() - 1);
}

class BlameFinder {
 public:
  explicit BlameFinder(const PathGraph& graph) : graph_(graph), begins_ps_(FindBegins(graph)) {}

  Blame Find() {
    if (graph_.meetings.empty()) return {};
    for (size_t i = 0; i < graph_.meetings.size(); ++i) {
      meeting_of_node_[graph_.meetings[i].instant] = i;
    }
    ReadArrivals();
    FindCauses();
    FindExcess();
    for (size_t i = 0; i < graph_.meetings.size(); ++i) BlameFor(i);
    SortRows();
    SumRanks();
    return std::move(blame_);
  }

 private:
  using Key = std::tuple<std::optional<int64_t>, int64_t, std::string>;

  int64_t RankOf(GraphEventId event) const { return graph_.LaneOf(event).rank; }

  void FindCauses() {
    causes_.assign(graph_.instants.size(), kNoEdge);
    for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
      const GraphEdge& edge = graph_.edges[id];
      const absl::int128 time_ps =
          absl::int128(graph_.instants[edge.to].time_ps) - graph_.instants[edge.from].time_ps;
      if (edge.weight_ps == time_ps && causes_[edge.to] == kNoEdge) causes_[edge.to] = id;
    }
  }

  void ReadArrivals() {
    arrivals_.resize(graph_.meetings.size());
    for (const GraphEdge& edge : graph_.edges) {
      const auto meeting = meeting_of_node_.find(edge.to);
      const Instant& from = graph_.instants[edge.from];
      if (meeting == meeting_of_node_.end() || from.event == kNoEvent) continue;
      const Arrival arrival = {from.time_ps, RankOf(from.event), edge.from,
                               graph_.meetings[meeting->second].step};
      arrivals_[meeting->second].push_back(arrival);
      arrivals_of_rank_[arrival.rank].push_back(arrival);
      met_in_.emplace(arrival.step, arrival.rank);
      has_steps_ = has_steps_ || arrival.step.has_value();
    }
    for (auto& [rank, arrivals] : arrivals_of_rank_) {
      absl::c_sort(arrivals, [](const Arrival& a, const Arrival& b) {
        return std::tie(a.time_ps, a.step) < std::tie(b.time_ps, b.step);
      });
    }
    for (const std::vector<Arrival>& arrivals : arrivals_) {
      const auto last = absl::c_max_element(arrivals, IsEarlier);
      for (const Arrival& arrival : arrivals) {
        AddClamped(absl::int128(last->time_ps) - arrival.time_ps, &ranks_[arrival.rank].waited_ps);
      }
    }
  }

  // Adds up what each rank spent its time in, in each step, and turns that into what it spent more
  // than those that it met did on average. Of ops all that the rank did counts, not only what led
  // to its meetings: that of a rank which waits is hidden behind the waiting. Of gaps only these
  // count: others are mostly waiting themselves.
  void FindExcess() {
    // Most edges are of the same step and rank as the one before.
    std::optional<std::pair<std::optional<int64_t>, int64_t>> place;
    TimeByOp* spent_there = nullptr;
    for (EdgeId id = 0; id < graph_.edges.size(); ++id) {
      const GraphEdge& edge = graph_.edges[id];
      const bool is_gap = OpOf(edge).first == kNoName;
      if (causes_[edge.to] != id || edge.event == kNoEvent || is_gap ||
          edge.bound_by == BoundBy::kGpuCommunication || edge.bound_by == BoundBy::kOtherRanks) {
        continue;
      }
      const int64_t rank = RankOf(edge.event);
      const std::optional<int64_t> step = StepOf(edge, edge.event, rank);
      if (place != std::make_pair(step, rank)) spent_there = &excess_[step][rank];
      place = {step, rank};
      (*spent_there)[OpOf(edge)] += edge.weight_ps;
    }
    // A kernel may be several meetings at once; the way to it counts once.
    absl::flat_hash_set<std::pair<std::optional<int64_t>, InstantId>> seen;
    // By step: the groups of ranks that meet.
    std::map<std::optional<int64_t>, std::set<std::vector<int64_t>>> groups;
    for (size_t i = 0; i < graph_.meetings.size(); ++i) {
      const std::optional<int64_t> step = graph_.meetings[i].step;
      std::vector<int64_t> group;
      for (const Arrival& arrival : arrivals_[i]) {
        group.push_back(arrival.rank);
        TimeByOp& spent = excess_[step][arrival.rank];
        if (!seen.emplace(step, arrival.instant).second) continue;
        WalkBack(arrival, [&](const GraphEdge& edge, int64_t from_ps, int64_t to_ps) {
          const Op op = OpOf(edge);
          if (op.first == kNoName) spent[op] += absl::int128(to_ps) - from_ps;
        });
      }
      absl::c_sort(group);
      group.erase(std::unique(group.begin(), group.end()), group.end());
      if (group.size() > 1) groups[step].insert(std::move(group));
    }
    for (auto& [step, ranks] : excess_) SubtractOthers(groups[step], &ranks);
  }

  // Returns the step that an edge of a rank is in: that of its event, or of the next meeting that
  // the rank comes to.
  std::optional<int64_t> StepOf(const GraphEdge& edge, GraphEventId event, int64_t rank) const {
    if (!has_steps_) return std::nullopt;
    if (graph_.events[event].step != kNoStep) return graph_.events[event].step;
    const auto arrivals = arrivals_of_rank_.find(rank);
    if (arrivals == arrivals_of_rank_.end()) return std::nullopt;
    const auto next = FirstArrival(arrivals->second, graph_.Time(edge.to));
    return next == arrivals->second.end() ? arrivals->second.back().step : next->step;
  }

  // Takes from the time that each rank spent in an op what the others of its groups did on average.
  static void SubtractOthers(const std::set<std::vector<int64_t>>& groups,
                             std::map<int64_t, TimeByOp>* spent) {
    std::map<int64_t, TimeByOp> of_others;
    std::map<int64_t, int64_t> group_counts;
    for (const std::vector<int64_t>& group : groups) {
      TimeByOp sums;
      for (const int64_t rank : group) {
        ++group_counts[rank];
        for (const auto& [op, time_ps] : (*spent)[rank]) sums[op] += time_ps;
      }
      const auto others = static_cast<int64_t>(group.size()) - 1;
      for (const int64_t rank : group) {
        for (const auto& [op, time_ps] : (*spent)[rank]) {
          of_others[rank][op] += (sums[op] - time_ps) / others;
        }
      }
    }
    for (auto& [rank, ops] : *spent) {
      const int64_t groups_of_rank = std::max<int64_t>(1, group_counts[rank]);
      for (auto& [op, time_ps] : ops) time_ps -= of_others[rank][op] / groups_of_rank;
    }
  }

  // What a rank spent its time in on its way to a meeting.
  struct Way {
    // When the way began, in ps from the graph's base_ns.
    int64_t start_ps = 0;
    // By the step that the op counts in, which need not be that of the meeting.
    std::map<StepOp, absl::int128> spent;
    // By op: the longest stretch of it, and the edge that this is.
    std::map<Op, std::pair<int64_t, EdgeId>> longest;
  };

  const Way& WayTo(const Arrival& arrival) {
    const auto [it, is_new] = ways_.try_emplace(arrival.instant);
    Way& way = it->second;
    if (!is_new) return way;
    way.start_ps = arrival.time_ps;
    WalkBack(arrival, [&](const GraphEdge& edge, int64_t from_ps, int64_t to_ps) {
      way.start_ps = from_ps;
      const bool is_gap = OpOf(edge).first == kNoName;
      std::optional<int64_t> step = is_gap ? arrival.step : StepOf(edge, edge.event, arrival.rank);
      if (!met_in_.contains({step, arrival.rank})) step = arrival.step;
      way.spent[{step, OpOf(edge)}] += absl::int128(to_ps) - from_ps;
      auto& longest = way.longest[OpOf(edge)];
      longest = std::max(longest, std::make_pair(to_ps - from_ps, causes_[edge.to]));
    });
    return way;
  }

  void BlameFor(size_t meeting) {
    const std::vector<Arrival>& arrivals = arrivals_[meeting];
    if (arrivals.size() < 2) return;
    const Arrival& last = *absl::c_max_element(arrivals, IsEarlier);
    const Way& way = WayTo(last);
    std::map<StepOp, absl::int128> parts;
    absl::int128 whole_ps = 0;
    for (const auto& [step_op, time_ps] : way.spent) {
      absl::int128& part = parts[step_op] = ExcessOf(step_op, last.rank);
      part = std::max<absl::int128>(0, std::min(time_ps, part));
      whole_ps += part;
    }
    const absl::int128 waited_ps = WaitedPs(arrivals, last, last.time_ps);
    const absl::int128 blame_ps =
        std::min(waited_ps - WaitedPs(arrivals, last, way.start_ps), whole_ps);
    BlameBeginning(meeting, last, waited_ps - blame_ps);
    // The blame is divided in proportion to the parts, so that the sum is exact, and taken from
    // what is in excess.
    absl::int128 before = 0;
    for (const auto& [step_op, part] : parts) {
      if (part == 0) continue;
      int64_t time_ps = 0;
      AddClamped(Share(blame_ps, before + part, whole_ps) - Share(blame_ps, before, whole_ps),
                 &time_ps);
      before += part;
      ExcessOf(step_op, last.rank) -= time_ps;
      if (time_ps > 0) Book(graph_.meetings[meeting], last.rank, step_op.second, time_ps, way);
    }
  }

  absl::int128& ExcessOf(const StepOp& step_op, int64_t rank) {
    return excess_[step_op.first][rank][step_op.second];
  }

  // Books what others waited at the first meeting of all who come to it, beyond what the last rank
  // is blamed for, as far as that rank's first event is later than those of the others on average.
  void BlameBeginning(size_t meeting, const Arrival& last, absl::int128 waited_ps) {
    if (graph_.first_step_waits_for_all) return;
    absl::int128 late_ps = 0;
    for (const Arrival& arrival : arrivals_[meeting]) {
      if (arrivals_of_rank_.at(arrival.rank).front().instant != arrival.instant) return;
      late_ps += absl::int128(begins_ps_[last.rank]) - begins_ps_[arrival.rank];
    }
    int64_t time_ps = 0;
    AddClamped(std::min(late_ps / (arrivals_[meeting].size() - 1), waited_ps), &time_ps);
    if (time_ps <= 0) return;
    blame_.beginnings.push_back({graph_.meetings[meeting].step, last.rank,
                                 std::string(BoundByName(BoundBy::kBeforeStep)), time_ps,
                                 BoundBy::kBeforeStep, "",
                                 std::string(graph_.names.Get(graph_.meetings[meeting].name))});
  }

  // Calls fn with each edge, and the part of its time, that a rank came by to a meeting: from the
  // meeting before on, where it left that or came to it.
  void WalkBack(
      const Arrival& arrival,
      absl::FunctionRef<void(const GraphEdge& edge, int64_t from_ps, int64_t to_ps)> fn) const {
    const int64_t since_ps = ArrivedBefore(arrival);
    InstantId instant = arrival.instant;
    while (graph_.instants[instant].time_ps > since_ps && causes_[instant] != kNoEdge) {
      const GraphEdge& edge = graph_.edges[causes_[instant]];
      if (IsNobodys(edge)) return;
      fn(edge, std::max(since_ps, graph_.instants[edge.from].time_ps),
         graph_.instants[instant].time_ps);
      instant = edge.from;
    }
  }

  // Returns when the rank came to the meeting before, or the window's start.
  int64_t ArrivedBefore(const Arrival& arrival) const {
    const std::vector<Arrival>& all = arrivals_of_rank_.at(arrival.rank);
    const auto it = FirstArrival(all, arrival.time_ps);
    return it == all.begin() ? graph_.window_start_ps : (it - 1)->time_ps;
  }

  // True for transfers, which lead out of meetings, and for the time before a rank's own window.
  bool IsNobodys(const GraphEdge& edge) const {
    return meeting_of_node_.contains(edge.from) ||
           (edge.event == kNoEvent && graph_.instants[edge.from].event == kNoEvent &&
            graph_.instants[edge.to].event == kNoEvent);
  }

  // Host gaps are events in some graphs and none in others.
  Op OpOf(const GraphEdge& edge) const {
    const bool has_name = edge.event != kNoEvent && edge.bound_by != BoundBy::kHostGap;
    return {has_name ? graph_.events[edge.event].name : kNoName, edge.bound_by};
  }

  // Real times are far from overflowing the product; hostile ones lose digits.
  static absl::int128 Share(absl::int128 blame_ps, absl::int128 part, absl::int128 whole) {
    constexpr absl::int128 kMaxFactor = std::numeric_limits<int64_t>::max();
    while (whole > kMaxFactor) {
      whole /= 2;
      part /= 2;
    }
    return std::min(blame_ps, kMaxFactor) * part / whole;
  }

  // Returns the name of the event after which the edge's gap began; empty for time that is no gap,
  // and at the window's start.
  std::string AfterWhat(EdgeId id) const {
    const GraphEdge& edge = graph_.edges[id];
    if (edge.bound_by != BoundBy::kHostGap) return "";
    InstantId from = edge.from;
    // Of a gap that is an event, that before it.
    if (edge.event != kNoEvent && graph_.instants[from].event == edge.event &&
        causes_[from] != kNoEdge) {
      from = graph_.edges[causes_[from]].from;
    }
    const GraphEventId event = graph_.instants[from].event;
    return event == kNoEvent ? "" : std::string(graph_.EventName(event));
  }

  void Book(const GraphMeeting& meeting, int64_t rank, const Op& spent_in, int64_t time_ps,
            const Way& way) {
    const std::string op(spent_in.first == kNoName ? BoundByName(spent_in.second)
                                                   : graph_.names.Get(spent_in.first));
    const auto [it, is_new] = rows_.emplace(Key(meeting.step, rank, op), blame_.rows.size());
    if (is_new) {
      blame_.rows.push_back({meeting.step, rank, op, 0, BoundBy::kNothing, "", ""});
      largest_ps_.push_back(0);
    }
    BlameRow& row = blame_.rows[it->second];
    AddClamped(time_ps, &row.time_ps);
    if (time_ps > largest_ps_[it->second]) {
      largest_ps_[it->second] = time_ps;
      row.bound_by = spent_in.second;
      row.after = AfterWhat(way.longest.at(spent_in).second);
      row.waited_in = std::string(graph_.names.Get(meeting.name));
    }
  }

  void SortRows() {
    absl::c_sort(blame_.rows, [](const BlameRow& a, const BlameRow& b) {
      return std::tie(b.time_ps, a.step, a.rank, a.op) < std::tie(a.time_ps, b.step, b.rank, b.op);
    });
  }

  void SumRanks() {
    for (const BlameRow& row : blame_.rows) {
      AddClamped(row.time_ps, &ranks_[row.rank].blamed_ps);
    }
    for (auto& [rank, summary] : ranks_) {
      summary.rank = rank;
      blame_.ranks.push_back(summary);
    }
  }

  const PathGraph& graph_;
  // By rank; hostile graphs may lack some.
  std::map<int64_t, int64_t> begins_ps_;
  Blame blame_;
  absl::flat_hash_map<InstantId, size_t> meeting_of_node_;
  // The arrivals at each meeting, by position in PathGraph::meetings.
  std::vector<std::vector<Arrival>> arrivals_;
  // By rank: when it came to meetings, in order of the times.
  std::map<int64_t, std::vector<Arrival>> arrivals_of_rank_;
  // The steps in which a rank meets others: only there its time is compared with theirs.
  absl::flat_hash_set<std::pair<std::optional<int64_t>, int64_t>> met_in_;
  bool has_steps_ = false;
  // By instant: the edge that stands for all the time before it; kNoEdge when none does.
  std::vector<EdgeId> causes_;
  // By step and rank: the time by which the rank was longer in each op than the others were, as far
  // as it is not blamed yet.
  std::map<std::optional<int64_t>, std::map<int64_t, TimeByOp>> excess_;
  // The ways of those that were last to come, by their arrivals.
  absl::flat_hash_map<InstantId, Way> ways_;
  // The place of each row in Blame::rows.
  std::map<Key, size_t> rows_;
  // By place in Blame::rows: the largest part so far.
  std::vector<int64_t> largest_ps_;
  std::map<int64_t, RankBlame> ranks_;
};

}  // namespace

Blame FindBlame(const PathGraph& graph) { return BlameFinder(graph).Find(); }

}  // namespace meridian
