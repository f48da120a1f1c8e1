// From the profiles of a run (XSpace) to the graphs of its ranks.
//
// Nodes are the device work, the host's calls that launched it, and the gaps between those; edges
// are those that chakra_export finds: launches, streams, data, the host that waited for the device.
// Ranks meet in the collectives that trace_alignment matches.
#ifndef CRITICAL_PATH_XSPACE_JOB_H_
#define CRITICAL_PATH_XSPACE_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/job_source.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Takes one profile or many, or a combined one. The window of a chosen step lasts on each rank from
// when the first rank begins it until the last work that this rank launched in it has ended.
//
// FailedPrecondition for clocks with violations and an empty window; InvalidArgument for profiles
// of different runs, and when some, but not all ranks have one; NotFound for steps that are not
// there.
absl::StatusOr<LoadedJob> LoadXSpaceJob(FileSystem& file_system,
                                        const std::vector<std::string>& traces,
                                        const XSpaceReaderOptions& reader,
                                        const JobOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_XSPACE_JOB_H_
