#include "pipeline/step_simulation.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

absl::Status SimulateSteps(FileSystem& file_system, const std::vector<CalibrationRun>& runs,
                           const StepModel& model, const StepSimulationOptions& options,
                           SimulationCheckReport* report) {
  ProfiledRunOptions profiled;
  profiled.reader.input = options.input;
  ProgressBar progress("scheduling steps", 0);
  for (const CalibrationRun& run : runs) {
    std::vector<std::optional<int64_t>> steps(run.steps.begin(), run.steps.end());
    if (steps.empty()) steps.push_back(std::nullopt);
    if (steps.size() > options.max_steps) {
      report->add_notes(absl::StrCat(Printable(run.folder), ": of ", steps.size(),
                                     " steps the first ", options.max_steps, " were scheduled"));
      steps.resize(options.max_steps);
    }
    if (run.traces.empty()) continue;
    ASSIGN_OR_RETURN(const TraceSource* source, DetectOneSource(file_system, {run.traces[0]}));
    if (source->form() == TraceForm::kKineto) {
      report->add_notes(absl::StrCat(Printable(run.folder),
                                     ": steps of Kineto traces are not scheduled here; export them "
                                     "with chakra_link, and astra_predict shows measured beside "
                                     "simulated"));
      continue;
    }
    ASSIGN_OR_RETURN(const ProfiledRun profiles,
                     ReadProfiledRun(file_system, run.traces, profiled));
    for (const std::optional<int64_t>& step : steps) {
      const absl::Status status =
          CheckStep(profiles, run.folder, step, model, options.allow_violations, report);
      if (!status.ok()) {
        if (ExitCode(status) == kExitEnvironment) return status;
        const std::string name = step.has_value() ? absl::StrCat("step ", *step) : "the run";
        report->add_notes(absl::StrCat(Printable(run.folder), ": ", name,
                                       " was not scheduled: ", Printable(status.message())));
        continue;
      }
      progress.Update(static_cast<size_t>(report->steps_size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace meridian
