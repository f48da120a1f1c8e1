// forecast: what another network, more ranks or other compute would give.
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"
#include "critical_path/job/job_analysis.h"
#include "forecast/forecast.h"
#include "forecast/forecast_report.pb.h"
#include "forecast/job_on_network.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces("traces", "",
                               "The recorded job: profiles of all its ranks, JAX or PyTorch; a "
                               "comma list of files, folders or "
                               "globs.");
Flag<std::string> FLAGS_et("et", "",
                           "Chakra traces instead: the prefix of PREFIX.<rank>.et, or one file.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The network on which it was recorded: the folder of a calibration (astra_calibrate "
    "--calibration).");
Flag<std::string> FLAGS_sweep(
    "sweep", "",
    "In its place: profiles of a sweep of collectives, or tables of nccl-tests, to calibrate with. "
    "Default: the job's own collectives.");
Flag<std::string> FLAGS_bandwidth(
    "bandwidth", "",
    "Links with another bandwidth: 2x, 100Gbit/s, 12.5GB/s. A comma list: several "
    "answers.");
Flag<std::string> FLAGS_latency("latency", "",
                                "Another latency between ranks: 0.5x, 500ns, 10us; or a list.");
Flag<std::string> FLAGS_network(
    "network", "",
    "Another network: AstraSim's YAML, links (docs/links.md; 1x is the calibrated link), or an "
    "InfraGraph.");
Flag<std::string> FLAGS_ranks(
    "ranks", "", "More ranks, a multiple of what there are; or a list. The outermost groups grow.");
Flag<std::string> FLAGS_layout(
    "layout", "",
    "More ranks by the job's mesh: OUTERxINNER, e.g. 8x2; only the outer part grows.");
Flag<std::string> FLAGS_fix_rank("fix_rank", "", "This rank is no slower than the others.");
Flag<std::string> FLAGS_compute(
    "compute", "1x",
    "Computation takes this much of its time, e.g. 0.5x; or a list. Several runs tell it by "
    "themselves.");
Flag<bool> FLAGS_allow_violations("allow_violations", false,
                                  "Go on when the clocks of the ranks disagree.");
Flag<std::string> FLAGS_csv("csv", "", "Writes one row per answer to this file.");

absl::StatusOr<ForecastModel> CalibrateWith(const std::vector<std::string>& traces,
                                            std::string source, bool is_sweep) {
  CalibrationRunOptions options;
  options.reader.input = UserInputOptions();
  options.allow_violations = FLAGS_allow_violations.value();
  ASSIGN_OR_RETURN(const std::vector<CalibrationRun> runs,
                   ReadCalibrationRuns(FileSystem::Posix(), traces,
                                       WithProgress(options, "reading", traces.size())));
  ASSIGN_OR_RETURN(const Calibration calibration, Calibrate(runs));
  return ModelOf(calibration, std::move(source), is_sweep);
}

// Returns the network on which the job was recorded.
absl::StatusOr<ForecastModel> ReadModel(const std::vector<std::string>& traces) {
  FileSystem& files = FileSystem::Posix();
  const std::string folder = UserPath(FLAGS_calibration);
  if (!folder.empty()) {
    ASSIGN_OR_RETURN(const CalibrationFiles named, NamedCalibration(files, folder, {}));
    Calibration calibration;
    ASSIGN_OR_RETURN(calibration.fabric, ReadFabric(files, {named.network, named.system}));
    ASSIGN_OR_RETURN(calibration.corrections, ReadCorrections(files, named.corrections));
    ASSIGN_OR_RETURN(calibration.report, ReadCalibrationReport(files, named.report));
    return ModelOf(calibration, absl::StrCat("the runs of ", FLAGS_calibration.value()),
                   /*is_of_sweep=*/true);
  }
  if (!FLAGS_sweep.value().empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> sweep, ListedProfiles(FLAGS_sweep, "sweep/"));
    return CalibrateWith(sweep, absl::StrCat("the runs of ", FLAGS_sweep.value()),
                         /*is_sweep=*/true);
  }
  if (traces.empty()) {
    return InvalidArgument(
        "--et needs the network it was recorded on: --calibration=DIR or --sweep=DIR");
  }
  return CalibrateWith(traces, "the job's own collectives alone (no --calibration, no --sweep)",
                       /*is_sweep=*/false);
}

// Returns the values of a list; one empty value when the flag is not given.
std::vector<std::string> ValuesOf(const Flag<std::string>& flag) {
  return absl::StrSplit(flag.value(), ',');
}

absl::StatusOr<int32_t> ParseRanks(const std::string& text, absl::string_view flag) {
  int32_t ranks = 0;
  if (absl::SimpleAtoi(text, &ranks) && ranks > 0) return ranks;
  return InvalidArgument("--", flag, "=", text, " is no number of ranks; expected e.g. --ranks=16");
}

// Returns the ranks that --ranks or --layout ask for; empty texts mean as many as there are.
absl::StatusOr<std::vector<int32_t>> AskedRanks() {
  std::vector<int32_t> asked;
  for (const std::string& text : ValuesOf(FLAGS_ranks)) {
    int32_t ranks = 0;
    if (!text.empty()) {
      ASSIGN_OR_RETURN(ranks, ParseRanks(text, "ranks"));
    }
    asked.push_back(ranks);
  }
  if (FLAGS_layout.value().empty()) return asked;
  const std::vector<std::string> parts = absl::StrSplit(FLAGS_layout.value(), 'x');
  if (FLAGS_ranks.given() || parts.size() != 2) {
    return InvalidArgument(
        "--layout: expected OUTERxINNER, e.g. --layout=8x2, and no --ranks beside it");
  }
  ASSIGN_OR_RETURN(const int32_t outer, ParseRanks(parts[0], "layout"));
  ASSIGN_OR_RETURN(const int32_t inner, ParseRanks(parts[1], "layout"));
  if (outer > kMaxNpus / inner) return ParseRanks("too many", "layout").status();
  return std::vector<int32_t>{outer * inner};
}

template <typename Parse>
absl::Status SetChange(absl::string_view flag, const std::string& text, Parse parse,
                       std::optional<Change>* change, std::vector<std::string>* words) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<Change> parsed = parse(text);
  if (!parsed.ok()) return Annotate(parsed.status(), absl::StrCat("--", flag));
  *change = *parsed;
  words->push_back(absl::StrCat(flag, " ", text));
  return absl::OkStatus();
}

// Returns every combination of what the flags ask.
absl::StatusOr<std::vector<ForecastQuestion>> Questions() {
  ForecastQuestion base;
  std::vector<std::string> base_words;
  if (!FLAGS_network.value().empty()) {
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(FileSystem::Posix(), UserPath(FLAGS_network)));
    ASSIGN_OR_RETURN(base.network, ParseNetworkConfig(file.bytes(), FLAGS_network.value()));
    base_words.push_back(absl::StrCat("network ", FLAGS_network.value()));
  }
  if (!FLAGS_fix_rank.value().empty()) {
    int64_t rank = 0;
    if (!absl::SimpleAtoi(FLAGS_fix_rank.value(), &rank)) {
      return InvalidArgument("--fix_rank: expected the number of a rank");
    }
    base.fix_rank = rank;
    base_words.push_back(absl::StrCat("rank ", rank, " no slower than the others"));
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> ranks, AskedRanks());
  std::vector<ForecastQuestion> questions;
  for (const int32_t asked : ranks) {
    for (const std::string& bandwidth : ValuesOf(FLAGS_bandwidth)) {
      for (const std::string& latency : ValuesOf(FLAGS_latency)) {
        for (const std::string& compute : ValuesOf(FLAGS_compute)) {
          ForecastQuestion question = base;
          std::vector<std::string> words = base_words;
          question.ranks = asked;
          if (asked > 0) words.push_back(absl::StrCat(asked, " ranks"));
          RETURN_IF_ERROR(
              SetChange("bandwidth", bandwidth, ParseBandwidth, &question.bandwidth, &words));
          RETURN_IF_ERROR(SetChange("latency", latency, ParseLatency, &question.latency, &words));
          const absl::StatusOr<Change> scale = ParseBandwidth(compute);
          if (!scale.ok() || !scale->is_multiple || scale->value < 1e-3 || scale->value > 1e3) {
            return InvalidArgument("--compute=", compute,
                                   ": expected a multiple from 0.001x to 1000x, e.g. 0.5x");
          }
          if (FLAGS_compute.given()) question.compute = scale->value;
          if (scale->value != 1) words.push_back(absl::StrCat("compute ", compute));
          question.text = words.empty() ? "as it is" : absl::StrJoin(words, ", ");
          questions.push_back(std::move(question));
        }
      }
    }
  }
  return questions;
}

// Each of a list has a value; two flags do not name the same thing.
absl::Status CheckFlags() {
  for (const Flag<std::string>* flag :
       {&FLAGS_bandwidth, &FLAGS_latency, &FLAGS_ranks, &FLAGS_compute, &FLAGS_layout,
        &FLAGS_fix_rank, &FLAGS_calibration, &FLAGS_sweep, &FLAGS_network, &FLAGS_csv,
        &FLAGS_run_dir}) {
    if (!flag->given()) continue;
    for (const std::string& value : ValuesOf(*flag)) {
      if (!value.empty()) continue;
      return InvalidArgument("--", flag->name(), ": one of the list has no value");
    }
  }
  if (FLAGS_calibration.given() && FLAGS_sweep.given()) {
    return InvalidArgument("give either --calibration or --sweep: both name the network");
  }
  if (absl::StrContains(FLAGS_network.value(), ',')) {
    return InvalidArgument("--network: one network at a time; ask once for each");
  }
  if (FLAGS_et.given() && (FLAGS_traces.given() || FLAGS_run_dir.given())) {
    return InvalidArgument("give either --et or profiles: both name the job");
  }
  return absl::OkStatus();
}

// The recordings of the job: one, or of several numbers of ranks a folder each.
absl::StatusOr<std::vector<JobInput>> Recordings() {
  std::vector<JobInput> recordings;
  const auto add = [&](std::vector<std::string> traces) {
    recordings.emplace_back();
    recordings.back().files = UserInputOptions();
    recordings.back().traces = std::move(traces);
  };
  RETURN_IF_ERROR(UseCollectiveKernels());
  if (!FLAGS_et.value().empty()) {
    add({});
    recordings.back().et_prefix = UserPath(FLAGS_et);
  } else if (absl::StrContains(FLAGS_run_dir.value(), ',') && !FLAGS_traces.given()) {
    for (const std::string& folder : ValuesOf(FLAGS_run_dir)) {
      ASSIGN_OR_RETURN(std::vector<std::string> traces,
                       FindRunTraces(FileSystem::Posix(), UserPath(folder)));
      add(std::move(traces));
    }
  } else {
    ASSIGN_OR_RETURN(std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
    add(std::move(traces));
  }
  return recordings;
}

// The csv must be none of what is read.
absl::Status CheckOutputs(const std::vector<JobInput>& recordings, const std::string& csv) {
  std::vector<std::string> inputs = {UserPath(FLAGS_network)};
  const auto add = [&](const std::vector<std::string>& paths) {
    inputs.insert(inputs.end(), paths.begin(), paths.end());
  };
  for (const JobInput& recording : recordings) {
    add(recording.traces);
    if (recording.et_prefix.empty()) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> ets,
                     SimulationInputs(FileSystem::Posix(), recording.et_prefix, {}));
    add(ets);
  }
  if (!FLAGS_calibration.value().empty()) {
    add(FilesOfCalibration(UserPath(FLAGS_calibration)).All());
  }
  if (!FLAGS_sweep.value().empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> sweep, ListedProfiles(FLAGS_sweep, "sweep/"));
    add(sweep);
  }
  return CheckOutputPaths(inputs, {csv});
}

absl::Status CheckLayout(const JobOnNetwork& job) {
  const std::string layout = FLAGS_layout.value();
  const int32_t inner = job.inner_ranks();
  if (layout.empty() || absl::EndsWith(layout, absl::StrCat("x", inner))) return absl::OkStatus();
  return InvalidArgument("--layout=", layout, ": the inner part of the job's mesh has ", inner,
                         " ranks, and stays: expected e.g. --layout=", 2 * job.ranks() / inner, "x",
                         inner);
}

absl::StatusOr<int> RunForecast() {
  RETURN_IF_ERROR(CheckFlags());
  ASSIGN_OR_RETURN(const std::vector<JobInput> recordings, Recordings());
  const std::string csv = UserPath(FLAGS_csv);
  RETURN_IF_ERROR(CheckOutputs(recordings, csv));
  ASSIGN_OR_RETURN(const std::vector<ForecastQuestion> questions, Questions());
  std::vector<std::string> traces;
  for (const JobInput& recording : recordings) {
    traces.insert(traces.end(), recording.traces.begin(), recording.traces.end());
  }
  ASSIGN_OR_RETURN(const ForecastModel model, ReadModel(traces));
  std::vector<std::string> notes;
  std::list<JobOnNetwork> jobs;
  std::vector<const JobOnNetwork*> all;
  for (const JobInput& recording : recordings) {
    JobOptions options;
    options.allow_violations = FLAGS_allow_violations.value();
    options.progress = ShowProgress("reading ranks", recording.traces.size());
    ASSIGN_OR_RETURN(TraceAnalysis analysis, AnalyzeJob(FileSystem::Posix(), recording, options));
    notes.insert(notes.end(), analysis.source.notes.begin(), analysis.source.notes.end());
    ASSIGN_OR_RETURN(JobOnNetwork job, JobOnNetwork::Create(std::move(analysis.graph)));
    jobs.push_back(std::move(job));
    all.push_back(&jobs.back());
  }
  ASSIGN_OR_RETURN(const RunsForecaster forecaster, RunsForecaster::Create(all, model));
  RETURN_IF_ERROR(CheckLayout(forecaster.job()));
  ForecastCurve curve;
  for (const ForecastQuestion& question : questions) {
    ASSIGN_OR_RETURN(*curve.add_forecasts(), forecaster.Ask(question));
  }
  for (ForecastReport& report : *curve.mutable_forecasts()) {
    for (const std::string& note : notes) report.add_notes(note);
  }
  RETURN_IF_ERROR(WriteOutput(FileSystem::Posix(), csv, ForecastCsv(curve)));
  return curve.forecasts_size() > 1 ? PrintReport(curve, ForecastTable)
                                    : PrintReport(curve.forecasts(0), ForecastText);
}

}  // namespace

Command ForecastCommand() {
  return {
      "forecast",
      "Says what a step of a recorded job would take on another network, on more ranks or with "
      "other compute, with a 90 % interval.",
      {"forecast --run_dir=logs/ --calibration=machine/ --bandwidth=2x",
       "forecast --run_dir=logs/ --sweep=sweep/ --ranks=8,16,32",
       "forecast --run_dir=run4/,run8/ --calibration=machine/ --ranks=16",
       "forecast --run_dir=logs/ --calibration=machine/ --network=tree.yml --json"},
      {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_et, &FLAGS_calibration, &FLAGS_sweep, &FLAGS_bandwidth,
       &FLAGS_latency, &FLAGS_network, &FLAGS_ranks, &FLAGS_layout, &FLAGS_fix_rank, &FLAGS_compute,
       &FLAGS_allow_violations, &FLAGS_csv, &FLAGS_collective_kernels},
      RunForecast};
}

}  // namespace meridian
