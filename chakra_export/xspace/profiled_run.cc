#include "chakra_export/xspace/profiled_run.h"

#include <utility>

#include "absl/status/status.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {

absl::StatusOr<ProfiledRun> ReadProfiledRun(FileSystem& file_system,
                                            const std::vector<std::string>& traces,
                                            const ProfiledRunOptions& options) {
  ProfiledRun run;
  std::vector<ProfileCollectives> collectives;
  const auto read = [&](XSpaceReader reader) -> absl::Status {
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader));
    collectives.push_back(std::move(profile));
    ASSIGN_OR_RETURN(std::unique_ptr<ProfileWork> work, ReadDeviceWork(std::move(reader)));
    run.profiles.push_back(std::move(work));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < traces.size(); ++i) {
    if (options.progress) options.progress(i);
    ASSIGN_OR_RETURN(XSpaceReader reader,
                     XSpaceReader::Open(file_system, traces[i], options.reader));
    ASSIGN_OR_RETURN(std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
    for (NodeProfile& node : nodes) RETURN_IF_ERROR(read(std::move(node.reader)));
    if (nodes.empty()) RETURN_IF_ERROR(read(std::move(reader)));
  }
  ASSIGN_OR_RETURN(run.collectives, MatchCollectives(std::move(collectives), options.ranks));
  return run;
}

}  // namespace meridian
