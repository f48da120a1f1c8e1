// What is going to happen, in the order of time. Events of one instant keep the order in which they
// were scheduled, also those scheduled while that instant is under way: times of later messages
// depend on it.
//
// A radix heap: no event is scheduled for the past, so an event lies in the bucket of the highest
// bit in which its time differs from now. When bucket 0 is used up, the lowest bucket in use is
// spread over those below it, in order.
//
//   now = 0b0100   bucket 0: 0100   1: 0101   2: 0110, 0111   3: -   4: 1000 ... 1111
#ifndef ASTRA_BRIDGE_ENGINE_EVENT_QUEUE_H_
#define ASTRA_BRIDGE_ENGINE_EVENT_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace meridian {

enum class EventKind : uint32_t {
  // `subject` is a stream of a collective that has a message prepared.
  kPrepared,
  // The same, but what was received is yet to be reduced.
  kReduce,
  // A stream takes a message that had arrived before it was expected.
  kTaken,
  // `subject` is a message that has crossed a link, or the whole network.
  kCrossed,
  // `subject` is a link that can send again.
  kLinkFree,
  // `subject` is a rank and `detail` the position of a node that is over.
  kNodeDone,
  // `subject` is a collective and `detail` a member for which it is over as a whole.
  kMemberDone,
};

struct Event {
  int64_t time_ns = 0;
  uint32_t subject = 0;
  uint32_t detail : 28;
  EventKind kind : 4;
};

// Positions of nodes and members must fit into an event.
inline constexpr size_t kMaxEventDetail = (size_t{1} << 28) - 1;

class EventQueue {
 public:
  // The time is not before now_ns().
  void Schedule(int64_t time_ns, EventKind kind, uint32_t subject, uint32_t detail = 0) {
    Event event;
    event.time_ns = time_ns;
    event.subject = subject;
    event.detail = detail;
    event.kind = kind;
    const int bucket = BucketOf(time_ns);
    buckets_[bucket].push_back(event);
    used_ |= uint64_t{1} << bucket;
    ++size_;
  }

  // Takes the next event and moves now_ns() to its time. False when there is none.
  bool Pop(Event* event) {
    if (next_ == buckets_[0].size() && !Advance()) return false;
    *event = buckets_[0][next_++];
    --size_;
    return true;
  }

  int64_t now_ns() const { return now_ns_; }
  size_t size() const { return size_; }

 private:
  // Times are below 2^63, so 0 is the only bucket without a differing bit.
  int BucketOf(int64_t time_ns) const {
    const uint64_t difference = static_cast<uint64_t>(time_ns ^ now_ns_);
    return difference == 0 ? 0 : 64 - __builtin_clzll(difference);
  }

  // Moves to the next instant that has events.
  bool Advance();

  int64_t now_ns_ = 0;
  std::array<std::vector<Event>, 64> buckets_;
  // Bit b: bucket b is not empty.
  uint64_t used_ = 0;
  // In bucket 0.
  size_t next_ = 0;
  size_t size_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_EVENT_QUEUE_H_
