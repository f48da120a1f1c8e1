#include "trace_alignment/collectives/collective_run.h"

#include <utility>

#include "absl/types/span.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {

absl::StatusOr<CollectiveRun> MatchCollectives(std::vector<ProfileCollectives> profiles,
                                               const RankOptions& ranks) {
  CollectiveRun run;
  run.profiles = std::move(profiles);
  ASSIGN_OR_RETURN(run.ranks, ResolveRanks(absl::MakeSpan(run.profiles), ranks));
  run.runs = ResolveRuns(run.profiles);
  ASSIGN_OR_RETURN(run.table, BuildCollectiveTable(run.profiles, run.ranks, run.runs));
  return run;
}

absl::StatusOr<CollectiveRun> ReadCollectiveRun(FileSystem& file_system,
                                                const std::vector<std::string>& traces,
                                                const CollectiveRunOptions& options) {
  std::vector<ProfileCollectives> profiles;
  for (size_t i = 0; i < traces.size(); ++i) {
    if (options.progress) options.progress(i);
    ASSIGN_OR_RETURN(const XSpaceReader reader,
                     XSpaceReader::Open(file_system, traces[i], options.reader));
    ASSIGN_OR_RETURN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
    for (const NodeProfile& node : nodes) {
      ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(node.reader));
      profiles.push_back(std::move(profile));
    }
    if (!nodes.empty()) continue;
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader));
    profiles.push_back(std::move(profile));
  }
  return MatchCollectives(std::move(profiles), options.ranks);
}

}  // namespace meridian
