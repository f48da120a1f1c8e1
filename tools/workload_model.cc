// workload_model: models of a code's calls, fitted to measured runs, for runs not yet made.
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "chakra_export/xspace/chakra_export_report.pb.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "tools/command.h"
#include "tools/pipeline/output_files.h"
#include "tools/profiles.h"
#include "workload_model/call_traces.h"
#include "workload_model/measurements.h"
#include "workload_model/model_files.h"
#include "workload_model/models.h"
#include "workload_model/scaling.h"
#include "workload_model/workload.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/json/report_json.h"

ABSL_FLAG(
    std::string, traces, "",
    "fit: traces of A-mpiP, or trace models of the Ember motif, one per rank and run; scale: the "
    "profiles of a job (XSpaces). A comma list of files, folders or globs.");
ABSL_FLAG(std::string, et, "", "PREFIX of the job's Chakra traces, PREFIX.<rank>.et.");
ABSL_FLAG(int64_t, ranks, 0, "How many ranks: the data parallel axis becomes longer.");
ABSL_FLAG(
    std::string, layout, "",
    "The new lengths of all axes of the job's mesh, from neighbouring ranks outward, e.g. 2x4.");
ABSL_FLAG(std::string, name_pattern, "",
          "A regular expression (RE2) with groups called nodes, size and, if names tell them, "
          "threads: 'n(?P<nodes>\\d+)_s(?P<size>\\d+)'. Default: names of the published data, "
          "..._16-16-1-20-0.txt for 16 nodes, 1 thread, size 20.");
ABSL_FLAG(
    std::string, cells, "",
    "A table of nodes, size and threads where names do not tell: lines file,nodes,size,threads.");
ABSL_FLAG(std::string, models, "auto",
          "Of times: auto, the simplest normal form that what is left out bears; or CONSTANT, "
          "EXPONENTIAL, BILINEAR, POLYNOMIAL, NORMAL for all.");
ABSL_FLAG(int32_t, order, 2, "Of polynomials: 1 to 4.");
ABSL_FLAG(std::string, callsites, "",
          "A report of mpiP or A-mpiP (.mpiP): traces are checked against its table of callsites.");
ABSL_FLAG(
    std::string, output, "",
    "fit: the file that models are written to, as JSON, or, if it ends in .model, those of times "
    "in the form of the Ember motif; scale: PREFIX of the new traces.");
ABSL_FLAG(std::string, csv, "", "Also writes the compared cells to this file.");
ABSL_FLAG(std::string, model, "",
          "A file that workload_model fit has written, or one in the form of the Ember motif.");
ABSL_FLAG(double, nodes, 0, "How many nodes to predict for.");
ABSL_FLAG(double, size, -1, "How large a problem to predict for.");
ABSL_FLAG(int64_t, threads, 1, "How many threads to predict for.");
ABSL_FLAG(
    bool, ember_compatible, false,
    "Evaluates a model file of the Ember motif as the motif does: rounded to the ns, of a trace "
    "the first value.");

namespace meridian {
namespace {

// Reads what --traces names.
absl::StatusOr<Measurements> ReadMeasurements(const std::vector<std::string>& traces) {
  std::vector<RunMeasurements> runs;
  std::map<std::string, WorkloadCell> cells;
  if (const std::string path = UserPath(FLAGS_cells); !path.empty()) {
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
    ASSIGN_OR_RETURN(cells, ParseCells(file.bytes(), path));
  }
  std::vector<Callsite> callsites;
  if (const std::string path = UserPath(FLAGS_callsites); !path.empty()) {
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
    ASSIGN_OR_RETURN(callsites, ParseCallsites(file.bytes(), path));
  }
  const auto progress = ShowProgress("reading", traces.size());
  for (const std::string& trace : traces) {
    progress(runs.size());
    WorkloadCell cell;
    const auto listed = cells.find(trace.substr(trace.rfind('/') + 1));
    if (listed != cells.end()) {
      cell = listed->second;
    } else {
      ASSIGN_OR_RETURN(cell, CellOfName(trace, absl::GetFlag(FLAGS_name_pattern)));
    }
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(FileSystem::Posix(), trace, UserInputOptions()));
    if (!callsites.empty() && IsCallTrace(file.bytes())) {
      ASSIGN_OR_RETURN(const std::vector<TracedCall> calls, ParseCallTrace(file.bytes(), trace));
      RETURN_IF_ERROR(CheckCallsites(calls, callsites, trace));
    }
    ASSIGN_OR_RETURN(RunMeasurements run, ParseMeasurements(file.bytes(), trace, cell));
    runs.push_back(std::move(run));
  }
  return Aggregate(runs);
}

absl::StatusOr<std::vector<std::string>> MeasuredFiles() {
  return UserFiles(FLAGS_traces, {".txt", ".trace", ".csv", ".gz"}, "'runs/*.trace'");
}

// Models of times as the motif has them: it counts by itself, and knows no first time.
std::vector<CallModel> TimesOf(const WorkloadModel& model) {
  return std::vector<CallModel>(model.models().begin(), model.models().end());
}

absl::StatusOr<int> Fit() {
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, MeasuredFiles());
  const std::string output = UserPath(FLAGS_output);
  RETURN_IF_ERROR(CheckOutputPaths(traces, {output}));
  WorkloadFitOptions options;
  options.models = absl::GetFlag(FLAGS_models);
  options.order = absl::GetFlag(FLAGS_order);
  if (options.order < 1 || options.order > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("--order=", options.order, " is none of 1, 2, 3, 4"));
  }
  ASSIGN_OR_RETURN(const Measurements measurements, ReadMeasurements(traces));
  ASSIGN_OR_RETURN(const WorkloadModel model, FitWorkload(measurements, options));
  std::string text;
  if (!absl::EndsWith(output, ".model")) {
    text = ReportToJson(model);
  } else if (options.models == kPolynomial) {
    ASSIGN_OR_RETURN(text, FormatPolynomialTable(TimesOf(model)));
  } else {
    ASSIGN_OR_RETURN(text, FormatTypedModels(TimesOf(model)));
  }
  RETURN_IF_ERROR(WriteOutput(FileSystem::Posix(), output, text));
  return PrintReport(model, FormatWorkloadModel);
}

absl::StatusOr<int> Compare() {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(FLAGS_model, "file", "M.json"));
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, MeasuredFiles());
  const std::string csv = UserPath(FLAGS_csv);
  std::vector<std::string> inputs = traces;
  inputs.push_back(path);
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {csv}));
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
  if (IsModelFile(file.bytes())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": a model file of the Ember motif has no counts to compare with; give "
                     "one that workload_model fit has written"));
  }
  ASSIGN_OR_RETURN(const WorkloadModel model, ParseWorkloadModel(file.bytes(), path));
  ASSIGN_OR_RETURN(const Measurements measurements, ReadMeasurements(traces));
  ASSIGN_OR_RETURN(const WorkloadComparison comparison, CompareWorkload(model, measurements));
  RETURN_IF_ERROR(WriteOutput(FileSystem::Posix(), csv, WorkloadComparisonCsv(comparison)));
  return PrintReport(comparison, FormatWorkloadComparison);
}

absl::StatusOr<WorkloadCell> AskedCell() {
  WorkloadCell cell;
  cell.nodes = absl::GetFlag(FLAGS_nodes);
  cell.size = absl::GetFlag(FLAGS_size);
  cell.threads = absl::GetFlag(FLAGS_threads);
  if (!(cell.nodes >= 1 && cell.nodes <= kMaxNodes)) {
    return absl::InvalidArgumentError("--nodes is no number of nodes; expected e.g. --nodes=64");
  }
  if (!(cell.size >= 0 && cell.size <= kMaxSize)) {
    return absl::InvalidArgumentError("--size is no size of a problem; expected e.g. --size=24");
  }
  return cell;
}

// A file of the motif holds models of times, each of one transition, and no counts: each is shown
// for itself.
absl::StatusOr<WorkloadEvaluation> EvaluateModelFile(const std::vector<CallModel>& models,
                                                     const WorkloadCell& cell) {
  WorkloadEvaluation result;
  result.set_nodes(cell.nodes);
  result.set_size(cell.size);
  result.set_threads(cell.threads);
  const bool ember = absl::GetFlag(FLAGS_ember_compatible);
  double total = 0;
  for (const CallModel& call : models) {
    if (call.threads() != cell.threads) continue;
    if (!call.has_destination()) {
      EvaluatedMessage& message = *result.add_messages();
      message.set_callsite(call.source());
      message.set_type(call.value().type());
      message.set_bytes(EvaluateModel(call.value(), cell));
      if (ember) {
        ASSIGN_OR_RETURN(const double bytes, EmberModel(call.value(), 1).Next(cell));
        message.set_bytes(bytes);
      }
      continue;
    }
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.source());
    transition.set_destination(call.destination());
    transition.set_count(1);
    transition.set_type(call.value().type());
    if (ember) {
      ASSIGN_OR_RETURN(const double ns, EmberModel(call.value(), 1000).Next(cell));
      transition.set_us(ns / 1000);
    } else {
      transition.set_us(EvaluateModel(call.value(), cell));
    }
    total += transition.us();
  }
  if (result.transitions_size() == 0 && result.messages_size() == 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no model of ", cell.threads, " threads in --model"));
  }
  result.set_total_us(total);
  result.set_low_us(total);
  result.set_high_us(total);
  if (result.transitions_size() > 0) {
    result.add_notes(
        "the file has no counts: the total is that of each transition once, and has no interval");
  }
  return result;
}

absl::StatusOr<int> Evaluate() {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(FLAGS_model, "file", "M.json"));
  ASSIGN_OR_RETURN(const WorkloadCell cell, AskedCell());
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
  if (IsModelFile(file.bytes())) {
    ASSIGN_OR_RETURN(const std::vector<CallModel> models, ParseModelFile(file.bytes(), path));
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateModelFile(models, cell));
    return PrintReport(evaluation, FormatWorkloadEvaluation);
  }
  if (absl::GetFlag(FLAGS_ember_compatible)) {
    return absl::InvalidArgumentError(
        "--ember_compatible evaluates model files of the Ember motif; --model is another");
  }
  ASSIGN_OR_RETURN(const WorkloadModel model, ParseWorkloadModel(file.bytes(), path));
  ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
  return PrintReport(evaluation, FormatWorkloadEvaluation);
}

// "2x4", or with what the axes are for, "tensor=2,data=4".
absl::Status ParseLayout(const std::string& text, ScaleOptions* options) {
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("x,"), absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(part, '=');
    int64_t length = 0;
    // Words with an x of their own were split.
    if (words.size() > 2 || !absl::SimpleAtoi(words.back(), &length)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout=", text,
                       " is no list of lengths; expected e.g. --layout=2x4 or "
                       "--layout=tensor=2,data=4"));
    }
    options->layout.push_back(length);
    options->kinds.push_back(words.size() == 2 ? words[0] : "");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Scale() {
  FileSystem& files = FileSystem::Posix();
  ScaleOptions options;
  options.ranks = absl::GetFlag(FLAGS_ranks);
  if (IsGiven("ranks") && options.ranks < 1) {
    return absl::InvalidArgumentError("--ranks is no number of ranks; expected e.g. --ranks=64");
  }
  if (absl::StrContains(absl::GetFlag(FLAGS_layout), "expert")) {
    return absl::InvalidArgumentError(
        "--layout names tensor, data and pipeline axes; experts are told by their all-to-alls");
  }
  RETURN_IF_ERROR(ParseLayout(absl::GetFlag(FLAGS_layout), &options));
  if ((options.ranks != 0) == !options.layout.empty()) {
    return absl::InvalidArgumentError("give either --ranks=64 or --layout=2x32");
  }
  if (IsGiven("et") == IsGiven("traces")) {
    return absl::InvalidArgumentError(
        "give either --traces=run/, the profiles of a job, or --et=PREFIX, its Chakra traces");
  }
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/large for et/large.0.et, ..."));
  std::string prefix = UserPath(FLAGS_et);
  std::optional<ScratchFolder> scratch;
  if (IsGiven("traces")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
    RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, traces));
    ASSIGN_OR_RETURN(ScratchFolder folder,
                     ScratchFolder::Create(UserInputOptions().temporary_directory, "scale"));
    scratch.emplace(std::move(folder));
    prefix = absl::StrCat(scratch->path(), "/job");
    XSpaceExportOptions exported;
    exported.reader.input = UserInputOptions();
    RETURN_IF_ERROR(
        ExportXSpaces(files, traces, prefix, WithProgress(exported, "reading", traces.size()))
            .status());
  } else if (prefix == output) {
    return absl::InvalidArgumentError("--output would replace the traces of --et");
  }
  const absl::StatusOr<ScaleReport> report =
      ScaleWorkload(files, prefix, output, WithProgress(options, "writing", 0));
  if (!report.ok() && scratch.has_value()) {
    // Nobody knows where the job's traces were for a while.
    return absl::Status(report.status().code(),
                        absl::StrReplaceAll(report.status().message(), {{prefix, "the job"}}));
  }
  RETURN_IF_ERROR(report.status());
  return PrintReport(*report, FormatScaleReport);
}

// The first argument says what to do; the others are its flags.
int Run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "fit") {
    return RunCommand(
        {"workload_model fit",
         "Fits models of counts, times and message sizes to runs measured at several "
         "numbers of nodes and sizes, and says how far they are off.",
         {"workload_model fit --traces='runs/bfs_exectrace_*' --output=M.json"},
         {"traces", "name_pattern", "cells", "callsites", "models", "order", "output"}},
        argc - 1, argv + 1, Fit);
  }
  if (what == "evaluate") {
    return RunCommand({"workload_model evaluate",
                       "Predicts how long a run of so many nodes and such a size takes, with an "
                       "interval.",
                       {"workload_model evaluate --model=M.json --nodes=64 --size=24",
                        "workload_model evaluate --model=exec_exp.model --nodes=64 --size=24 "
                        "--ember_compatible --json"},
                       {"model", "nodes", "size", "threads", "ember_compatible"}},
                      argc - 1, argv + 1, Evaluate);
  }
  if (what == "scale") {
    return RunCommand({"workload_model scale",
                       "Rewrites the traces of a measured job for more ranks: its groups are taken "
                       "for rows of a mesh whose axes become longer.",
                       {"workload_model scale --traces=run/ --ranks=64 --output=et/large",
                        "workload_model scale --et=et/run --layout=2x32 --output=et/large"},
                       {"traces", "et", "ranks", "layout", "output"}},
                      argc - 1, argv + 1, Scale);
  }
  if (what == "report") {
    return RunCommand({"workload_model report",
                       "Compares what a model predicts with measured runs, in total and for each "
                       "transition.",
                       {"workload_model report --model=M.json --traces='runs/bfs_exectrace_*' "
                        "--csv=cells.csv"},
                       {"model", "traces", "name_pattern", "cells", "csv"}},
                      argc - 1, argv + 1, Compare);
  }
  // Says what there is, for --help and for slips.
  const bool is_help = what == "--help" || what == "-h";
  std::fprintf(
      is_help ? stdout : stderr,
      "%sworkload_model COMMAND FLAGS: models of a code's calls\n"
      "  fit       measured runs -> models\n"
      "  evaluate  models -> the time of a run not yet made\n"
      "  report    models and measured runs -> how far they differ\n"
      "  scale     a measured job -> Chakra traces of more ranks\n"
      "workload_model COMMAND --help says more.\n",
      is_help ? ""
              : absl::StrCat("workload_model: '", what, "' is none of its commands\n").c_str());
  return is_help ? kExitDone : kExitBadInput;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) { return meridian::Run(argc, argv); }
