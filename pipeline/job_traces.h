// SPDX-License-Identifier: Apache-2.0
// The traces of one job, whatever wrote them, as Chakra traces.
#ifndef PIPELINE_JOB_TRACES_H_
#define PIPELINE_JOB_TRACES_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/xspace/device_work.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// The traces of a job, told apart by what the files hold, in the natural order of their names.
struct JobTraces {
  std::vector<std::string> xspaces;
  // Execution traces of PyTorch, and the profiles of the same run.
  std::vector<std::string> host_traces;
  std::vector<std::string> device_traces;

  std::vector<std::string> All() const;
};

JobTraces SortTraces(FileSystem& file_system, const std::vector<std::string>& paths);

// Returns the traces in the folders of a run (FindRunFolders).
absl::StatusOr<JobTraces> FindJobTraces(FileSystem& file_system, const std::string& run_dir);

struct JobExportOptions {
  InputFileOptions input;
  // Called before each file or rank is read; may be null.
  std::function<void(size_t position)> progress;
  // What of the XSpaces was read already; keeps all of it, for whoever needs it next. May be null.
  ProfiledRun* profiled = nullptr;
  // Of XSpaces in which a rank has more pieces of device work than this, only steps are exported that
  // have no more together, those in the middle, with a note; all where they have no steps.
  size_t most_work = std::numeric_limits<size_t>::max();
  std::vector<std::string>* notes = nullptr;
};

// Writes PREFIX.<rank>.et and PREFIX.comm_groups.json. InvalidArgument when there are traces of both
// kinds, of none, or not as many execution traces as profiles of PyTorch.
absl::Status ExportJob(FileSystem& file_system, const JobTraces& traces, const std::string& prefix,
                       const JobExportOptions& options);

}  // namespace meridian

#endif  // PIPELINE_JOB_TRACES_H_
