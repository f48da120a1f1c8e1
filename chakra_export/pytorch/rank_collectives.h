// The collectives of one rank: those that its profile describes, and those that only the host trace
// knows about, since the profile is older than the descriptions.
#ifndef CHAKRA_EXPORT_PYTORCH_RANK_COLLECTIVES_H_
#define CHAKRA_EXPORT_PYTORCH_RANK_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

struct RankCollectives {
  ProfileCollectives profile;
  // By event of the profile: the node of its first kernel.
  std::vector<TimelineIndex> nodes;
  // Communication kernels that are in no event.
  std::vector<TimelineIndex> undescribed;
};

// A communication kernel without a description takes its kind from the function in its symbol; its
// bytes, group and peer from what the operator that launched it, or a caller of that, was given.
// `world_size` is the number of
// ranks for profiles that do not say it.
RankCollectives ReadRankCollectives(const TraceJsonTable& trace, absl::string_view text,
                                    absl::string_view name, const HostTrace& host,
                                    const RankTimeline& timeline, int64_t world_size);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_RANK_COLLECTIVES_H_
