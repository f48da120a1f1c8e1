// From the traces of a job to one graph: that of all its ranks joined, or that of one rank.
#ifndef CRITICAL_PATH_JOB_ANALYSIS_H_
#define CRITICAL_PATH_JOB_ANALYSIS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/job_source.h"
#include "critical_path/trace_analysis.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Either is given.
struct JobInput {
  // All of one kind, told by their contents.
  std::vector<std::string> traces;
  // Of Chakra traces.
  std::string et_prefix;
  InputFileOptions files;
  // Of Kineto traces, as in TraceAnalysisOptions.
  std::vector<std::string> data_load_events;
};

// True for the text of a trace in Chrome's format, false for an XSpace.
bool IsTraceJson(absl::string_view bytes);

// All ranks are joined when no rank is chosen and there are several. Errors name a trace; they are
// those of the readers (xspace_job.h, kineto_job.h, et_job.h), and InvalidArgument when the chosen
// rank is not there. The queues stay empty.
absl::StatusOr<TraceAnalysis> AnalyzeJob(FileSystem& file_system, const JobInput& input,
                                         const JobOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_ANALYSIS_H_
