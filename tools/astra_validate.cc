// astra_validate: simulated communication against a measured run.
#include <string>
#include <vector>

#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/calibration/simulation_check.h"
#include "astra_bridge/calibration/step_check.h"
#include "astra_bridge/calibration/transfers.h"
#include "pipeline/step_simulation.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces("traces", "",
                               "The profiles: a comma list of files, folders or globs. Those of "
                               "one folder are one run. Also tables of nccl-tests.");
Flag<std::string> FLAGS_network("network", "", "The network: AstraSim's YAML.");
Flag<std::string> FLAGS_system(
    "system", "",
    "How collectives are carried out: AstraSim's system JSON. Default: what suits the network.");
Flag<std::string> FLAGS_corrections("corrections", "", "Corrections of a calibration: JSON.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The folder of a calibration (astra_calibrate --calibration): network, system, corrections and "
    "report; single flags replace its files. Or its report alone (astra_calibrate --report), which "
    "says what it had not seen and how far predictions may be off.");
Flag<bool> FLAGS_steps("steps", true, "Also schedule whole steps with simulated communication.");
Flag<bool> FLAGS_allow_violations(
    "allow_violations", false,
    "Use profiles whose clocks show a collective that ends before it began.");

absl::StatusOr<int> ValidateTraces() {
  RETURN_IF_ERROR(UseCollectiveKernels());
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
  FileSystem& files = FileSystem::Posix();
  ASSIGN_OR_RETURN(const CalibrationFiles named,
                   NamedCalibration(files, UserPath(FLAGS_calibration),
                                    {UserPath(FLAGS_network), UserPath(FLAGS_system),
                                     UserPath(FLAGS_corrections), ""}));
  ASSIGN_OR_RETURN(const NamedNetwork network, ReadNetwork(files, named));
  const auto& [fabric, corrections, calibration] = network.calibration;
  CalibrationRunOptions run_options;
  run_options.reader.input = UserInputOptions();
  run_options.allow_violations = FLAGS_allow_violations.value();
  ASSIGN_OR_RETURN(
      const std::vector<CalibrationRun> runs,
      ReadCalibrationRuns(files, traces, WithProgress(run_options, "reading", traces.size())));
  SimulationCheckReport steps;
  if (FLAGS_steps.value()) {
    const StepModel model{fabric, corrections, network.intervals};
    const StepSimulationOptions schedule{UserInputOptions(), FLAGS_allow_violations.value()};
    RETURN_IF_ERROR(SimulateSteps(files, runs, model, schedule, &steps));
  }
  ASSIGN_OR_RETURN(SimulationCheckReport report,
                   CheckSimulation(runs, fabric, corrections, network.intervals));
  report.MergeFrom(steps);
  SummariseSteps(&report);
  for (const std::vector<std::string>& notes :
       {network.notes, NotesOnCalibratedRuns(calibration, runs)}) {
    for (const std::string& note : notes) report.add_notes(note);
  }
  if (network.intervals.empty()) {
    report.add_notes(
        "how far predictions may be off is not known: that takes the report of a calibration, its "
        "corrections and its own network");
  }
  return PrintReport(report, FormatSimulationCheck);
}

}  // namespace

Command AstraValidateCommand() {
  return {"astra_validate",
          "Compares simulated communication with a run that the network was not calibrated with: "
          "collective by collective, and step by step.",
          {"astra_validate --traces=run/ --calibration=machine/",
           "astra_validate --traces=run/ --network=network.yml --system=system.json "
           "--corrections=corrections.json --calibration=calibration.json --json"},
          {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_network, &FLAGS_system, &FLAGS_corrections,
           &FLAGS_calibration, &FLAGS_steps, &FLAGS_allow_violations, &FLAGS_collective_kernels},
          ValidateTraces};
}

}  // namespace meridian
