#ifndef CRITICAL_PATH_WHAT_IF_SCHEDULE_COMPACTION_H_
#define CRITICAL_PATH_WHAT_IF_SCHEDULE_COMPACTION_H_

#include "critical_path/what_if/schedule.h"

namespace meridian {

// Takes events that were removed, and meetings to which nobody comes any more, out of the tables:
// events and nodes get new numbers, in the same order; edges keep theirs.
void DropRemoved(Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_SCHEDULE_COMPACTION_H_
