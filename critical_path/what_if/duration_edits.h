// Other times for the events and delays of a schedule. An event's own time is that which is booked
// on it: not that of the events within it, nor the delay before it.
#ifndef CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_
#define CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "critical_path/what_if/event_index.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

// Returns each event's own time. A node that waits for several things has its time once.
std::vector<int64_t> OwnTimes(const Schedule& schedule);

// Multiplies the times of the selection with a factor in millionths. OutOfRange when a time becomes
// longer than 106 days.
absl::Status ScaleTimes(const Selection& selection, int64_t factor, Schedule* schedule);

// Gives each delay, or the own time of each event, that length; an event that others interrupt
// keeps the proportions of its parts. FailedPrecondition for an event without an own part.
absl::Status SetTimes(const Selection& selection, int64_t duration_ps, Schedule* schedule);

// As SetTimes for events, with a length for each; negative: stays.
absl::Status SetOwnTimes(const std::vector<int64_t>& durations_ps, Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_DURATION_EDITS_H_
