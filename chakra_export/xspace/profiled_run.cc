#include "chakra_export/xspace/profiled_run.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/combined_profile.h"

namespace meridian {

absl::StatusOr<ProfiledRun> ReadProfiledRun(FileSystem& file_system,
                                            const std::vector<std::string>& traces,
                                            const ProfiledRunOptions& options) {
  ProfiledRun run;
  std::vector<ProfileCollectives> collectives;
  std::optional<int64_t> start_ns;
  const auto read = [&](XSpaceReader reader) -> absl::Status {
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader, {start_ns}));
    collectives.push_back(std::move(profile));
    ASSIGN_OR_RETURN(std::unique_ptr<ProfileWork> work,
                     ReadDeviceWork(std::move(reader), start_ns));
    run.profiles.push_back(std::move(work));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < traces.size(); ++i) {
    if (options.progress) options.progress(i);
    ASSIGN_OR_RETURN(XSpaceReader reader,
                     XSpaceReader::Open(file_system, traces[i], options.reader));
    ASSIGN_OR_RETURN(std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
    start_ns = i < options.profile_starts_ns.size() ? options.profile_starts_ns[i] : std::nullopt;
    if (start_ns.has_value() && !nodes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          traces[i], ": is a combined file, which says when each of its sessions began"));
    }
    for (NodeProfile& node : nodes) RETURN_IF_ERROR(read(std::move(node.reader)));
    if (nodes.empty()) RETURN_IF_ERROR(read(std::move(reader)));
  }
  ASSIGN_OR_RETURN(run.collectives, MatchCollectives(std::move(collectives), options.ranks));
  return run;
}

}  // namespace meridian
