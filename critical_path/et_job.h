// From the Chakra traces of a workload to the graphs of its ranks.
//
// Times are those of a replay (chakra_export/graph/graph_replay.h) of the traces' durations and
// dependencies, so that traces without times, or on clocks that disagree, have a path, too; for
// traces that chakra_export wrote they are nearly the measured ones. Ranks meet in collectives and
// in messages, which both ends wait for.
#ifndef CRITICAL_PATH_ET_JOB_H_
#define CRITICAL_PATH_ET_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "critical_path/job_source.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Takes a prefix, with the groups that stand beside it, or one file. Steps are the nodes' attribute
// `step`, called "step#<n>". NotFound when there are no such files, a rank of the prefix has none,
// or for steps that are not there; InvalidArgument when ranks communicate with one that has no
// trace (see CheckRanks); FailedPrecondition when the ranks do not communicate alike or wait for
// each other for ever.
absl::StatusOr<LoadedJob> LoadEtJob(FileSystem& file_system, const std::string& prefix_or_file,
                                    const InputFileOptions& files, const JobOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_ET_JOB_H_
