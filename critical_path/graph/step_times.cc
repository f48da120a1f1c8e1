#include "critical_path/graph/step_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// A first step that takes so many times what others take, while a rank had not begun, was recorded
// before the run had.
constexpr int64_t kOutlierFactor = 2;

int64_t MiddlePs(const std::vector<int64_t>& times_ps) {
  const int64_t low = LowerMedian(times_ps), high = UpperMedian(times_ps);
  return low + (high - low) / 2;
}

struct Span {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

// What one rank did.
struct RankSteps {
  // By step: the work that tells when it ended, from its first start to its last end.
  std::map<int64_t, Span> work;
  // By step: when anything of it began, on the host or on a device.
  std::map<int64_t, int64_t> begins_ps;
};

int64_t EndOf(const GraphEvent& event) {
  int64_t end_ps = 0;
  return __builtin_add_overflow(event.start_ps, event.duration_ps, &end_ps) ? event.start_ps
                                                                            : end_ps;
}

std::map<int64_t, RankSteps> ReadRanks(const PathGraph& graph) {
  bool has_device_steps = false;
  for (const GraphEvent& event : graph.events) {
    has_device_steps |= event.step != kNoStep && graph.lanes[event.lane].kind == TrackKind::kDevice;
  }
  std::map<int64_t, RankSteps> ranks;
  for (const GraphEvent& event : graph.events) {
    if (event.step == kNoStep) continue;
    const Lane& lane = graph.lanes[event.lane];
    RankSteps& rank = ranks[lane.rank];
    int64_t& begin_ps = rank.begins_ps.emplace(event.step, event.start_ps).first->second;
    begin_ps = std::min(begin_ps, event.start_ps);
    if (has_device_steps && lane.kind != TrackKind::kDevice) continue;
    const Span span = {event.start_ps, EndOf(event)};
    const auto [known, is_new] = rank.work.emplace(event.step, span);
    known->second.start_ps = std::min(known->second.start_ps, span.start_ps);
    known->second.end_ps = std::max(known->second.end_ps, span.end_ps);
  }
  return ranks;
}

// Returns by rank when its work of no step had ended that had begun before its first step's work.
std::map<int64_t, int64_t> FindEarlierEnds(const PathGraph& graph, int64_t first_step,
                                           const std::map<int64_t, RankSteps>& ranks) {
  std::map<int64_t, int64_t> ends_ps;
  for (const GraphEvent& event : graph.events) {
    const Lane& lane = graph.lanes[event.lane];
    if (event.step != kNoStep || lane.kind != TrackKind::kDevice) continue;
    const auto rank = ranks.find(lane.rank);
    if (rank == ranks.end()) continue;
    const auto first = rank->second.work.find(first_step);
    if (first == rank->second.work.end() || event.start_ps > first->second.start_ps) continue;
    const int64_t end_ps = EndOf(event);
    const auto [known, is_new] = ends_ps.emplace(lane.rank, end_ps);
    known->second = std::max(known->second, end_ps);
  }
  return ends_ps;
}

// Returns when every rank had begun to do something.
int64_t AllBegunPs(const PathGraph& graph) {
  std::map<int64_t, int64_t> begins_ps;
  for (const GraphEvent& event : graph.events) {
    int64_t& begin_ps =
        begins_ps.emplace(graph.lanes[event.lane].rank, event.start_ps).first->second;
    begin_ps = std::min(begin_ps, event.start_ps);
  }
  int64_t last_ps = std::numeric_limits<int64_t>::min();
  for (const auto& [rank, begin_ps] : begins_ps) last_ps = std::max(last_ps, begin_ps);
  return last_ps;
}

// True when the first step takes far longer than the others, of which there are several.
bool IsOutlier(const StepTimes& times) {
  if (times.steps.size() < 3) return false;
  std::vector<int64_t> others_ps;
  for (size_t i = 1; i < times.steps.size(); ++i) others_ps.push_back(times.steps[i].length_ps());
  return times.steps.front().length_ps() / kOutlierFactor > MiddlePs(others_ps);
}

}  // namespace

std::optional<size_t> StepTimes::Find(int64_t time_ps) const {
  if (steps.empty() || time_ps < steps.front().start_ps || time_ps >= steps.back().end_ps) {
    return std::nullopt;
  }
  const auto after =
      std::upper_bound(steps.begin(), steps.end(), time_ps,
                       [](int64_t time, const StepTime& step) { return time < step.end_ps; });
  return after - steps.begin();
}

std::optional<int64_t> StepTimes::MedianPs() const {
  if (steps.empty()) return std::nullopt;
  std::vector<int64_t> lengths_ps;
  for (const StepTime& step : steps) lengths_ps.push_back(step.length_ps());
  return MiddlePs(lengths_ps);
}

std::optional<int64_t> StepTimes::MeanPs() const {
  if (steps.empty()) return std::nullopt;
  return (steps.back().end_ps - steps.front().start_ps) / static_cast<int64_t>(steps.size());
}

StepTimes FindStepTimes(const PathGraph& graph) {
  const std::map<int64_t, RankSteps> ranks = ReadRanks(graph);
  std::map<int64_t, std::vector<int64_t>> ends_ps;
  for (const auto& [rank, steps] : ranks) {
    for (const auto& [step, span] : steps.work) ends_ps[step].push_back(span.end_ps);
  }
  StepTimes times;
  for (const auto& [step, ends] : ends_ps) times.steps.push_back({step, 0, MiddlePs(ends)});
  if (times.steps.empty()) return times;
  std::stable_sort(times.steps.begin(), times.steps.end(),
                   [](const StepTime& a, const StepTime& b) { return a.end_ps < b.end_ps; });
  for (size_t i = 1; i < times.steps.size(); ++i) {
    times.steps[i].start_ps = times.steps[i - 1].end_ps;
  }
  StepTime& first = times.steps.front();
  const std::map<int64_t, int64_t> earlier_ends_ps = FindEarlierEnds(graph, first.step, ranks);
  std::vector<int64_t> begins_ps;
  bool has_earlier_work = false;
  for (const auto& [rank, steps] : ranks) {
    const auto begin = steps.begins_ps.find(first.step);
    if (begin == steps.begins_ps.end()) continue;
    int64_t begin_ps = begin->second;
    const auto earlier = earlier_ends_ps.find(rank);
    if (earlier != earlier_ends_ps.end() && earlier->second > begin_ps) {
      begin_ps = earlier->second;
      has_earlier_work = true;
    }
    begins_ps.push_back(begin_ps);
  }
  first.start_ps = std::min(MiddlePs(begins_ps), first.end_ps);
  if (has_earlier_work) times.before_end_ps = first.start_ps;
  const int64_t all_begun_ps = std::min(AllBegunPs(graph), first.end_ps);
  if (all_begun_ps > first.start_ps && IsOutlier(times)) {
    first.start_ps = all_begun_ps;
    times.before_end_ps = all_begun_ps;
  }
  return times;
}

}  // namespace meridian
