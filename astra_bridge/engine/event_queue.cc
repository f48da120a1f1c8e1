#include "astra_bridge/engine/event_queue.h"

#include <algorithm>

namespace meridian {

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
