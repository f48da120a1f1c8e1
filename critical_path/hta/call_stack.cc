#include "critical_path/hta/call_stack.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace meridian {

void WalkCallStack(
    const std::vector<GraphEvent>& all_events, std::vector<GraphEventId> thread,
    absl::FunctionRef<void(GraphEventId event, GraphEventId parent, bool enters)> visit) {
  std::sort(thread.begin(), thread.end(), [&](GraphEventId a, GraphEventId b) {
    return std::make_tuple(all_events[a].start_ps, -all_events[a].duration_ps, a) <
           std::make_tuple(all_events[b].start_ps, -all_events[b].duration_ps, b);
  });
  // Ends to come, the next on top. Whose they are does not matter.
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>> ends_ps;
  // Open events, each with its parent, the innermost last.
  std::vector<std::pair<GraphEventId, GraphEventId>> open;
  const auto leave = [&] {
    visit(open.back().first, open.back().second, /*enters=*/false);
    open.pop_back();
    ends_ps.pop();
  };
  for (GraphEventId event : thread) {
    const GraphEvent& call = all_events[event];
    while (!ends_ps.empty() && ends_ps.top() <= call.start_ps) leave();
    const GraphEventId parent = open.empty() ? kNoEvent : open.back().first;
    visit(event, parent, /*enters=*/true);
    open.emplace_back(event, parent);
    ends_ps.push(call.start_ps + call.duration_ps);
  }
  while (!ends_ps.empty()) leave();
}

}  // namespace meridian
