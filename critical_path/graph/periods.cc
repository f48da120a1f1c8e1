#include "critical_path/graph/periods.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace meridian {
namespace {

constexpr size_t kFewestPeriods = 3;
// How much of the stream's work has to repeat.
constexpr double kRepeatingShare = 0.5;
// How many meetings, at most, may have members of two periods.
constexpr double kTornShare = 0.05;

// The longest beginning of a sequence that repeats itself.
struct Repetition {
  size_t length = 0;
  size_t period = 0;
};

// In linear time: the period of a beginning is its length less that of its longest border, which is
// both a beginning and an end of it.
Repetition FindRepetition(const std::vector<NameId>& names) {
  Repetition found;
  std::vector<size_t> border(names.size() + 1);
  for (size_t length = 2; length <= names.size(); ++length) {
    size_t candidate = border[length - 1];
    while (candidate > 0 && names[candidate] != names[length - 1]) candidate = border[candidate];
    border[length] = names[candidate] == names[length - 1] ? candidate + 1 : 0;
    const size_t period = length - border[length];
    if (length / period >= kFewestPeriods) found = {length, period};
  }
  return found;
}

struct RepeatingWork {
  // The work that repeats, in order of the starts.
  std::vector<GraphEventId> events;
  size_t period = 0;
  // Whether the stream's last work is the last of it.
  bool is_last = false;
};

// Takes a stream's work in order of the starts.
std::optional<RepeatingWork> FindRepeatingWork(const PathGraph& graph,
                                               const std::vector<GraphEventId>& work) {
  std::vector<NameId> names;
  for (const GraphEventId id : work) names.push_back(graph.events[id].name);
  const Repetition forward = FindRepetition(names);
  std::reverse(names.begin(), names.end());
  const Repetition backward = FindRepetition(names);
  const bool at_start = forward.length >= backward.length;
  const Repetition& repetition = at_start ? forward : backward;
  if (repetition.length == 0 ||
      static_cast<double>(repetition.length) < kRepeatingShare * static_cast<double>(work.size())) {
    return std::nullopt;
  }
  const size_t first = at_start ? 0 : work.size() - repetition.length;
  RepeatingWork found;
  found.events.assign(work.begin() + first, work.begin() + first + repetition.length);
  found.period = repetition.period;
  found.is_last = first + repetition.length == work.size();
  return found;
}

// Adds up how long the stream had been idle at each place of a period, in ps.
void AddIdleTimes(const PathGraph& graph, const RepeatingWork& work, std::vector<double>* idle_ps) {
  for (size_t i = 1; i < work.events.size(); ++i) {
    const GraphEvent& before = graph.events[work.events[i - 1]];
    (*idle_ps)[i % work.period] += static_cast<double>(graph.events[work.events[i]].start_ps) -
                                   static_cast<double>(before.start_ps) -
                                   static_cast<double>(before.duration_ps);
  }
}

// When the periods of a rank begin; the last time ends the last one.
using Bounds = std::vector<int64_t>;

Bounds FindBounds(const PathGraph& graph, const RepeatingWork& work, size_t phase) {
  Bounds bounds;
  for (size_t i = phase; i < work.events.size(); i += work.period) {
    bounds.push_back(graph.events[work.events[i]].start_ps);
  }
  // The last one counts only if it is whole.
  if (work.is_last && (work.events.size() - phase) % work.period == 0) {
    const GraphEvent& end = graph.events[work.events.back()];
    bounds.push_back(end.start_ps + end.duration_ps);
  }
  return bounds;
}

// Returns the period that a time lies in, or kNoStep.
int64_t PeriodAt(const Bounds& bounds, int64_t time_ps) {
  if (time_ps < bounds.front() || time_ps >= bounds.back()) return kNoStep;
  return std::upper_bound(bounds.begin(), bounds.end(), time_ps) - bounds.begin() - 1;
}

bool Computes(const PathGraph& graph) {
  const auto has = [&](BoundBy bound_by) {
    return std::any_of(graph.edges.begin(), graph.edges.end(),
                       [&](const GraphEdge& edge) { return edge.bound_by == bound_by; });
  };
  return has(BoundBy::kGpuCompute) || !has(BoundBy::kGpuCommunication);
}

// Returns by rank when its periods begin; nullopt when work does not repeat, or not alike.
std::optional<std::map<int64_t, Bounds>> FindPeriods(const PathGraph& graph) {
  // By rank and lane: device work in order of the starts.
  std::map<int64_t, std::map<LaneId, std::vector<GraphEventId>>> ranks;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const GraphEvent& event = graph.events[id];
    if (event.step != kNoStep) return std::nullopt;
    const Lane& lane = graph.lanes[event.lane];
    if (lane.kind == TrackKind::kDevice) ranks[lane.rank][event.lane].push_back(id);
  }
  std::map<int64_t, RepeatingWork> repeating;
  std::vector<double> idle_ps;
  for (auto& [rank, lanes] : ranks) {
    std::vector<GraphEventId>& busiest =
        std::max_element(lanes.begin(), lanes.end(), [](const auto& a, const auto& b) {
          return a.second.size() < b.second.size();
        })->second;
    std::stable_sort(busiest.begin(), busiest.end(), [&](GraphEventId a, GraphEventId b) {
      return graph.events[a].start_ps < graph.events[b].start_ps;
    });
    std::optional<RepeatingWork> found = FindRepeatingWork(graph, busiest);
    if (!found.has_value() || (found->period == 1 && !Computes(graph))) return std::nullopt;
    // All ranks do the same.
    if (idle_ps.empty()) idle_ps.resize(found->period);
    if (found->period != idle_ps.size() ||
        (!repeating.empty() && repeating.begin()->second.events.size() != found->events.size())) {
      return std::nullopt;
    }
    AddIdleTimes(graph, *found, &idle_ps);
    repeating[rank] = *std::move(found);
  }
  if (repeating.empty()) return std::nullopt;
  const size_t phase = std::max_element(idle_ps.begin(), idle_ps.end()) - idle_ps.begin();
  std::map<int64_t, Bounds> bounds;
  for (const auto& [rank, work] : repeating) {
    bounds[rank] = FindBounds(graph, work, phase);
    // One that begins elsewhere than the work may lack a period.
    if (bounds[rank].size() < kFewestPeriods) return std::nullopt;
  }
  return bounds;
}

}  // namespace

bool MarkPeriods(PathGraph* graph) {
  std::optional<std::map<int64_t, Bounds>> bounds = FindPeriods(*graph);
  if (!bounds.has_value()) return false;
  std::vector<int64_t> steps(graph->events.size(), kNoStep);
  for (GraphEventId id = 0; id < graph->events.size(); ++id) {
    const Lane& lane = graph->lanes[graph->events[id].lane];
    if (lane.kind != TrackKind::kDevice) continue;
    steps[id] = PeriodAt((*bounds)[lane.rank], graph->events[id].start_ps);
  }
  // What ranks do together, they do in one period.
  std::map<InstantId, std::optional<int64_t>> met;
  for (const GraphMeeting& meeting : graph->meetings) met[meeting.instant];
  size_t torn = 0, joined = 0;
  for (const GraphEdge& edge : graph->edges) {
    const auto meeting = met.find(edge.to);
    const GraphEventId event = graph->instants[edge.from].event;
    if (meeting == met.end() || event == kNoEvent) continue;
    if (!meeting->second.has_value()) meeting->second = steps[event];
    ++joined;
    torn += *meeting->second == steps[event] ? 0 : 1;
  }
  if (static_cast<double>(torn) > kTornShare * static_cast<double>(joined)) return false;
  for (GraphEventId id = 0; id < graph->events.size(); ++id) graph->events[id].step = steps[id];
  for (GraphMeeting& meeting : graph->meetings) {
    const std::optional<int64_t> step = met[meeting.instant];
    if (step.value_or(kNoStep) != kNoStep) meeting.step = step;
  }
  return true;
}

}  // namespace meridian
