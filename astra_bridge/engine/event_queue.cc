#include "astra_bridge/engine/event_queue.h"

#include <algorithm>

namespace meridian {

void EventQueue::ScheduleOnRank(int32_t rank, int64_t time_ns, EventKind kind, uint32_t subject,
                                uint32_t detail) {
  auto& [events, begin] = ranks_[rank];
  // Most events are scheduled for the last instant, or for one after it.
  size_t place = events.size();
  while (place > begin && events[place - 1].time_ns > time_ns) --place;
  const bool is_under_way = rank == due_rank_ && time_ns == now_ns_;
  if (!is_under_way && (place == begin || events[place - 1].time_ns < time_ns)) {
    Schedule(time_ns, EventKind::kRankIsDue, static_cast<uint32_t>(rank));
  }
  events.insert(events.begin() + static_cast<ptrdiff_t>(place),
                MakeEvent(time_ns, kind, subject, detail));
}

bool EventQueue::PopDue(Event* event) {
  auto& [events, begin] = ranks_[due_rank_];
  if (begin == events.size() || events[begin].time_ns > now_ns_) {
    due_rank_ = -1;
    return false;
  }
  *event = events[begin++];
  // So that as many are moved as are over.
  if (2 * begin >= events.size()) {
    events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(begin));
    begin = 0;
  }
  return true;
}

bool EventQueue::Advance() {
  buckets_[0].clear();
  next_ = 0;
  used_ &= ~uint64_t{1};
  if (used_ == 0) return false;
  const int lowest = __builtin_ctzll(used_);
  std::vector<Event>& bucket = buckets_[lowest];
  now_ns_ = std::min_element(bucket.begin(), bucket.end(), [](const Event& a, const Event& b) {
              return a.time_ns < b.time_ns;
            })->time_ns;
  for (const Event& event : bucket) {
    const int target = BucketOf(event.time_ns);
    buckets_[target].push_back(event);
    used_ |= uint64_t{1} << target;
  }
  bucket.clear();
  used_ &= ~(uint64_t{1} << lowest);
  return true;
}

}  // namespace meridian
