// SPDX-License-Identifier: Apache-2.0
// Which rank each device of each profile is.
//
// A rank is the position of a global device id among all ids that any program of any profile is
// assigned to (XLA:CPU's ids are 0, 2048, 4096, ...). For devices whose id the profile does not
// tell, the user's word is taken, else the rank in the files' names ("worker3_step_12"), else the
// order of the files, the latter two with a warning.
#ifndef XLA_PROFILER_COLLECTIVES_RANK_RESOLUTION_H_
#define XLA_PROFILER_COLLECTIVES_RANK_RESOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "xla_profiler/collectives/collective_event.h"

namespace meridian {

struct RankOptions {
  // The user's word: one rank per device, profile by profile. Empty when the profiles are to tell.
  std::vector<int64_t> given_ranks;
};

struct RankResolution {
  // The global device id of each rank, ascending.
  std::vector<int64_t> device_of_rank;
  // The rank of each device: ranks[p][d] is that of local device d of profile p.
  std::vector<std::vector<int64_t>> ranks;
  // Choices a person should know of: warnings, one sentence each.
  std::vector<std::string> notes;

  // Returns kUnknownId for a device that is no rank.
  int64_t RankOf(int64_t device) const;
};

// Also completes the profiles: devices that had no id get one, their events a group, and ops that
// are matched by order, but have no group, that of all ranks. Two
// devices of one id, a given rank out of range or a wrong number of them are InvalidArgument.
absl::StatusOr<RankResolution> ResolveRanks(absl::Span<ProfileCollectives> profiles,
                                            const RankOptions& options = {});

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_RANK_RESOLUTION_H_
