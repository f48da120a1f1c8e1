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
// spread over those below it, in order. Of the events of a rank in one instant only the first lies
// there; it leads to the list of all.
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
  // The queue's own: `subject` is a rank whose events of this instant are due.
  kRankIsDue,
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
  explicit EventQueue(int32_t ranks) : ranks_(ranks) {}

  // Schedules an event of the network. The time is not before now_ns().
  void Schedule(int64_t time_ns, EventKind kind, uint32_t subject, uint32_t detail = 0) {
    Event event;
    event.time_ns = time_ns;
    event.subject = subject;
    event.detail = detail;
    event.kind = kind;
    const int bucket = BucketOf(time_ns);
    buckets_[bucket].push_back(event);
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
  static constexpr uint32_t kNone = ~uint32_t{0};

  // An event in the list of a rank and instant; `next` is its number in rank_events_.
  struct RankEvent {
    uint32_t subject = 0;
    uint32_t detail : 28;
    EventKind kind : 4;
    uint32_t next = kNone;
  };

  // The list of the events of a rank at one time: numbers of the first and the last.
  struct Instant {
    int64_t time_ns = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };

  // The instants of a rank in the order of time; those before `begin` are over.
  struct RankInstants {
    std::vector<Instant> instants;
    size_t begin = 0;
  };

  // Times are below 2^63, so 0 is the only bucket without a differing bit.
  int BucketOf(int64_t time_ns) const {
    const uint64_t difference = static_cast<uint64_t>(time_ns ^ now_ns_);
    return difference == 0 ? 0 : 64 - __builtin_clzll(difference);
  }

  // Takes the next event of the rank that is due; false when there is none left, and nothing is
  // due any more.
  bool PopDue(Event* event);

  // Returns the rank's list for an instant, and makes it due then if it is new.
  Instant& InstantOf(int32_t rank, int64_t time_ns);

  // Moves to the next instant that has events; false when there is none.
  bool Advance();

  int64_t now_ns_ = 0;

  std::array<std::vector<Event>, 64> buckets_;
  // Bit b: bucket b is not empty.
  uint64_t used_ = 0;
  // Position of the next event in bucket 0.
  size_t next_ = 0;

  // The instants at which each rank has events, indexed by rank.
  std::vector<RankInstants> ranks_;
  // The rank whose events of this instant are under way, or -1.
  int32_t due_rank_ = -1;
  // Events of all ranks by number; those that are over form a list of free numbers.
  std::vector<RankEvent> rank_events_;
  uint32_t free_rank_events_ = kNone;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_EVENT_QUEUE_H_
