#include "astra_bridge/engine/event_queue.h"

#include <algorithm>

namespace meridian {

void EventQueue::ScheduleOnRank(int32_t rank, int64_t time_ns, EventKind kind, uint32_t subject,
                                uint32_t detail) {
  uint32_t number = free_rank_events_;
  if (number == kNone) {
    number = static_cast<uint32_t>(rank_events_.size());
    rank_events_.emplace_back();
  } else {
    free_rank_events_ = rank_events_[number].next;
  }
  RankEvent& event = rank_events_[number];
  event.subject = subject;
  event.detail = detail;
  event.kind = kind;
  event.next = kNone;
  Instant& instant = InstantOf(rank, time_ns);
  if (instant.first == kNone) {
    instant.first = number;
  } else {
    rank_events_[instant.last].next = number;
  }
  instant.last = number;
}

EventQueue::Instant& EventQueue::InstantOf(int32_t rank, int64_t time_ns) {
  std::vector<Instant>& instants = ranks_[rank].instants;
  // Most events are scheduled for the last instant, or for one after it.
  size_t place = instants.size();
  while (place > ranks_[rank].begin && instants[place - 1].time_ns >= time_ns) --place;
  if (place < instants.size() && instants[place].time_ns == time_ns) return instants[place];
  Schedule(time_ns, EventKind::kRankIsDue, static_cast<uint32_t>(rank));
  Instant instant;
  instant.time_ns = time_ns;
  return *instants.insert(instants.begin() + static_cast<ptrdiff_t>(place), instant);
}

bool EventQueue::PopDue(Event* event) {
  RankInstants& rank = ranks_[due_rank_];
  Instant& instant = rank.instants[rank.begin];
  const uint32_t number = instant.first;
  if (number == kNone) {
    due_rank_ = -1;
    // So that as many are moved as are over.
    if (2 * ++rank.begin >= rank.instants.size()) {
      rank.instants.erase(rank.instants.begin(),
                          rank.instants.begin() + static_cast<ptrdiff_t>(rank.begin));
      rank.begin = 0;
    }
    return false;
  }
  RankEvent& due = rank_events_[number];
  event->time_ns = now_ns_;
  event->subject = due.subject;
  event->detail = due.detail;
  event->kind = due.kind;
  instant.first = due.next;
  due.next = free_rank_events_;
  free_rank_events_ = number;
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
