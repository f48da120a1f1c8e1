#include "trace_alignment/collectives/testing/real_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

std::vector<RealRun> RealRuns() {
  return {{"jax_cuda2", 2, "", 56},        {"jax_tp_cuda4", 4, "", 528},
          {"jax_cpu4", 4, "", 48},         {"sweep_cuda2", 2, ".gz", 2400},
          {"sweep_cuda4", 4, ".gz", 2400}, {"sweep_cpu4", 4, ".gz", 2400}};
}

absl::StatusOr<CollectiveTable> ReadRealRun(const std::string& shared_directory,
                                            const RealRun& run) {
  std::vector<ProfileCollectives> profiles;
  for (int rank = 0; rank < run.ranks; ++rank) {
    ASSIGN_OR_RETURN(const XSpaceReader reader,
                     XSpaceReader::Open(FileSystem::Posix(),
                                        absl::StrCat(shared_directory, "/traces/", run.folder,
                                                     "/rank", rank, ".xplane.pb", run.suffix)));
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader));
    profiles.push_back(std::move(profile));
  }
  ASSIGN_OR_RETURN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  return BuildCollectiveTable(profiles, ranks, ResolveRuns(profiles));
}

}  // namespace meridian
