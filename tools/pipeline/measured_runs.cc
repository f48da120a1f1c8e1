#include "tools/pipeline/measured_runs.h"

#include <cstddef>

#include "xla_profiler/base/command_line/progress_bar.h"

namespace meridian {

absl::StatusOr<std::vector<CalibrationRun>> ReadMeasuredRuns(FileSystem& file_system,
                                                             const std::vector<std::string>& traces,
                                                             const InputFileOptions& input,
                                                             bool allow_violations) {
  ProgressBar progress("reading", traces.size());
  CalibrationRunOptions options;
  options.reader.input = input;
  options.allow_violations = allow_violations;
  options.progress = [&](size_t file) { progress.Update(file); };
  return ReadCalibrationRuns(file_system, traces, options);
}

}  // namespace meridian
