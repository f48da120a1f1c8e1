// The profiles of a run as everything that follows starts from them: the work of their devices, and
// the collectives matched between them.
#ifndef CHAKRA_EXPORT_XSPACE_PROFILED_RUN_H_
#define CHAKRA_EXPORT_XSPACE_PROFILED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/xspace/device_work.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct ProfiledRunOptions {
  XSpaceReaderOptions reader;
  RankOptions ranks;
  // Unix time at which the sessions began, by trace, for traces that do not say; may be empty.
  std::vector<std::optional<int64_t>> profile_starts_ns;
  // Called before each file with its position; may be null.
  std::function<void(size_t file)> progress;
};

struct ProfiledRun {
  // One per node: a file, or a node of a combined file; the same in both, in the same order.
  std::vector<std::unique_ptr<ProfileWork>> profiles;
  CollectiveRun collectives;
};

// Clocks are taken as they are. Errors are those of damaged files and of MatchCollectives.
absl::StatusOr<ProfiledRun> ReadProfiledRun(FileSystem& file_system,
                                            const std::vector<std::string>& traces,
                                            const ProfiledRunOptions& options = {});

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_PROFILED_RUN_H_
