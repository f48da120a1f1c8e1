#include "critical_path/job/blame.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Adds to a sum that stays in the range of an int64: saved graphs may hold any times.
void AddClamped(absl::int128 part, int64_t* sum) {
  constexpr absl::int128 kMin = std::numeric_limits<int64_t>::min();
  constexpr absl::int128 kMax = std::numeric_limits<int64_t>::max();
  *sum = static_cast<int64_t>(std::clamp(*sum + part, kMin, kMax));
}

// A rank comes to a meeting.
struct Arrival {
  int64_t time_ps = 0;
  int64_t rank = 0;
  InstantId instant = 0;
};

// What time is spent in: the name of the event that it is booked on, or kNoName, and the reason.
constexpr NameId kNoName = std::numeric_limits<NameId>::max();
using Op = std::pair<NameId, BoundBy>;
using TimeByOp = std::map<Op, absl::int128>;

// How long those who were not last to come to a meeting had waited at some time, on average.
class WaitingOthers {
 public:
  explicit WaitingOthers(const std::vector<Arrival>& arrivals) {
    for (const Arrival& arrival : arrivals) times_ps_.push_back(arrival.time_ps);
    std::sort(times_ps_.begin(), times_ps_.end());
    times_ps_.pop_back();
    sums_ps_.push_back(0);
    for (const int64_t time_ps : times_ps_) sums_ps_.push_back(sums_ps_.back() + time_ps);
  }

  bool empty() const { return times_ps_.empty(); }

  absl::int128 WaitedPs(int64_t time_ps) const {
    const size_t came =
        std::upper_bound(times_ps_.begin(), times_ps_.end(), time_ps) - times_ps_.begin();
    const absl::int128 sum = absl::int128(time_ps) * came - sums_ps_[came];
    return sum / times_ps_.size();
  }

 private:
  // When the others came, in ascending order.
  std::vector<int64_t> times_ps_;
  // At place n the sum of the first n times.
  std::vector<absl::int128> sums_ps_;
};

class BlameFinder {
 public:
  BlameFinder(const PathGraph& graph, const CriticalPath& path) : graph_(graph), path_(path) {}

  Blame Find() {
    if (graph_.meetings.empty()) return {};
    for (size_t i = 0; i < graph_.meetings.size(); ++i) {
      meeting_of_node_[graph_.meetings[i].instant] = i;
    }
    ReadArrivals();
    FindCauses();
    size_t begin = 0;
    for (size_t i = 0; i < path_.edges.size(); ++i) {
      const auto meeting = meeting_of_node_.find(graph_.edges[path_.edges[i]].to);
      if (meeting == meeting_of_node_.end()) continue;
      BlameFor(meeting->second, begin, i);
      begin = i + 1;
    }
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
      arrivals_[meeting->second].push_back({from.time_ps, RankOf(from.event), edge.from});
    }
    for (const std::vector<Arrival>& arrivals : arrivals_) {
      int64_t last_ps = 0;
      for (const Arrival& arrival : arrivals) {
        last_ps =
            &arrival == arrivals.data() ? arrival.time_ps : std::max(last_ps, arrival.time_ps);
      }
      for (const Arrival& arrival : arrivals) {
        AddClamped(absl::int128(last_ps) - arrival.time_ps, &ranks_[arrival.rank].waited_ps);
      }
    }
  }

  // Blames for one meeting. The path's edges at the places from `begin` to `end` lead to it from
  // the meeting before, or from the window's start; all are of one rank.
  void BlameFor(size_t meeting, size_t begin, size_t end) {
    if (arrivals_[meeting].empty()) return;
    const WaitingOthers others(arrivals_[meeting]);
    if (others.empty()) return;
    TimeByOp spent, waited;
    int64_t start_ps = graph_.instants[graph_.edges[path_.edges[end]].from].time_ps;
    for (size_t i = begin; i <= end; ++i) {
      const GraphEdge& edge = graph_.edges[path_.edges[i]];
      if (edge.weight_ps == 0 || IsNobodys(edge)) continue;
      const int64_t from_ps = graph_.instants[edge.from].time_ps;
      const int64_t to_ps = graph_.instants[edge.to].time_ps;
      start_ps = std::min(start_ps, from_ps);
      spent[OpOf(edge)] += edge.weight_ps;
      const absl::int128 waited_ps = others.WaitedPs(to_ps) - others.WaitedPs(from_ps);
      if (waited_ps > 0) waited[OpOf(edge)] += waited_ps;
    }
    absl::int128 blame_ps = 0;
    for (const auto& [op, time_ps] : waited) blame_ps += time_ps;
    if (blame_ps == 0) return;
    const InstantId last = graph_.edges[path_.edges[end]].from;
    const absl::int128 span_ps = absl::int128(graph_.instants[last].time_ps) - start_ps;
    const TimeByOp excess = ExcessOver(arrivals_[meeting], last, span_ps, spent);
    // Without any, the rank was as fast as the others: then what it did while they waited counts.
    Divide(blame_ps, excess.empty() ? waited : excess, graph_.meetings[meeting], RankAt(last));
  }

  // True for transfers, which lead out of meetings, and for the time before a rank's own window.
  bool IsNobodys(const GraphEdge& edge) const {
    return meeting_of_node_.contains(edge.from) ||
           (edge.event == kNoEvent && graph_.instants[edge.from].event == kNoEvent &&
            graph_.instants[edge.to].event == kNoEvent);
  }

  int64_t RankAt(InstantId instant) const {
    const GraphEventId event = graph_.instants[instant].event;
    return event == kNoEvent ? 0 : RankOf(event);
  }

  // Host gaps are events in some graphs and none in others.
  Op OpOf(const GraphEdge& edge) const {
    const bool has_name = edge.event != kNoEvent && edge.bound_by != BoundBy::kHostGap;
    return {has_name ? graph_.events[edge.event].name : kNoName, edge.bound_by};
  }

  // Returns how much longer than the others, on average, the last of them was in each op in the
  // time span before it came.
  TimeByOp ExcessOver(const std::vector<Arrival>& arrivals, InstantId last, absl::int128 span_ps,
                      const TimeByOp& spent) const {
    TimeByOp by_others;
    int64_t others = 0;
    for (const Arrival& arrival : arrivals) {
      if (arrival.instant == last) continue;
      ++others;
      AddTimeBefore(arrival.instant, arrival.time_ps - span_ps, &by_others);
    }
    TimeByOp excess;
    for (const auto& [op, time_ps] : spent) {
      const auto mean = by_others.find(op);
      const absl::int128 more_ps =
          mean == by_others.end() ? time_ps : time_ps - mean->second / std::max<int64_t>(others, 1);
      if (more_ps > 0) excess[op] = more_ps;
    }
    return excess;
  }

  // Adds what a rank was in until an instant, back to the meeting before it or to start_ps.
  void AddTimeBefore(InstantId instant, absl::int128 start_ps, TimeByOp* sum) const {
    while (graph_.instants[instant].time_ps > start_ps && causes_[instant] != kNoEdge) {
      const GraphEdge& edge = graph_.edges[causes_[instant]];
      if (IsNobodys(edge)) return;
      const absl::int128 from_ps =
          std::max<absl::int128>(graph_.instants[edge.from].time_ps, start_ps);
      (*sum)[OpOf(edge)] += graph_.instants[instant].time_ps - from_ps;
      instant = edge.from;
    }
  }

  // Divides the blame in proportion to the parts, so that the sum is exact.
  void Divide(absl::int128 blame_ps, const TimeByOp& parts, const GraphMeeting& meeting,
              int64_t rank) {
    absl::int128 whole = 0, before = 0;
    for (const auto& [op, part] : parts) whole += part;
    for (const auto& [op, part] : parts) {
      int64_t time_ps = 0;
      AddClamped(Share(blame_ps, before + part, whole) - Share(blame_ps, before, whole), &time_ps);
      before += part;
      if (time_ps > 0) Book(meeting, rank, op, time_ps);
    }
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

  void Book(const GraphMeeting& meeting, int64_t rank, const Op& spent_in, int64_t time_ps) {
    const std::string op(spent_in.first == kNoName ? BoundByName(spent_in.second)
                                                   : graph_.names.Get(spent_in.first));
    const auto [it, is_new] = rows_.emplace(Key(meeting.step, rank, op), blame_.rows.size());
    if (is_new) {
      blame_.rows.push_back({meeting.step, rank, op, 0, BoundBy::kNothing, ""});
      largest_ps_.push_back(0);
    }
    BlameRow& row = blame_.rows[it->second];
    AddClamped(time_ps, &row.time_ps);
    if (time_ps > largest_ps_[it->second]) {
      largest_ps_[it->second] = time_ps;
      row.bound_by = spent_in.second;
      row.waited_in = std::string(graph_.names.Get(meeting.name));
    }
  }

  void SortRows() {
    std::sort(blame_.rows.begin(), blame_.rows.end(), [](const BlameRow& a, const BlameRow& b) {
      return std::tie(b.time_ps, a.step, a.rank, a.op) < std::tie(a.time_ps, b.step, b.rank, b.op);
    });
  }

  void SumRanks() {
    // Blame by step, and by rank in it.
    std::map<std::optional<int64_t>, std::map<int64_t, int64_t>> steps;
    for (const BlameRow& row : blame_.rows) {
      AddClamped(row.time_ps, &ranks_[row.rank].blamed_ps);
      AddClamped(row.time_ps, &steps[row.step][row.rank]);
    }
    for (const auto& [step, ranks] : steps) {
      const auto most =
          std::max_element(ranks.begin(), ranks.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      ++ranks_[most->first].steps_led;
    }
    for (auto& [rank, summary] : ranks_) {
      summary.rank = rank;
      blame_.ranks.push_back(summary);
    }
  }

  const PathGraph& graph_;
  const CriticalPath& path_;
  Blame blame_;
  absl::flat_hash_map<InstantId, size_t> meeting_of_node_;
  // By position in PathGraph::meetings.
  std::vector<std::vector<Arrival>> arrivals_;
  // By instant: the edge that stands for all the time before it; kNoEdge when none does.
  std::vector<EdgeId> causes_;
  // The place of each row in Blame::rows.
  std::map<Key, size_t> rows_;
  // By place in Blame::rows: the largest part so far.
  std::vector<int64_t> largest_ps_;
  std::map<int64_t, RankBlame> ranks_;
};

}  // namespace

Blame FindBlame(const PathGraph& graph, const CriticalPath& path) {
  return BlameFinder(graph, path).Find();
}

std::string BlameCsv(const Blame& blame) {
  std::string out = "step,rank,op,us,bound_by,waited_in\n";
  for (const BlameRow& row : blame.rows) {
    if (row.step.has_value()) absl::StrAppend(&out, *row.step);
    absl::StrAppend(&out, ",", row.rank, ",", CsvField(row.op), ",");
    AppendPicosAsMicros(row.time_ps, &out);
    absl::StrAppend(&out, ",", BoundByName(row.bound_by), ",", CsvField(row.waited_in), "\n");
  }
  return out;
}

}  // namespace meridian
