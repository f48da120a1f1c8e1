#include "critical_path/graph/thread_walk.h"

#include <cstddef>
#include <queue>
#include <utility>
#include <vector>

namespace meridian {

int64_t WalkThread(absl::Span<const GraphEvent> all_events, absl::Span<const GraphEventId> thread,
                   absl::FunctionRef<void(const ThreadStep&)> visit) {
  // The events that have started, in that order; kNoEvent in the place of one that has ended before
  // another that started later.
  std::vector<GraphEventId> open;
  // Ends to come and places in `open`. On top is the earliest end, which has the greatest
  // complement, and of equal ends that of the event that started last.
  std::priority_queue<std::pair<int64_t, size_t>> ends;
  int64_t not_nested = 0;
  const auto close_next = [&] {
    const size_t place = ends.top().second;
    ends.pop();
    const ThreadStep step = {open[place], /*is_start=*/false, open.back()};
    if (place + 1 != open.size()) ++not_nested;
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
  return not_nested;
}

}  // namespace meridian
