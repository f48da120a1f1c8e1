// SPDX-License-Identifier: Apache-2.0
// The runs that a user names, found and read: files of calls, each of one rank, and training jobs, each
// of several.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_MEASURED_RUNS_H_
#define WORKLOAD_MODEL_MEASUREMENTS_MEASURED_RUNS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workload_model/measurements/measurements.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Which runs, and how it is told where they were measured. Empty texts are flags that were not given.
struct MeasuredRunsOptions {
  // A comma list of files, folders and globs, and one of prefixes of Chakra traces; paths start in the
  // working directory.
  std::string traces;
  std::string et;
  std::string working_directory;
  // How names tell cells (ReadRunName).
  std::string name_pattern;
  // A report of mpiP that belongs to the traces.
  std::string callsites;
  // The size of jobs whose names do not tell it.
  std::optional<double> size;
  InputFileOptions input;
  // Returns the profiles of a folder that holds those of a job, and no others.
  std::function<std::vector<std::string>(const std::string& folder)> job_profiles;
  // Writes the profiles of a folder as PREFIX.<rank>.et.
  std::function<absl::Status(const std::string& folder, const std::string& prefix)> export_job;
  // Called with the position of what is read; may be null.
  std::function<void(size_t position)> progress;
};

struct MeasuredInputs {
  std::vector<std::string> files;
  // Folders of profiles.
  std::vector<std::string> run_dirs;
  std::vector<std::string> et_prefixes;
  // All files that are read, which no output may take the place of.
  std::vector<std::string> all;

  // How many runs there are to read.
  size_t count() const { return files.size() + run_dirs.size() + et_prefixes.size(); }
};

// A folder that holds profiles is a job; others hold traces of calls. InvalidArgument, which says
// --traces, when no run is named.
absl::StatusOr<MeasuredInputs> FindMeasuredRuns(FileSystem& file_system,
                                                const MeasuredRunsOptions& options);

absl::StatusOr<std::vector<RunMeasurements>> ReadMeasuredRuns(FileSystem& file_system,
                                                              const MeasuredInputs& inputs,
                                                              const MeasuredRunsOptions& options);

// Reads the calls of a training job from PREFIX.<rank>.et: each communication is one, so that models of
// calls are models of its steps.
//
//   rank 0   [matmul]......[all-reduce.1]..[matmul]....[all-gather.3]     step 0, again in step 1, ...
//                          callsite 1                  callsite 2
//
// A call is told by name, kind, group and bytes; callsites are numbered by each rank as it comes to
// them. A transition lasts from the end of one communication to the end of the next, and holds what
// that one took when it was its turn: what computation hides is no time of it. Machines are the job's
// ranks. `name` is what messages call it. InvalidArgument when communication has no times, or a rank
// communicates less than twice.
absl::StatusOr<std::vector<RunMeasurements>> ReadRunCalls(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          const std::string& name, double size);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_MEASURED_RUNS_H_
