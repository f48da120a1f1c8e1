#include "critical_path/graph/step_times.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// A first step that takes so many times what others take, while a rank had not begun, was recorded
// before the run had.
constexpr int64_t kOutlierFactor = 2;

int64_t MiddlePs(const std::vector<int64_t>& times_ps) {
  // Times of ranks may lie farther apart than a number holds.
  const absl::int128 sum = absl::int128(LowerMedian(times_ps)) + UpperMedian(times_ps);
  return static_cast<int64_t>(sum / 2);
}

struct Span {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

struct RankSteps {
  // By step: the work that tells when it ended, from its first start to its last end.
  std::map<int64_t, Span> work;
  // By step: when anything of it began, on the host or on a device.
  std::map<int64_t, int64_t> begins_ps;
};

int64_t EndOf(const GraphEvent& event) { return event.start_ps + event.duration_ps; }

std::map<int64_t, RankSteps> ReadRanks(const PathGraph& graph) {
  bool has_device_steps = false;
  for (const GraphEvent& event : graph.events) {
    has_device_steps |= event.step != kNoStep && graph.lanes[event.lane].kind == TrackKind::kDevice;
  }
  std::map<int64_t, RankSteps> ranks;
  // By lane: the step of its last event, and what is known of that; events of a step come together.
  struct Known {
    int64_t step = kNoStep;
    int64_t* begin_ps = nullptr;
    Span* work = nullptr;
  };
  std::vector<Known> last(graph.lanes.size());
  for (const GraphEvent& event : graph.events) {
    if (event.step == kNoStep) continue;
    const Lane& lane = graph.lanes[event.lane];
    const bool is_work = !has_device_steps || lane.kind == TrackKind::kDevice;
    const Span span = {event.start_ps, EndOf(event)};
    Known& known = last[event.lane];
    if (known.step != event.step) {
      RankSteps& rank = ranks[lane.rank];
      known.step = event.step;
      known.begin_ps = &rank.begins_ps.try_emplace(event.step, event.start_ps).first->second;
      known.work = is_work ? &rank.work.try_emplace(event.step, span).first->second : nullptr;
    }
    *known.begin_ps = std::min(*known.begin_ps, event.start_ps);
    if (known.work == nullptr) continue;
    known.work->start_ps = std::min(known.work->start_ps, span.start_ps);
    known.work->end_ps = std::max(known.work->end_ps, span.end_ps);
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
    int64_t& last_ps = ends_ps.try_emplace(lane.rank, end_ps).first->second;
    last_ps = std::max(last_ps, end_ps);
  }
  return ends_ps;
}

int64_t AllBegunPs(const PathGraph& graph) {
  int64_t last_ps = std::numeric_limits<int64_t>::min();
  for (const auto& [rank, begin_ps] : FindBegins(graph)) last_ps = std::max(last_ps, begin_ps);
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

std::map<int64_t, int64_t> FindBegins(const PathGraph& graph) {
  std::vector<int64_t> lanes_ps(graph.lanes.size(), std::numeric_limits<int64_t>::max());
  for (const GraphEvent& event : graph.events) {
    lanes_ps[event.lane] = std::min(lanes_ps[event.lane], event.start_ps);
  }
  std::map<int64_t, int64_t> begins_ps;
  for (LaneId lane = 0; lane < lanes_ps.size(); ++lane) {
    // An edit may have removed all that a lane did.
    if (lanes_ps[lane] == std::numeric_limits<int64_t>::max()) continue;
    int64_t& begin_ps = begins_ps.try_emplace(graph.lanes[lane].rank, lanes_ps[lane]).first->second;
    begin_ps = std::min(begin_ps, lanes_ps[lane]);
  }
  return begins_ps;
}

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

std::optional<int64_t> StepTimes::ReplayStartPs() const {
  return before_end_ps.has_value() && steps.size() > 1 ? steps[0].last_end_ps : before_end_ps;
}

std::optional<int64_t> StepTimes::MeanPs() const {
  if (steps.empty()) return std::nullopt;
  const auto count = static_cast<int64_t>(steps.size());
  if (before_end_ps.has_value() && count > 1) {
    return (steps.back().last_end_ps - steps[0].last_end_ps) / (count - 1);
  }
  return (steps.back().end_ps - steps[0].start_ps) / count;
}

StepTimes FindStepTimes(const PathGraph& graph) {
  const std::map<int64_t, RankSteps> ranks = ReadRanks(graph);
  std::map<int64_t, std::vector<int64_t>> ends_ps;
  for (const auto& [rank, steps] : ranks) {
    for (const auto& [step, span] : steps.work) ends_ps[step].push_back(span.end_ps);
  }
  StepTimes times;
  for (const auto& [step, ends] : ends_ps) {
    times.steps.push_back({step, 0, MiddlePs(ends), *std::max_element(ends.begin(), ends.end())});
  }
  if (times.steps.empty()) return times;
  std::stable_sort(times.steps.begin(), times.steps.end(),
                   [](const StepTime& a, const StepTime& b) { return a.end_ps < b.end_ps; });
  for (size_t i = 1; i < times.steps.size(); ++i) {
    times.steps[i].start_ps = times.steps[i - 1].end_ps;
  }
  StepTime& first = times.steps.front();
  const std::map<int64_t, int64_t> earlier_ends_ps = FindEarlierEnds(graph, first.step, ranks);
  std::map<int64_t, int64_t> marks_ps;
  for (const StepMark& mark : graph.marks) {
    if (mark.step == first.step) marks_ps[mark.rank] = mark.start_ps;
  }
  std::vector<int64_t> begins_ps;
  bool has_earlier_work = false;
  for (const auto& [rank, steps] : ranks) {
    const auto begin = steps.begins_ps.find(first.step);
    if (begin == steps.begins_ps.end()) continue;
    const auto mark = marks_ps.find(rank);
    int64_t begin_ps =
        mark == marks_ps.end() ? begin->second : std::min(begin->second, mark->second);
    const auto earlier = earlier_ends_ps.find(rank);
    if (earlier != earlier_ends_ps.end() && earlier->second > begin_ps) {
      begin_ps = earlier->second;
      has_earlier_work = true;
    }
    begins_ps.push_back(begin_ps);
  }
  first.start_ps = std::min(MiddlePs(begins_ps), first.end_ps);
  if (has_earlier_work) times.before_end_ps = first.start_ps;
  if (graph.first_step_waits_for_all) {
    first.start_ps = std::clamp(AllBegunPs(graph), first.start_ps, first.end_ps);
    times.before_end_ps = first.start_ps;
  }
  return times;
}

void FindLateBeginning(PathGraph* graph) {
  const StepTimes times = FindStepTimes(*graph);
  if (!IsOutlier(times)) return;
  const int64_t all_begun_ps = AllBegunPs(*graph);
  graph->first_step_waits_for_all =
      all_begun_ps > times.steps.front().start_ps && all_begun_ps <= times.steps.front().end_ps;
}

}  // namespace meridian
