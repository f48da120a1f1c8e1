// astra_validate: simulated communication against a measured run.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/calibration/simulation_check.h"
#include "astra_bridge/calibration/step_check.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"
#include "pipeline/step_simulation.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

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
Flag<std::string> FLAGS_csv("csv", "", "Also writes all that there is to plot to this file.");
Flag<double> FLAGS_max_error("max_error", 0,
                             "Exit with 1 when the mean error of cells, or of steps, is larger, "
                             "e.g. 0.1 for 10 %. Default: exit with 0 however large it is.");
Flag<bool> FLAGS_allow_violations(
    "allow_violations", false,
    "Use profiles whose clocks show a collective that ends before it began.");

constexpr double kLargestMaxError = 1e6;

// Returns how far predictions may be off, and why that is not known.
absl::StatusOr<PredictionIntervals> FindIntervals(const CalibrationFiles& named,
                                                  const CalibrationReport& calibration,
                                                  std::vector<std::string>* notes) {
  const char* reason = nullptr;
  if (named.report.empty()) reason = "without --calibration";
  if (!named.calibrated_network.empty()) reason = "the network is not that of the calibration";
  if (!named.report.empty() && named.corrections.empty()) reason = "without --corrections";
  if (reason == nullptr) {
    absl::StatusOr<PredictionIntervals> intervals = PredictionIntervals::FromReport(calibration);
    if (!intervals.ok()) return Annotate(intervals.status(), named.report);
    if (!intervals->empty()) return intervals;
    return InvalidArgument(Printable(named.report),
                           ": nothing was fitted in this calibration; give the file that "
                           "astra_calibrate --report has written");
  }
  notes->push_back(absl::StrCat("how far predictions may be off is not known: ", reason));
  return PredictionIntervals();
}

// Returns whether the errors are larger than --max_error allows, with a note if so.
bool ExceedsMaxError(SimulationCheckReport* report) {
  const double max_error = FLAGS_max_error.value();
  const double cells = report->summary().mape(), steps = report->step_summary().mape();
  if (max_error <= 0 || (cells <= max_error && steps <= max_error)) return false;
  std::string of_steps;
  if (report->steps_size() > 0) of_steps = absl::StrFormat(", %.1f %% of steps", 100 * steps);
  report->add_notes(absl::StrFormat("the mean error is above --max_error=%g: %.1f %% of cells%s",
                                    max_error, 100 * cells, of_steps));
  return true;
}

absl::StatusOr<int> ValidateTraces() {
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
  FileSystem& files = FileSystem::Posix();
  const std::string csv = UserPath(FLAGS_csv);
  if (FLAGS_max_error.given() &&
      !(FLAGS_max_error.value() > 0 && FLAGS_max_error.value() <= kLargestMaxError)) {
    return InvalidArgument("--max_error=", FLAGS_max_error.value(),
                           " is no share above 0; expected e.g. --max_error=0.1 for 10 %");
  }
  ASSIGN_OR_RETURN(const CalibrationFiles named,
                   NamedCalibration(files, UserPath(FLAGS_calibration),
                                    {UserPath(FLAGS_network), UserPath(FLAGS_system),
                                     UserPath(FLAGS_corrections), ""}));
  if (named.network.empty()) {
    return InvalidArgument(
        "no network is given; use --calibration=DIR, as astra_calibrate writes it, or "
        "--network=network.yml");
  }
  std::vector<std::string> inputs = traces;
  for (const std::string& path : named.All()) inputs.push_back(path);
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {csv}));
  ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(files, {named.network, named.system}));
  CalibrationReport calibration;
  if (!named.report.empty()) {
    ASSIGN_OR_RETURN(calibration, ReadCalibrationReport(files, named.report));
  }
  Corrections corrections;
  if (!named.corrections.empty()) {
    ASSIGN_OR_RETURN(corrections, ReadCorrections(files, named.corrections));
  }
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const std::string on_links,
                   ApplyToLinks(files, named, &fabric.network, &corrections));
  if (!on_links.empty()) notes.push_back(on_links);
  ASSIGN_OR_RETURN(const PredictionIntervals intervals, FindIntervals(named, calibration, &notes));
  CalibrationRunOptions run_options;
  run_options.reader.input = UserInputOptions();
  run_options.allow_violations = FLAGS_allow_violations.value();
  ASSIGN_OR_RETURN(
      const std::vector<CalibrationRun> runs,
      ReadCalibrationRuns(files, traces, WithProgress(run_options, "reading", traces.size())));
  SimulationCheckReport steps;
  if (FLAGS_steps.value()) {
    const StepModel model{fabric, corrections, intervals};
    const StepSimulationOptions schedule{UserInputOptions(), FLAGS_allow_violations.value()};
    RETURN_IF_ERROR(SimulateSteps(files, runs, model, schedule, &steps));
  }
  for (const std::string& note : NotesOnCalibratedRuns(calibration, runs)) notes.push_back(note);
  ASSIGN_OR_RETURN(SimulationCheckReport report,
                   CheckSimulation(runs, fabric, corrections, intervals));
  report.MergeFrom(steps);
  SummariseSteps(&report);
  for (const std::string& note : notes) report.add_notes(note);
  const bool exceeds = ExceedsMaxError(&report);
  RETURN_IF_ERROR(WriteOutput(files, csv, SimulationCheckCsv(report)));
  return PrintReport(report, FormatSimulationCheck, exceeds ? kExitCheckFailed : kExitDone);
}

}  // namespace

Command AstraValidateCommand() {
  return {"astra_validate",
          "Compares simulated communication with a run that the network was not calibrated with: "
          "collective by collective, and step by step.",
          {"astra_validate --traces=run/ --calibration=machine/",
           "astra_validate --traces=run/ --network=network.yml --system=system.json "
           "--corrections=corrections.json --calibration=calibration.json --csv=errors.csv --json",
           "astra_validate --traces=run/ --calibration=machine/ --max_error=0.1"},
          {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_network, &FLAGS_system, &FLAGS_corrections,
           &FLAGS_calibration, &FLAGS_steps, &FLAGS_csv, &FLAGS_max_error, &FLAGS_allow_violations},
          ValidateTraces};
}

}  // namespace meridian
