#include "critical_path/thread_walk.h"

#include <cstddef>
#include <queue>
#include <tuple>
#include <vector>

namespace meridian {
namespace {

// The events that have started and not ended.
class OpenEvents {
 public:
  bool empty() const { return ends_.empty(); }
  int64_t next_end_ps() const { return ends_.top().end_ps; }
  GraphEventId innermost() const { return stack_.empty() ? kNoEvent : stack_.back().event; }
  int64_t not_nested() const { return not_nested_; }

  void Open(GraphEventId event, int64_t end_ps) {
    ends_.push({end_ps, stack_.size()});
    stack_.push_back({event, /*is_open=*/true});
  }

  // Closes and returns the next to end.
  GraphEventId Close() {
    const size_t place = ends_.top().place;
    ends_.pop();
    const GraphEventId event = stack_[place].event;
    if (place + 1 != stack_.size()) ++not_nested_;
    stack_[place].is_open = false;
    while (!stack_.empty() && !stack_.back().is_open) stack_.pop_back();
    return event;
  }

 private:
  struct Entry {
    GraphEventId event;
    bool is_open;
  };
  struct End {
    int64_t end_ps;
    // In the stack; entries below an open one stay, so places do not change.
    size_t place;

    // The queue has the greatest on top: the earliest end, then the latest start.
    bool operator<(const End& other) const {
      return std::tie(other.end_ps, place) < std::tie(end_ps, other.place);
    }
  };

  std::vector<Entry> stack_;
  std::priority_queue<End> ends_;
  int64_t not_nested_ = 0;
};

}  // namespace

int64_t WalkThread(absl::Span<const GraphEvent> all_events, absl::Span<const GraphEventId> thread,
                   absl::FunctionRef<void(const ThreadStep&)> visit) {
  OpenEvents open;
  const auto close_next = [&] {
    const GraphEventId innermost = open.innermost();
    const GraphEventId event = open.Close();
    visit({event, /*is_start=*/false, innermost});
  };
  for (GraphEventId event : thread) {
    const int64_t start_ps = all_events[event].start_ps;
    while (!open.empty() && open.next_end_ps() <= start_ps) close_next();
    visit({event, /*is_start=*/true, open.innermost()});
    open.Open(event, start_ps + all_events[event].duration_ps);
  }
  while (!open.empty()) close_next();
  return open.not_nested();
}

}  // namespace meridian
