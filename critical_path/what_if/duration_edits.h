// SPDX-License-Identifier: Apache-2.0
// Other times for the events and delays of a what-if graph. An event's own time is that which is
// booked on it: not that of the events within it, nor the delay before it.
#ifndef CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_
#define CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/selection.h"
#include "critical_path/what_if/what_if_graph.h"
#include "xla_profiler/base/buckets.h"

namespace meridian {

// Returns each event's own time. An instant that waits for several things has its time once.
std::vector<int64_t> OwnTimes(const WhatIfGraph& edited);

// Multiplies the times of the selection with a factor in millionths. OutOfRange when a time becomes
// longer than 106 days.
absl::Status ScaleTimes(const Selection& selection, int64_t factor, WhatIfGraph* edited);

// Gives each delay, or the own time of each event, that length; an event that others interrupt
// keeps the proportions of its parts. FailedPrecondition for an event without an own part.
absl::Status SetTimes(const Selection& selection, int64_t duration_ps, WhatIfGraph* edited);

// Which events of the ranks are the same work: those of the same name and step, on a device or on the
// same one of the host's threads, that have as many of these before them on their rank. Made of a
// graph with the measured times, it serves all its edits.
class RankCounterparts {
 public:
  explicit RankCounterparts(const WhatIfGraph& measured);

  // Returns the event and its counterparts, at most one of each rank; nothing for an event without
  // instants.
  absl::Span<const GraphEventId> Of(GraphEventId event) const {
    if (numbers_[event] == kNone) return {};
    return events_.Of(numbers_[event]);
  }
  const EdgesByInstant& incoming() const { return incoming_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  EdgesByInstant incoming_;
  // By event: the number of its work; and the events by that number.
  std::vector<uint32_t> numbers_;
  Buckets<GraphEventId> events_;
};

// Makes one rank not slower than the others:
//
//   rank 0           |-op-|--gap--|-op-|all-reduce . . .|     waits for rank 1, which is slow
//   rank 1           |--op--|---gap---|---op---|all-reduce|
//   rank 1, levelled |-op-|--gap--|-op-|all-reduce|           its times are now the others' median
//
// The own time of each of the rank's events, and each delay before one (host gaps, launches, gaps
// between kernels), becomes the median of that of its counterparts, if that is less; the median of an
// even number is the lower of the middle two. What communicates keeps its time, which is that of the network and
// of the other ranks. Waiting for the slow rank need not be removed: the graph is run again, and
// nobody waits then.
//
// Returns how many events of the rank have a counterpart. InvalidArgument when the graph has no
// other rank, or no event of the rank has a counterpart.
absl::StatusOr<int64_t> LevelRank(int64_t rank, WhatIfGraph* edited);
absl::StatusOr<int64_t> LevelRank(int64_t rank, const RankCounterparts& counterparts,
                                  WhatIfGraph* edited);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_
