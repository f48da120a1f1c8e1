// From the Kineto traces of a job's ranks to their graphs.
//
// Each rank's graph is that of trace_graph.h. Ranks meet in the collectives that PyTorch describes
// in the arguments of their kernels.
#ifndef CRITICAL_PATH_KINETO_JOB_H_
#define CRITICAL_PATH_KINETO_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/job_source.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct KinetoJobOptions {
  InputFileOptions files;
  // As in TraceAnalysisOptions.
  std::vector<std::string> data_load_events;
};

// The window is chosen on each rank for itself. Errors are those of trace_graph.h, each naming its
// file; FailedPrecondition for clocks with violations; InvalidArgument for traces of different
// jobs, two traces of one rank, and when some, but not all ranks have one.
absl::StatusOr<LoadedJob> LoadKinetoJob(FileSystem& file_system,
                                        const std::vector<std::string>& traces,
                                        const KinetoJobOptions& kineto, const JobOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_KINETO_JOB_H_
