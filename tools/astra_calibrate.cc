// astra_calibrate: a network that gives the times of measured collectives.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/holdout.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "The profiles: a comma list of files, folders or globs. Those of one folder are one run; runs "
    "of different numbers of ranks are fitted together. Also tables of nccl-tests, each a run.");
Flag<std::string> FLAGS_topology(
    "topology", "",
    "The shape of the network, and what to keep where the transfers do not tell: AstraSim's YAML. "
    "Default: links between all ranks, in two levels where groups within and across nodes were "
    "measured.");
Flag<std::string> FLAGS_holdout(
    "holdout", "",
    "What is left out to see how well it is predicted: each size (default), op or group in turn.");
Flag<std::string> FLAGS_sizes("sizes", "",
                              "Fit only to transfers of these bytes, a comma list, and predict all "
                              "others; in place of --holdout.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The folder where all of the following go: network.yml, system.json, corrections.json and "
    "calibration.json, for --calibration of astra_simulate, astra_predict and astra_validate.");
Flag<std::string> FLAGS_output_network("output_network", "",
                                       "Where the network goes: AstraSim's YAML.");
Flag<std::string> FLAGS_output_system("output_system", "",
                                      "Where the system goes: AstraSim's JSON.");
Flag<std::string> FLAGS_output_corrections(
    "output_corrections", "",
    "Where the corrections go, for --corrections of astra_simulate and astra_predict: JSON.");
Flag<std::string> FLAGS_report("report", "", "Also writes the report to this file: JSON.");
Flag<bool> FLAGS_allow_violations(
    "allow_violations", false,
    "Use profiles whose clocks show a collective that ends before it began.");

absl::StatusOr<std::vector<int64_t>> ParseSizes(const std::string& list) {
  std::vector<int64_t> sizes;
  for (absl::string_view text : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(text, &bytes) || bytes <= 0) {
      return InvalidArgument("--sizes: ", Printable(text),
                             " is no number of bytes; expected e.g. --sizes=1024,65536,1048576");
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

absl::StatusOr<CalibrationOptions> ReadOptions() {
  CalibrationOptions options;
  ASSIGN_OR_RETURN(options.sizes, ParseSizes(FLAGS_sizes.value()));
  const std::string holdout = FLAGS_holdout.value();
  if (!holdout.empty()) {
    const std::optional<Holdout> named = HoldoutFromName(holdout);
    if (!named.has_value()) return NoneOf("holdout", holdout, "size, op, group");
    if (!options.sizes.empty()) {
      return InvalidArgument("--sizes and --holdout both say what is held out; give one of them");
    }
    options.holdout = *named;
  }
  const std::string topology = UserPath(FLAGS_topology);
  if (!topology.empty()) {
    ASSIGN_OR_RETURN(options.topology, ReadFabric(FileSystem::Posix(), {topology, ""}));
  }
  return options;
}

// The bar is gone before anything is printed.
absl::StatusOr<Calibration> CalibrateWithProgress(const std::vector<CalibrationRun>& runs,
                                                  CalibrationOptions options) {
  std::optional<ProgressBar> progress;
  options.progress = [&](size_t done, size_t steps) {
    if (!progress.has_value()) progress.emplace("fitting", steps);
    progress->Update(done);
  };
  return Calibrate(runs, options);
}

absl::StatusOr<CalibrationFiles> OutputPaths() {
  CalibrationFiles paths = {UserPath(FLAGS_output_network), UserPath(FLAGS_output_system),
                            UserPath(FLAGS_output_corrections), UserPath(FLAGS_report)};
  const std::string folder = UserPath(FLAGS_calibration);
  if (folder.empty()) return paths;
  for (const std::string& path : paths.All()) {
    if (path.empty()) continue;
    return InvalidArgument(
        "--calibration names the folder where all files go; leave out --output_network, "
        "--output_system, --output_corrections and --report, or --calibration");
  }
  if (absl::StrContains(folder, ',')) {
    return InvalidArgument(
        "--calibration=", Printable(folder),
        " has a comma, which separates calibrations elsewhere; name the folder without one");
  }
  return FilesOfCalibration(folder);
}

absl::StatusOr<int> CalibrateTraces() {
  RETURN_IF_ERROR(UseCollectiveKernels());
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "sweep/"));
  std::vector<std::string> inputs = traces;
  inputs.push_back(UserPath(FLAGS_topology));
  ASSIGN_OR_RETURN(const CalibrationFiles outputs, OutputPaths());
  RETURN_IF_ERROR(CheckOutputPaths(inputs, outputs.All()));
  ASSIGN_OR_RETURN(const CalibrationOptions options, ReadOptions());
  CalibrationRunOptions run_options;
  run_options.reader.input = UserInputOptions();
  run_options.allow_violations = FLAGS_allow_violations.value();
  ASSIGN_OR_RETURN(const std::vector<CalibrationRun> runs,
                   ReadCalibrationRuns(FileSystem::Posix(), traces,
                                       WithProgress(run_options, "reading", traces.size())));
  ASSIGN_OR_RETURN(const Calibration calibration, CalibrateWithProgress(runs, options));
  RETURN_IF_ERROR(WriteCalibration(FileSystem::Posix(), calibration, outputs));
  return PrintReport(calibration.report, FormatCalibration);
}

}  // namespace

Command AstraCalibrateCommand() {
  return {
      "astra_calibrate",
      "Fits latency, bandwidth and corrections to the collectives of measured runs, so that "
      "simulated times are those of the machine; says how far they are off for what was left out.",
      {"astra_calibrate --traces=sweep2/,sweep4/ --calibration=machine/",
       "astra_calibrate --traces=sweep/ --output_network=network.yml --output_system=system.json "
       "--output_corrections=corrections.json",
       "astra_calibrate --traces=sweep4/,sweep8/ --holdout=group --report=calibration.json",
       "astra_calibrate --traces=sweep/ --sizes=1024,65536,4194304 --json"},
      {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_topology, &FLAGS_holdout, &FLAGS_sizes,
       &FLAGS_calibration, &FLAGS_output_network, &FLAGS_output_system, &FLAGS_output_corrections,
       &FLAGS_report, &FLAGS_allow_violations, &FLAGS_collective_kernels},
      CalibrateTraces};
}

}  // namespace meridian
