#include "pipeline/simulation_stage.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/holdout.h"
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
void DescribeCells(const SimulationCheckReport& check, const CalibrationReport& calibration,
                   bool has_sweep, SimulationPart* part) {
  // What the network was fitted to, and what models that had not seen a cell say about it.
  std::map<std::tuple<std::string, int64_t, std::string>, const CalibratedCell*> fitted;
  for (const CalibratedCell& cell : calibration.cells()) {
    fitted[{cell.kind(), cell.bytes(), cell.group()}] = &cell;
  }
  std::vector<double> errors;
  for (const CheckedCell& cell : check.cells()) {
    SimulatedCell& described = *part->add_cells();
    CheckedCell& row = *described.mutable_cell();
    row = cell;
    described.set_held_out(has_sweep);
    const auto known = fitted.find({cell.kind(), cell.bytes(), cell.group()});
    if (!has_sweep && known != fitted.end() && known->second->has_held_out_ns()) {
      described.set_held_out(true);
      // The interval is about as wide around the one as around the other.
      const double scale =
          cell.simulated_ns() > 0 ? known->second->held_out_ns() / cell.simulated_ns() : 1;
      row.set_simulated_ns(row.simulated_ns() * scale);
      if (row.has_simulated_low_ns()) row.set_simulated_low_ns(row.simulated_low_ns() * scale);
      if (row.has_simulated_high_ns()) row.set_simulated_high_ns(row.simulated_high_ns() * scale);
    }
    if (row.measured_ns() > 0) {
      row.set_signed_error(row.simulated_ns() / row.measured_ns() - 1);
      errors.push_back(std::abs(row.signed_error()));
    }
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

// Calibrates with a sweep, or with the run itself: holding out steps, or sizes where it has none.
absl::StatusOr<Calibration> CalibrateWith(const std::vector<CalibrationRun>& runs, bool is_sweep,
                                          const FitProgress& progress) {
  CalibrationOptions options;
  options.holdout = is_sweep ? Holdout::kSize : Holdout::kStep;
  options.progress = progress;
  absl::StatusOr<Calibration> calibration = Calibrate(runs, options);
  if (calibration.ok() || is_sweep) return calibration;
  // A run without steps may still have several sizes.
  options.holdout = Holdout::kSize;
  return Calibrate(runs, options);
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
  const absl::StatusOr<std::vector<CalibrationRun>> runs = read(request.traces);
  if (!runs.ok()) return AddMissing(runs.status(), has_sweep, report);
  const absl::StatusOr<std::vector<CalibrationRun>> sweep = has_sweep ? read(request.sweep) : runs;
  if (!sweep.ok()) return AddMissing(sweep.status(), has_sweep, report);
  const absl::StatusOr<Calibration> calibration =
      CalibrateWith(*sweep, has_sweep, request.progress);
  if (!calibration.ok()) return AddMissing(calibration.status(), has_sweep, report);
  RETURN_IF_ERROR(
      WriteCalibration(file_system, *calibration, FilesOfCalibration(request.calibration_folder)));
  if (request.graph != nullptr) {
    // Steps that were left out say nothing of other sizes.
    absl::StatusOr<Calibration> by_size = has_sweep ? *calibration : Calibrate(*sweep, {});
    if (by_size.ok()) DescribeForecasts(*request.graph, *by_size, has_sweep, report);
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
  DescribeCells(*check, calibration->report, has_sweep, &part);
  *part.mutable_steps() = check->steps();
  if (check->step_summary().n() > 0) part.set_step_error(check->step_summary().mape());
  for (const std::string& note : calibration->report.notes()) part.add_notes(note);
  for (const std::string& note : check->notes()) part.add_notes(note);
  return absl::OkStatus();
}

}  // namespace meridian
