// Which events and delays of a schedule an edit's conditions mean.
//
// Categories are those of events (cpu_op, runtime_api, kernel, memcpy, ...: event_category.h) and
//
//   groups   host, device, communication (device work that moves data between ranks), compute
//            (device work that does not)
//   delays   launch         from the call to the work it launched
//            kernel_gap     from work to the work that had to wait for it
//            host_gap       on a thread, outside of all that the trace shows
//
// Other conditions beside a delay are about the event that comes after it.
#ifndef CRITICAL_PATH_WHAT_IF_EVENT_INDEX_H_
#define CRITICAL_PATH_WHAT_IF_EVENT_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/what_if/schedule.h"
#include "critical_path/what_if/what_if_edits.h"

namespace meridian {

enum class Delay : uint8_t { kLaunch, kKernelGap, kHostGap };

// Returns which delay an edge is; nullopt when it stands for no time, or for an event's own.
std::optional<Delay> DelayOf(const Schedule& schedule, const GraphEdge& edge);

// Returns for each event whether it moves data between ranks.
std::vector<bool> FindCommunication(const Schedule& schedule);

// What conditions mean: events, or the delays before them.
struct Selection {
  // By event.
  std::vector<bool> events;
  // Of events or, if it has a delay, of edges.
  int64_t count = 0;
  std::optional<Delay> delay;
  // With a delay: whether the delay before no event, the window's end, is meant, too.
  bool includes_window_end = false;

  bool Contains(GraphEventId event) const {
    return event == kNoEvent ? includes_window_end : events[event];
  }
  // In order.
  std::vector<GraphEventId> ToVector() const;
};

// Of a schedule as it was when this was made.
class EventIndex {
 public:
  explicit EventIndex(const Schedule& schedule);

  // The event around it on its thread or, of device work, the call that launched it; or kNoEvent.
  GraphEventId Parent(GraphEventId event) const { return parents_[event]; }

  // Selects at least one event or delay. InvalidArgument for a category that does not exist, and
  // when nothing is meant: the message says what there is.
  absl::StatusOr<Selection> Select(const Selector& selector) const;

  // As Select, of events that are scheduled: a delay is refused.
  absl::StatusOr<Selection> SelectEvents(const Selector& selector) const;

 private:
  void FindExisting();
  void FindParents();
  // Edits keep the order of lanes, but not the times, right until the schedule is run.
  void NestByOrder();
  // For HTA's graphs, which have no order and take no edit that adds or moves events.
  void NestByTime();
  // Returns for each event whether it is of the one rank and waits for the other.
  std::vector<bool> FindWaiting(int64_t waiting_rank, int64_t awaited_rank) const;
  int64_t RankOf(GraphEventId event) const { return graph_.lanes[schedule_.LaneOf(event)].rank; }
  std::vector<bool> MatchNames(const Condition& condition) const;
  absl::Status Restrict(const Condition& condition, Selection* selection) const;
  absl::Status RestrictToCategory(const std::string& category, Selection* selection) const;
  bool IsWithin(const std::vector<bool>& names, GraphEventId event) const;
  int64_t CountDelays(const Selection& selection) const;
  std::string DescribeCandidates(const Selector& selector) const;

  const Schedule& schedule_;
  const PathGraph& graph_;
  // Those that have nodes, or on which time is booked; others were removed.
  std::vector<bool> exists_;
  std::vector<GraphEventId> parents_;
  const std::vector<bool> communicates_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_EVENT_INDEX_H_
