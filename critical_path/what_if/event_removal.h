// SPDX-License-Identifier: Apache-2.0
// What a schedule would be without some of its events.
#ifndef CRITICAL_PATH_WHAT_IF_EVENT_REMOVAL_H_
#define CRITICAL_PATH_WHAT_IF_EVENT_REMOVAL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "critical_path/what_if/event_index.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

// Removes events, of a schedule that keeps its lanes' order, with all that runs within them and all
// device work they launched. On a thread the gaps around them and the time of what is around them
// stay; what waited for removed work waits for the work before it on its stream. The events keep
// their numbers, without instants. Returns how many were removed. InvalidArgument when nothing
// would be left.
absl::StatusOr<int64_t> RemoveEvents(const EventIndex& index, const Selection& selection,
                                     Schedule* schedule);

// Takes events that were removed, and meetings to which nobody comes any more, out of the tables:
// events and instants get new numbers, in the same order; edges keep theirs.
void DropRemoved(Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_EVENT_REMOVAL_H_
