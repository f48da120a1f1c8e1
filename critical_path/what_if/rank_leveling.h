// What a run would be if one rank were not slower than the others.
//
//   rank 0   |-op-|--gap--|-op-|all-reduce|          others wait for rank 1 ...
//   rank 1   |--op--|---gap---|---op---|all-reduce|
//   levelled |-op-|--gap--|-op-|all-reduce|          ... whose times are now the others' median
#ifndef CRITICAL_PATH_WHAT_IF_RANK_LEVELING_H_
#define CRITICAL_PATH_WHAT_IF_RANK_LEVELING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

// Shortens what the rank does to what the same takes elsewhere: the own time of each of its events,
// and each delay before one (host gaps, launches, gaps between kernels), becomes the median of that
// of its counterparts, if that is less. The counterpart on another rank is the event of the same
// name, likewise on the host or on a device, that comes as many-th there; the median of an even
// number is the lower of the middle two. What communicates keeps its time: that is the network's
// and the other ranks', and waiting for the slow rank goes by itself.
//
// Returns how many events of the rank have a counterpart. InvalidArgument when the schedule has no
// other rank, or nothing of the rank has one.
absl::StatusOr<int64_t> LevelRank(int64_t rank, Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_RANK_LEVELING_H_
