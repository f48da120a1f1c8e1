// SPDX-License-Identifier: Apache-2.0
// What is going to happen, in the order of time. Times of later messages depend on the order within
// an instant, so it is AstraSim's:
//   * events of the network happen in the order in which they were scheduled, also those scheduled
//     while their instant is under way;
//   * a rank's own events of an instant happen one after another, when the first of them would.
//
//   scheduled for 7 ns:   link 3, rank 0: a, rank 1: b, link 4, rank 0: c
//   happen as:            link 3, rank 0: a, rank 0: c, rank 1: b, link 4
//
// A radix heap: no event is scheduled for the past, so an event lies in the bucket of the highest
// bit in which its time differs from now. When bucket 0 is used up, the lowest bucket in use is
// spread over those below it, in order. Events of a rank lie in a list of its own, and the heap says at
// which instants it is due.
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
  // `subject` is a rank and `detail` the position of a send whose message, not simulated, is there.
  kSendDone,
  // `subject` is a rank and `detail` the position of a transfer that begins after its overhead.
  kStarted,
  // `subject` is a rank and `detail` the position of a node that is ready after its delay.
  kReady,
  // `subject` is a rank whose access to shared memory is over.
  kMemoryFree,
  // The queue's own: `subject` is a rank whose events of this instant are due.
  kRankIsDue,
};

struct Event {
  int64_t time_ns = 0;
  uint32_t subject = 0;
  uint32_t detail : 28;
  EventKind kind : 4;
};

// Positions of nodes and members must fit into an event. In place of nodes of the workload, which are
// fewer, numbers from here on stand for operations of custom algorithms that are under way.
inline constexpr uint32_t kFirstOperation = uint32_t{1} << 27;

class EventQueue {
 public:
  explicit EventQueue(int32_t ranks) : ranks_(ranks) {}

  // Schedules an event of the network. The time is not before now_ns().
  void Schedule(int64_t time_ns, EventKind kind, uint32_t subject, uint32_t detail = 0) {
    const int bucket = BucketOf(time_ns);
    buckets_[bucket].push_back(MakeEvent(time_ns, kind, subject, detail));
    used_ |= uint64_t{1} << bucket;
  }

  // Schedules an event of a rank.
  void ScheduleOnRank(int32_t rank, int64_t time_ns, EventKind kind, uint32_t subject,
                      uint32_t detail = 0);

  // Takes the next event and moves now_ns() to its time. False when there is no event left.
  bool Pop(Event* event) {
    while (true) {
      if (due_rank_ >= 0 && PopDue(event)) return true;
      if (next_ == buckets_[0].size() && !Advance()) return false;
      *event = buckets_[0][next_++];
      if (event->kind != EventKind::kRankIsDue) return true;
      due_rank_ = static_cast<int32_t>(event->subject);
    }
  }

  int64_t now_ns() const { return now_ns_; }

 private:
  // The events of a rank in the order of time; those before `begin` are over.
  struct RankEvents {
    std::vector<Event> events;
    size_t begin = 0;
  };

  static Event MakeEvent(int64_t time_ns, EventKind kind, uint32_t subject, uint32_t detail) {
    Event event;
    event.time_ns = time_ns;
    event.subject = subject;
    event.detail = detail;
    event.kind = kind;
    return event;
  }

  // Times are below 2^63, so 0 is the only bucket without a differing bit.
  int BucketOf(int64_t time_ns) const {
    const uint64_t difference = static_cast<uint64_t>(time_ns ^ now_ns_);
    return difference == 0 ? 0 : 64 - __builtin_clzll(difference);
  }

  // Takes the next event of the rank that is due; false when there is none left, and nothing is
  // due any more.
  bool PopDue(Event* event);

  // Moves to the next instant that has events; false when there is none.
  bool Advance();

  int64_t now_ns_ = 0;

  std::array<std::vector<Event>, 64> buckets_;
  // Bit b: bucket b is not empty.
  uint64_t used_ = 0;
  // Position of the next event in bucket 0.
  size_t next_ = 0;

  // Indexed by rank.
  std::vector<RankEvents> ranks_;
  // The rank whose events of this instant are under way, or -1.
  int32_t due_rank_ = -1;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_EVENT_QUEUE_H_
