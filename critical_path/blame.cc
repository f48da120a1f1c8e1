#include "critical_path/blame.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "critical_path/csv_field.h"
#include "xla_profiler/trace_json/exact_decimal.h"

namespace meridian {
namespace {

// Saved graphs may hold any times.
void AddClamped(absl::int128 part, int64_t* sum) {
  constexpr absl::int128 kMin = std::numeric_limits<int64_t>::min();
  constexpr absl::int128 kMax = std::numeric_limits<int64_t>::max();
  *sum = static_cast<int64_t>(std::clamp(*sum + part, kMin, kMax));
}

// When each came to a meeting.
struct Arrival {
  int64_t time_ps = 0;
  int64_t rank = 0;
};

// How long, on average, those who were not last had waited at some time.
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
  int64_t first_ps() const { return times_ps_.front(); }

  absl::int128 WaitedPs(int64_t time_ps) const {
    const size_t came =
        std::upper_bound(times_ps_.begin(), times_ps_.end(), time_ps) - times_ps_.begin();
    const absl::int128 sum = absl::int128(time_ps) * came - sums_ps_[came];
    return sum / times_ps_.size();
  }

 private:
  // Ascending, and the sums of the first of them.
  std::vector<int64_t> times_ps_;
  std::vector<absl::int128> sums_ps_;
};

class BlameFinder {
 public:
  BlameFinder(const PathGraph& graph, const CriticalPath& path) : graph_(graph), path_(path) {}

  Blame Find() {
    for (size_t i = 0; i < graph_.meetings.size(); ++i) {
      meeting_of_node_[graph_.meetings[i].node] = i;
    }
    ReadArrivals();
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

  int64_t RankOf(GraphEventId event) const { return graph_.lanes[graph_.events[event].lane].rank; }

  void ReadArrivals() {
    arrivals_.resize(graph_.meetings.size());
    for (const GraphEdge& edge : graph_.edges) {
      const auto meeting = meeting_of_node_.find(edge.to);
      const GraphNode& from = graph_.nodes[edge.from];
      if (meeting == meeting_of_node_.end() || from.event == kNoEvent) continue;
      arrivals_[meeting->second].push_back({from.time_ps, RankOf(from.event)});
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

  // Goes back from the path's edge `end`, which leads to the meeting, to its edge `begin`.
  void BlameFor(size_t meeting, size_t begin, size_t end) {
    if (arrivals_[meeting].empty()) return;
    const WaitingOthers others(arrivals_[meeting]);
    if (others.empty()) return;
    int64_t rank = 0;
    for (size_t i = end + 1; i-- > begin;) {
      const GraphEdge& edge = graph_.edges[path_.edges[i]];
      const GraphNode &from = graph_.nodes[edge.from], &to = graph_.nodes[edge.to];
      // The window's bounds are nobody's: they belong to who comes next.
      if (to.event != kNoEvent) rank = RankOf(to.event);
      if (to.time_ps <= others.first_ps()) break;
      // Out of a meeting lead transfers.
      if (edge.weight_ps == 0 || meeting_of_node_.contains(edge.from)) continue;
      int64_t time_ps = 0;
      AddClamped(others.WaitedPs(to.time_ps) - others.WaitedPs(from.time_ps), &time_ps);
      if (time_ps > 0) Book(graph_.meetings[meeting], rank, edge, time_ps);
    }
  }

  void Book(const GraphMeeting& meeting, int64_t rank, const GraphEdge& edge, int64_t time_ps) {
    const absl::string_view op =
        edge.event == kNoEvent ? BoundByName(edge.bound_by) : graph_.EventName(edge.event);
    const auto [it, is_new] =
        rows_.emplace(Key(meeting.step, rank, std::string(op)), blame_.rows.size());
    if (is_new) {
      blame_.rows.push_back({meeting.step, rank, std::string(op), 0, BoundBy::kNothing, ""});
      largest_ps_.push_back(0);
    }
    BlameRow& row = blame_.rows[it->second];
    AddClamped(time_ps, &row.time_ps);
    if (time_ps > largest_ps_[it->second]) {
      largest_ps_[it->second] = time_ps;
      row.bound_by = edge.bound_by;
      row.waited_in = std::string(graph_.names.Get(meeting.name));
    }
  }

  void SortRows() {
    std::sort(blame_.rows.begin(), blame_.rows.end(), [](const BlameRow& a, const BlameRow& b) {
      return std::tie(b.time_ps, a.step, a.rank, a.op) < std::tie(a.time_ps, b.step, b.rank, b.op);
    });
  }

  void SumRanks() {
    // By step and rank.
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
  absl::flat_hash_map<NodeId, size_t> meeting_of_node_;
  // By meeting.
  std::vector<std::vector<Arrival>> arrivals_;
  std::map<Key, size_t> rows_;
  // By row: the largest part so far.
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
