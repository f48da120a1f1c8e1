#include "critical_path/graph/path_graph.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "xla_profiler/dependencies/inferred_waits.h"

namespace meridian {
namespace {

// Of causes at one time that with the least number explains best.
int Preference(const Cause& cause) {
  switch (cause.type) {
    case EdgeType::kKernelKernelDelay:
      return 0;
    case EdgeType::kSyncDependency:
      return 1;
    case EdgeType::kKernelLaunchDelay:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

absl::string_view EdgeTypeName(EdgeType type) {
  // The names in the order of EdgeType.
  constexpr absl::string_view kNames[kNumEdgeTypes] = {
      "operator", "dependency", "kernel_launch_delay", "kernel_kernel_delay", "sync_dependency"};
  return kNames[static_cast<int>(type)];
}

absl::string_view BoundByName(BoundBy bound_by) {
  // The names in the order of BoundBy.
  constexpr absl::string_view kNames[kNumBoundBy] = {"",
                                                     "cpu_bound",
                                                     "data_loading",
                                                     "gpu_compute_bound",
                                                     "gpu_communication_bound",
                                                     "gpu_kernel_kernel_overhead",
                                                     "gpu_kernel_launch_overhead",
                                                     "host_gap",
                                                     "wait_for_other_ranks",
                                                     "device_not_in_trace",
                                                     "before_step"};
  return kNames[static_cast<int>(bound_by)];
}

absl::string_view BoundByName(BoundBy bound_by, bool without_gpus) {
  absl::string_view name = BoundByName(bound_by);
  if (without_gpus) absl::ConsumePrefix(&name, "gpu_");
  return name;
}

BoundBy StartDelayBoundBy(BoundBy overhead, int64_t delay_ps) {
  return delay_ps > kMaxStartDelayPs ? BoundBy::kNotInTrace : overhead;
}

bool TimesFit(const PathGraph& graph) {
  const auto fits = [](int64_t ps) { return -kTimeLimitPs < ps && ps < kTimeLimitPs; };
  return fits(graph.window_start_ps) && fits(graph.window_end_ps) &&
         absl::c_all_of(graph.marks, [&](const StepMark& m) { return fits(m.start_ps); }) &&
         absl::c_all_of(graph.instants, [&](const Instant& i) { return fits(i.time_ps); }) &&
         absl::c_all_of(graph.edges, [&](const GraphEdge& e) { return fits(e.weight_ps); }) &&
         absl::c_all_of(graph.events, [&](const GraphEvent& e) {
           return fits(e.start_ps) && fits(e.duration_ps);
         });
}

int64_t CountJoinedInstants(const PathGraph& graph) {
  std::vector<bool> joined(graph.instants.size());
  for (const GraphEdge& edge : graph.edges) joined[edge.from] = joined[edge.to] = true;
  return std::count(joined.begin(), joined.end(), true);
}

void AddInstants(PathGraph* graph) {
  graph->instants.reserve(2 * graph->events.size() + 2);
  graph->instants.push_back({graph->window_start_ps, kNoEvent, /*is_start=*/true});
  for (GraphEventId id = 0; id < graph->events.size(); ++id) {
    const GraphEvent& event = graph->events[id];
    graph->instants.push_back({event.start_ps, id, /*is_start=*/true});
    graph->instants.push_back({event.start_ps + event.duration_ps, id, /*is_start=*/false});
  }
  graph->end_instant = static_cast<InstantId>(graph->instants.size());
  graph->instants.push_back({graph->window_end_ps, kNoEvent, /*is_start=*/false});
}

void AddCauses(InstantId to, bool has_time, Causes* causes, PathGraph* graph) {
  std::sort(causes->begin(), causes->end(), [](const Cause& a, const Cause& b) {
    return std::make_tuple(a.instant, Preference(a)) < std::make_tuple(b.instant, Preference(b));
  });
  causes->erase(std::unique(causes->begin(), causes->end(),
                            [](const Cause& a, const Cause& b) { return a.instant == b.instant; }),
                causes->end());
  const auto last =
      std::max_element(causes->begin(), causes->end(), [&](const Cause& a, const Cause& b) {
        return std::make_tuple(graph->Time(a.instant), -Preference(a)) <
               std::make_tuple(graph->Time(b.instant), -Preference(b));
      });
  for (auto cause = causes->begin(); cause != causes->end(); ++cause) {
    if (has_time && cause == last) {
      graph->AddTimed(cause->instant, to, cause->type, cause->bound_by, cause->event);
    } else {
      graph->AddUntimed(cause->instant, to, cause->type);
    }
  }
}

void WalkThread(absl::Span<const GraphEvent> all_events, absl::Span<const GraphEventId> thread,
                absl::FunctionRef<void(const ThreadStep&)> visit) {
  // The events that have started, in that order; kNoEvent in the place of one that has ended before
  // another that started later.
  std::vector<GraphEventId> open;
  // Ends to come and places in `open`. On top is the earliest end, which has the greatest
  // complement, and of equal ends that of the event that started last.
  std::priority_queue<std::pair<int64_t, size_t>> ends;
  const auto close_next = [&] {
    const size_t place = ends.top().second;
    ends.pop();
    const ThreadStep step = {open[place], /*is_start=*/false, open.back()};
    open[place] = kNoEvent;
    while (!open.empty() && open.back() == kNoEvent) open.pop_back();
    visit(step);
  };
  for (GraphEventId event : thread) {
    const int64_t start_ps = all_events[event].start_ps;
    while (!ends.empty() && ~ends.top().first <= start_ps) close_next();
    visit({event, /*is_start=*/true, open.empty() ? kNoEvent : open.back()});
    ends.emplace(~(start_ps + all_events[event].duration_ps), open.size());
    open.push_back(event);
  }
  while (!ends.empty()) close_next();
}

std::vector<InstantId> MeetingsByEvent(const PathGraph& graph) {
  std::vector<InstantId> meetings(graph.events.size(), kNoInstant);
  std::vector<bool> is_meeting(graph.instants.size());
  for (const GraphMeeting& meeting : graph.meetings) is_meeting[meeting.instant] = true;
  for (const GraphEdge& edge : graph.edges) {
    const Instant& from = graph.instants[edge.from];
    if (!is_meeting[edge.to] || !from.is_start || from.event == kNoEvent) continue;
    meetings[from.event] = edge.to;
  }
  return meetings;
}

}  // namespace meridian
