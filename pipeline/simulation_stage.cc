#include "pipeline/simulation_stage.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/simulation_check.h"
#include "astra_bridge/calibration/transfers.h"
#include "pipeline/findings.h"
#include "pipeline/forecast_stage.h"
#include "pipeline/step_simulation.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// "FullyConnected of 4".
std::string NetworkText(const Fabric& fabric) {
  std::vector<std::string> dimensions;
  for (const NetworkDimension& dimension : fabric.network.dimensions) {
    dimensions.push_back(absl::StrCat(BlockShapeName(dimension.shape), " of ", dimension.npus));
  }
  return absl::StrJoin(dimensions, " x ");
}

// Cells of the run itself: those of a sweep are the calibration's own matter.
void DescribeCells(const SimulationCheckReport& check, SimulationPart* part) {
  std::vector<double> errors;
  for (const CheckedCell& cell : check.cells()) {
    *part->add_cells() = cell;
    errors.push_back(std::abs(cell.signed_error()));
  }
  if (!errors.empty()) part->set_mean_error(Mean(errors));
}

void AddUnknown(const std::string& headline, const std::string& detail, RunReport* report) {
  *report->add_findings() = MakeFinding("simulation", "unknown", "simulation", headline, detail);
}

// Says why nothing was calibrated; returns the failure if it is the environment's.
absl::Status AddMissing(const absl::Status& why, bool has_sweep, RunReport* report) {
  if (ExitCode(why) == kExitEnvironment) return why;
  AddUnknown(
      "The network was not calibrated, so nothing is simulated.",
      absl::StrCat(has_sweep ? "The sweep, or the run, cannot be used: "
                             : "The run's own collectives do not suffice: ",
                   why.message(),
                   has_sweep ? "."
                             : ". Record a sweep of sizes on the same machine and give it as "
                               "--sweep=DIR."),
      report);
  return absl::OkStatus();
}

std::string CalibratedFrom(const std::vector<CalibrationRun>& sweep) {
  std::set<std::string> folders;
  for (const CalibrationRun& run : sweep) {
    folders.insert(run.folder.substr(run.folder.find_last_of('/') + 1));
  }
  return absl::StrJoin(folders, ", ");
}

}  // namespace

absl::Status DescribeSimulation(FileSystem& file_system, const SimulationStageRequest& request,
                                RunReport* report) {
  const bool has_sweep = !request.sweep.empty();
  CalibrationRunOptions run_options;
  run_options.reader.input = request.input;
  const auto read = [&](const std::vector<std::string>& traces) {
    return ReadCalibrationRuns(file_system, traces, run_options);
  };
  absl::StatusOr<std::vector<CalibrationRun>> runs = std::vector<CalibrationRun>();
  if (request.run == nullptr) {
    runs = read(request.traces);
  } else if (request.run->ok()) {
    runs->push_back(**request.run);
  } else {
    runs = request.run->status();
  }
  if (!runs.ok()) return AddMissing(runs.status(), has_sweep, report);
  const absl::StatusOr<std::vector<CalibrationRun>> sweep = has_sweep ? read(request.sweep) : runs;
  if (!sweep.ok()) return AddMissing(sweep.status(), has_sweep, report);
  CalibrationOptions options;
  options.progress = request.progress;
  const absl::StatusOr<Calibration> calibration = Calibrate(*sweep, options);
  if (!calibration.ok()) return AddMissing(calibration.status(), has_sweep, report);
  RETURN_IF_ERROR(
      WriteCalibration(file_system, *calibration, FilesOfCalibration(request.calibration_folder)));
  if (request.graph != nullptr) {
    DescribeForecasts(std::move(*request.graph), *calibration, has_sweep, request.late_rank,
                      report);
  }
  ASSIGN_OR_RETURN(const PredictionIntervals intervals,
                   PredictionIntervals::FromReport(calibration->report));
  StepSimulationOptions step_options;
  step_options.input = request.input;
  const StepModel model{calibration->fabric, calibration->corrections, intervals};
  SimulationCheckReport steps;
  RETURN_IF_ERROR(SimulateSteps(file_system, *runs, model, step_options, &steps));
  SummariseSteps(&steps);
  absl::StatusOr<SimulationCheckReport> check =
      CheckSimulation(*runs, calibration->fabric, calibration->corrections, intervals);
  if (!check.ok()) {
    if (ExitCode(check.status()) == kExitEnvironment) return check.status();
    AddUnknown("The calibrated network cannot be compared with this run.",
               absl::StrCat(check.status().message(), "."), report);
    return absl::OkStatus();
  }
  check->MergeFrom(steps);
  SimulationPart& part = *report->mutable_simulation();
  part.set_network(NetworkText(calibration->fabric));
  part.set_calibrated_from(has_sweep ? CalibratedFrom(*sweep) : "the run's own collectives");
  *part.mutable_parameters() = calibration->report.parameters();
  DescribeCells(*check, &part);
  *part.mutable_steps() = check->steps();
  if (check->step_summary().n() > 0) part.set_step_error(check->step_summary().mape());
  for (const std::string& note : calibration->report.notes()) part.add_notes(note);
  for (const std::string& note : check->notes()) part.add_notes(note);
  return absl::OkStatus();
}

}  // namespace meridian
