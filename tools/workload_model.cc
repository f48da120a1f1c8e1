// workload_model: models of a code's calls, fitted to measured runs, for runs not yet made.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "pipeline/job_traces.h"
#include "report/run_report.pb.h"
#include "report/run_report_html.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "workload_model/call_traces.h"
#include "workload_model/call_workload.h"
#include "workload_model/callsite_graph.h"
#include "workload_model/ember_motif.h"
#include "workload_model/measurements.h"
#include "workload_model/model_files.h"
#include "workload_model/models.h"
#include "workload_model/rank_classes.h"
#include "workload_model/run_calls.h"
#include "workload_model/scaling.h"
#include "workload_model/workload.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "fit, report: traces of A-mpiP, or trace models of the Ember motif, one per rank and run: a "
    "comma list of files, folders or globs; folders of profiles (JAX, or PyTorch with its "
    "execution traces) are jobs. scale: the profiles of one job.");
Flag<std::string> FLAGS_et(
    "et", "", "PREFIX of a job's Chakra traces, PREFIX.<rank>.et; for fit several, a comma list.");
Flag<int64_t> FLAGS_ranks("ranks", 0, "How many ranks: the data parallel axis becomes longer.");
Flag<std::string> FLAGS_layout(
    "layout", "",
    "The new lengths of all axes of the job's mesh, from neighbouring ranks outward, e.g. 2x4.");
Flag<std::string> FLAGS_name_pattern(
    "name_pattern", "",
    "A regular expression (RE2) with groups called nodes, size and, if names tell them, "
    "threads: 'n(?P<nodes>\\d+)_s(?P<size>\\d+)'. Default: names of the published data, "
    "..._16-16-1-20-0.txt for 16 nodes, 1 thread, size 20.");
Flag<std::string> FLAGS_cells(
    "cells", "",
    "A table of nodes, size and threads where names do not tell: lines file,nodes,size,threads.");
Flag<std::string> FLAGS_models(
    "models", "auto",
    "Of times: auto, the simplest normal form that predicts runs it was not fitted to; or "
    "CONSTANT, "
    "EXPONENTIAL, BILINEAR, POLYNOMIAL, NORMAL for all.");
Flag<int32_t> FLAGS_order("order", 2, "Of polynomials: 1 to 4.");
Flag<std::string> FLAGS_callsites(
    "callsites", "",
    "A report of mpiP or A-mpiP (.mpiP): traces are checked against its table of callsites, "
    "and its times of calls tell computation from communication.");
Flag<std::string> FLAGS_output(
    "output", "",
    "fit: the file that models are written to, as JSON, or, if it ends in .model, those of times "
    "in the form of the Ember motif; generate, scale: PREFIX of the new traces.");
Flag<std::string> FLAGS_graph(
    "graph", "",
    "Also writes the graph of callsites, as it was measured, to this file: for Graphviz if it "
    "ends in .dot, else as JSON.");
Flag<std::string> FLAGS_format(
    "format", "chakra",
    "chakra: execution traces; ember: a motif of SST's Ember, OUTPUT.cc, and its SDL, "
    "OUTPUT.py.");
Flag<std::string> FLAGS_csv("csv", "", "Also writes the compared cells to this file.");
Flag<std::string> FLAGS_html("html", "", "Also writes the comparison as a page to this file.");
Flag<std::string> FLAGS_model(
    "model", "",
    "A file that workload_model fit has written, or one in the form of the Ember motif.");
Flag<double> FLAGS_nodes("nodes", 0, "How many nodes to predict for.");
Flag<double> FLAGS_size(
    "size", -1,
    "How large a problem to predict for; for fit, that of jobs whose names do not tell.");
Flag<int64_t> FLAGS_threads("threads", 1, "How many threads to predict for.");
Flag<int64_t> FLAGS_ranks_per_node("ranks_per_node", 1, "How many ranks per node to predict for.");
Flag<bool> FLAGS_ember_compatible(
    "ember_compatible", false,
    "Evaluates a model file of the Ember motif as the motif does: rounded to the ns, of a trace "
    "the first value.");

absl::StatusOr<InputFile> Open(const std::string& path) {
  return InputFile::Open(FileSystem::Posix(), path, UserInputOptions());
}

// What was measured: files of calls, each of one rank, and jobs, each of several.
struct MeasuredInputs {
  std::vector<std::string> files;
  // Folders of profiles.
  std::vector<std::string> run_dirs;
  // Prefixes of Chakra traces.
  std::vector<std::string> et_prefixes;
  // All that is read, which no output may take the place of.
  std::vector<std::string> all;
};

// A folder of --traces that holds profiles is a job; others hold traces of calls.
absl::StatusOr<MeasuredInputs> FindMeasured() {
  FileSystem& file_system = FileSystem::Posix();
  MeasuredInputs inputs;
  for (absl::string_view item : absl::StrSplit(FLAGS_et.value(), ',', absl::SkipEmpty())) {
    const std::string& prefix = inputs.et_prefixes.emplace_back(UserPath(std::string(item)));
    ASSIGN_OR_RETURN(const EtFiles found, FindEtFiles(file_system, prefix));
    for (const EtFile& file : found.files) inputs.all.push_back(file.path);
    inputs.all.push_back(CommGroupsPath(prefix));
  }
  if (inputs.et_prefixes.empty()) {
    RETURN_IF_ERROR(RequiredPath(FLAGS_traces, "file", "'runs/*.trace'").status());
  }
  for (absl::string_view item : absl::StrSplit(FLAGS_traces.value(), ',', absl::SkipEmpty())) {
    const std::string path = UserPath(std::string(item));
    const absl::StatusOr<FileKind> kind = file_system.Kind(path);
    if (kind.ok() && *kind == FileKind::kDirectory) {
      const absl::StatusOr<JobTraces> job = FindJobTraces(file_system, path);
      if (job.ok() && !job->All().empty()) {
        inputs.run_dirs.push_back(path);
        for (const std::string& trace : job->All()) inputs.all.push_back(trace);
        continue;
      }
    }
    ASSIGN_OR_RETURN(
        const std::vector<std::string> files,
        ExpandPaths(file_system, item, {UserDirectory(), {".txt", ".trace", ".csv", ".gz"}}));
    inputs.files.insert(inputs.files.end(), files.begin(), files.end());
  }
  inputs.all.insert(inputs.all.end(), inputs.files.begin(), inputs.files.end());
  inputs.all.insert(inputs.all.end(),
                    {UserPath(FLAGS_cells), UserPath(FLAGS_callsites), UserPath(FLAGS_model)});
  return inputs;
}

// How long calls took, of the report of mpiP, goes to the traces' calls.
void AddCallTimes(const std::vector<Callsite>& callsites, const std::map<int64_t, double>& times,
                  std::vector<TracedCall>* calls) {
  std::map<int64_t, double> by_traced_id;
  for (const Callsite& callsite : callsites) {
    const auto time = times.find(callsite.id);
    if (time == times.end()) continue;
    by_traced_id[callsite.traced_id.value_or(callsite.id)] = time->second;
  }
  for (TracedCall& call : *calls) {
    const auto time = by_traced_id.find(call.destination);
    if (time != by_traced_id.end()) call.call_us = time->second;
  }
}

absl::StatusOr<RunMeasurements> ReadCallFile(const std::string& path, const RunName& name,
                                             const std::vector<Callsite>& callsites,
                                             const std::map<int64_t, double>& call_times) {
  ASSIGN_OR_RETURN(const InputFile file, Open(path));
  if (callsites.empty() || !IsCallTrace(file.bytes())) {
    return ParseMeasurements(file.bytes(), path, name);
  }
  ASSIGN_OR_RETURN(std::vector<TracedCall> calls, ParseCallTrace(file.bytes(), path));
  RETURN_IF_ERROR(CheckCallsites(calls, callsites, path));
  AddCallTimes(callsites, call_times, &calls);
  return MeasureCalls(std::move(calls), path, name);
}

// The size of a job: of its name, or of --size.
absl::StatusOr<double> SizeOfJob(const std::string& name) {
  WorkloadCell known;
  known.size = FLAGS_size.given() ? FLAGS_size.value() : -1;
  if (FLAGS_name_pattern.given()) {
    WorkloadCell told;
    told.size = std::max(0.0, known.size);
    ASSIGN_OR_RETURN(const RunName in_name, ReadRunName(name, FLAGS_name_pattern.value(), told));
    known.size = in_name.cell.size;
  }
  if (known.size >= 0 && known.size <= kMaxSize) return known.size;
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   ": how large is the problem of this job? Say it for all with --size=1, or "
                   "by their names with --name_pattern='s(?P<size>\\d+)'"));
}

// Reads what --traces and --et name.
absl::StatusOr<std::vector<RunMeasurements>> ReadMeasured(const MeasuredInputs& inputs) {
  std::vector<RunMeasurements> runs;
  std::map<std::string, WorkloadCell> cells;
  if (const std::string path = UserPath(FLAGS_cells); !path.empty()) {
    ASSIGN_OR_RETURN(const InputFile file, Open(path));
    ASSIGN_OR_RETURN(cells, ParseCells(file.bytes(), path));
  }
  std::vector<Callsite> callsites;
  std::map<int64_t, double> call_times;
  if (const std::string path = UserPath(FLAGS_callsites); !path.empty()) {
    ASSIGN_OR_RETURN(const InputFile file, Open(path));
    ASSIGN_OR_RETURN(callsites, ParseCallsites(file.bytes(), path));
    ASSIGN_OR_RETURN(call_times, ParseCallTimes(file.bytes(), path));
  }
  const auto progress = ShowProgress(
      "reading", inputs.files.size() + inputs.run_dirs.size() + inputs.et_prefixes.size());
  size_t position = 0;
  for (const std::string& path : inputs.files) {
    progress(position++);
    const auto listed = cells.find(path.substr(path.rfind('/') + 1));
    const std::optional<WorkloadCell> known =
        listed == cells.end() ? std::nullopt : std::make_optional(listed->second);
    ASSIGN_OR_RETURN(const RunName name, ReadRunName(path, FLAGS_name_pattern.value(), known));
    ASSIGN_OR_RETURN(RunMeasurements run, ReadCallFile(path, name, callsites, call_times));
    runs.push_back(std::move(run));
  }
  const auto add_job = [&](const std::string& prefix, const std::string& name) -> absl::Status {
    ASSIGN_OR_RETURN(const double size, SizeOfJob(name));
    ASSIGN_OR_RETURN(std::vector<RunMeasurements> of_job,
                     ReadRunCalls(FileSystem::Posix(), prefix, name, size));
    for (RunMeasurements& run : of_job) runs.push_back(std::move(run));
    return absl::OkStatus();
  };
  for (const std::string& run_dir : inputs.run_dirs) {
    progress(position++);
    ASSIGN_OR_RETURN(const JobTraces traces, FindJobTraces(FileSystem::Posix(), run_dir));
    ASSIGN_OR_RETURN(const ScratchFolder folder,
                     ScratchFolder::Create(UserInputOptions().temporary_directory, "model"));
    const std::string prefix = absl::StrCat(folder.path(), "/job");
    RETURN_IF_ERROR(Annotate(
        ExportJob(FileSystem::Posix(), traces, prefix, {UserInputOptions(), nullptr}), run_dir));
    RETURN_IF_ERROR(add_job(prefix, run_dir));
  }
  for (const std::string& prefix : inputs.et_prefixes) {
    progress(position++);
    RETURN_IF_ERROR(add_job(prefix, prefix));
  }
  return runs;
}

// Of a file in the form of the motif, which counts by itself and knows no first time.
std::vector<CallModel> TimesOf(const WorkloadModel& model) {
  return std::vector<CallModel>(model.models().begin(), model.models().end());
}

// As DOT, or as JSON.
absl::Status WriteGraph(const std::vector<RunMeasurements>& runs, OutputFiles* outputs) {
  const std::string path = UserPath(FLAGS_graph);
  if (path.empty()) return absl::OkStatus();
  const CallsiteGraph graph = MakeCallsiteGraph(runs);
  if (graph.runs() == 0) {
    return absl::InvalidArgumentError(
        "--graph needs traces of single calls; trace models only have the values of transitions");
  }
  return outputs->WriteText(
      "graph", path, absl::EndsWith(path, ".dot") ? CallsiteGraphDot(graph) : ReportToJson(graph));
}

absl::StatusOr<int> Fit() {
  ASSIGN_OR_RETURN(const MeasuredInputs inputs, FindMeasured());
  const std::string output = UserPath(FLAGS_output);
  RETURN_IF_ERROR(CheckOutputPaths(inputs.all, {output, UserPath(FLAGS_graph)}));
  WorkloadFitOptions options;
  options.models = FLAGS_models.value();
  options.order = FLAGS_order.value();
  if (options.order < 1 || options.order > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("--order=", options.order, " is none of 1, 2, 3, 4"));
  }
  ASSIGN_OR_RETURN(std::vector<RunMeasurements> runs, ReadMeasured(inputs));
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(WriteGraph(runs, &outputs));
  ASSIGN_OR_RETURN(const WorkloadModel model, FitRuns(std::move(runs), options));
  std::string text;
  if (!absl::EndsWith(output, ".model")) {
    text = ReportToJson(model);
  } else if (options.models == kPolynomial) {
    ASSIGN_OR_RETURN(text, FormatPolynomialTable(TimesOf(model)));
  } else {
    ASSIGN_OR_RETURN(text, FormatTypedModels(TimesOf(model)));
  }
  RETURN_IF_ERROR(outputs.WriteText("model", output, text));
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(model, FormatWorkloadModel);
}

// A model that fit has written; `what_for` says why one of the motif does not do.
absl::StatusOr<WorkloadModel> ReadModel(absl::string_view what_for) {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(FLAGS_model, "file", "M.json"));
  ASSIGN_OR_RETURN(const InputFile file, Open(path));
  if (!IsModelFile(file.bytes())) return ParseWorkloadModel(file.bytes(), path);
  return absl::InvalidArgumentError(absl::StrCat(path, ": a model file of the Ember motif has no ",
                                                 what_for,
                                                 "; give one that workload_model fit has written"));
}

// The comparison as a page.
std::string ComparisonHtml(const WorkloadComparison& comparison) {
  constexpr double kMsPerUs = 1e-3;
  RunReport report;
  report.set_title("Predicted against measured runs");
  WorkloadPart& part = *report.mutable_workload();
  part.set_mean_error(comparison.mean_error());
  part.set_inside(comparison.inside());
  for (const ComparedCell& cell : comparison.cells()) {
    WorkloadCellPart& row = *part.add_cells();
    row.set_nodes(cell.nodes());
    row.set_size(cell.size());
    row.set_measured_ms(cell.measured_us() * kMsPerUs);
    row.set_predicted_ms(cell.predicted_us() * kMsPerUs);
    row.set_low_ms(cell.low_us() * kMsPerUs);
    row.set_high_ms(cell.high_us() * kMsPerUs);
    row.set_extrapolated(cell.extrapolated());
  }
  for (const ComparedTransition& transition : comparison.transitions()) {
    WorkloadTransitionPart& row = *part.add_transitions();
    row.set_source(transition.source());
    row.set_destination(transition.destination());
    row.set_measured_ms(transition.measured_us() * kMsPerUs);
    row.set_predicted_ms(transition.predicted_us() * kMsPerUs);
    row.set_error(transition.error());
  }
  Finding& finding = *report.add_findings();
  finding.set_topic("simulation");
  finding.set_section("workload");
  finding.set_verdict(comparison.mean_error() <= 0.2 ? "good" : "info");
  finding.set_headline(absl::StrFormat("Predictions of %d runs are off by %.1f %% in the mean.",
                                       comparison.cells_size(), 100 * comparison.mean_error()));
  finding.set_detail(
      absl::StrFormat("%d of %d lie in their intervals, which should hold nine of ten.",
                      comparison.inside(), comparison.cells_size()));
  for (const std::string& note : comparison.notes()) report.add_notes(note);
  return RunReportHtml(report);
}

absl::StatusOr<int> Compare() {
  ASSIGN_OR_RETURN(const WorkloadModel model, ReadModel("counts to compare with"));
  ASSIGN_OR_RETURN(const MeasuredInputs inputs, FindMeasured());
  const std::string csv = UserPath(FLAGS_csv), html = UserPath(FLAGS_html);
  RETURN_IF_ERROR(CheckOutputPaths(inputs.all, {csv, html}));
  ASSIGN_OR_RETURN(std::vector<RunMeasurements> runs, ReadMeasured(inputs));
  AssignClasses(model.rank_classes(), &runs);
  ASSIGN_OR_RETURN(const WorkloadComparison comparison, CompareWorkload(model, Aggregate(runs)));
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.WriteText("csv", csv, WorkloadComparisonCsv(comparison)));
  RETURN_IF_ERROR(outputs.WriteText("html", html, ComparisonHtml(comparison)));
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(comparison, FormatWorkloadComparison);
}

absl::StatusOr<WorkloadCell> AskedCell() {
  WorkloadCell cell;
  cell.nodes = FLAGS_nodes.value();
  cell.size = FLAGS_size.value();
  cell.kind.threads = FLAGS_threads.value();
  cell.kind.ranks_per_node = FLAGS_ranks_per_node.value();
  // All that there are.
  cell.kind.rank_class = "";
  if (!(cell.nodes >= 1 && cell.nodes <= kMaxNodes)) {
    return absl::InvalidArgumentError("--nodes is no number of nodes; expected e.g. --nodes=64");
  }
  if (!(cell.size >= 0 && cell.size <= kMaxSize)) {
    return absl::InvalidArgumentError("--size is no size of a problem; expected e.g. --size=24");
  }
  if (cell.kind.threads < 1 || cell.kind.ranks_per_node < 1) {
    return absl::InvalidArgumentError("--threads and --ranks_per_node are at least 1");
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
  result.set_threads(cell.kind.threads);
  const bool ember = FLAGS_ember_compatible.value();
  double total = 0;
  for (const CallModel& call : models) {
    if (call.threads() != cell.kind.threads) continue;
    if (!call.has_destination()) {
      EvaluatedMessage& message = *result.add_messages();
      message.set_callsite(call.source());
      message.set_type(call.value().type());
      ASSIGN_OR_RETURN(const double value, FiniteValue(call, call.value(), cell));
      message.set_bytes(value);
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
      ASSIGN_OR_RETURN(const double us, FiniteValue(call, call.value(), cell));
      transition.set_us(us);
    }
    total += transition.us();
  }
  if (result.transitions_size() == 0 && result.messages_size() == 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no model of ", cell.kind.threads, " threads in --model"));
  }
  result.set_total_us(total);
  result.set_low_us(total);
  result.set_high_us(total);
  if (!std::isfinite(total)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sum of all transitions is no finite number for ", cell.nodes,
                     " nodes and size ", cell.size));
  }
  if (result.transitions_size() > 0) {
    result.add_notes(
        "the file has no counts: the total is that of each transition once, and has no interval");
  }
  return result;
}

absl::StatusOr<int> Evaluate() {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(FLAGS_model, "file", "M.json"));
  ASSIGN_OR_RETURN(const WorkloadCell cell, AskedCell());
  ASSIGN_OR_RETURN(const InputFile file, Open(path));
  if (IsModelFile(file.bytes())) {
    ASSIGN_OR_RETURN(const std::vector<CallModel> models, ParseModelFile(file.bytes(), path));
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateModelFile(models, cell));
    return PrintReport(evaluation, FormatWorkloadEvaluation);
  }
  if (FLAGS_ember_compatible.value()) {
    return absl::InvalidArgumentError(
        "--ember_compatible evaluates model files of the Ember motif; --model is another");
  }
  ASSIGN_OR_RETURN(const WorkloadModel model, ParseWorkloadModel(file.bytes(), path));
  ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
  return PrintReport(evaluation, FormatWorkloadEvaluation);
}

// The motif is called as its files: letters and digits, which C++ and Python can.
absl::StatusOr<int> GenerateEmber(const WorkloadModel& model, const GenerateOptions& options,
                                  const std::string& output) {
  std::string name(output.substr(output.rfind('/') + 1));
  const bool is_name = !name.empty() && absl::ascii_isalpha(name[0]) &&
                       std::all_of(name.begin(), name.end(), absl::ascii_isalnum);
  if (!is_name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output: '", name,
        "' is no name of a motif; expected letters and digits, e.g. --output=motif/Bfs"));
  }
  const std::string source = absl::StrCat(output, ".cc"), sdl = absl::StrCat(output, ".py");
  RETURN_IF_ERROR(CheckOutputPaths({UserPath(FLAGS_model)}, {source, sdl}));
  ASSIGN_OR_RETURN(const EmberMotif motif, MakeEmberMotif(model, options.cell, options.seed, name));
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.WriteText("motif", source, motif.source));
  RETURN_IF_ERROR(outputs.WriteText("sdl", sdl, motif.sdl));
  RETURN_IF_ERROR(outputs.Commit());
  CallWorkloadReport report;
  report.set_nodes(options.cell.nodes);
  report.set_size(options.cell.size);
  report.set_ranks(static_cast<int64_t>(options.cell.Ranks()));
  report.add_files(source);
  report.add_files(sdl);
  report.add_notes(
      "put the .cc into ember/mpi/motifs/ of SST's elements and name it in their Makefile");
  return PrintReport(report, FormatCallWorkload);
}

absl::StatusOr<int> Generate() {
  ASSIGN_OR_RETURN(const WorkloadModel model, ReadModel("control flow"));
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/large for et/large.0.et, ..."));
  const std::string format = FLAGS_format.value();
  GenerateOptions options;
  ASSIGN_OR_RETURN(options.cell, AskedCell());
  if (format == "ember") return GenerateEmber(model, options, output);
  if (format != "chakra") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format=", format, " is neither chakra nor ember"));
  }
  RETURN_IF_ERROR(
      CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, {UserPath(FLAGS_model)}));
  ASSIGN_OR_RETURN(
      const CallWorkloadReport report,
      GenerateWorkload(FileSystem::Posix(), model, output, WithProgress(options, "writing", 0)));
  return PrintReport(report, FormatCallWorkload);
}

// "2x4", or with what the axes are for, "tensor=2,data=4".
absl::Status ParseLayout(const std::string& text, ScaleOptions* options) {
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("x,"))) {
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

// The job of --traces: a folder, or files.
absl::StatusOr<JobTraces> UserJob() {
  FileSystem& files = FileSystem::Posix();
  const std::string path = UserPath(FLAGS_traces);
  const absl::StatusOr<FileKind> kind = files.Kind(path);
  if (kind.ok() && *kind == FileKind::kDirectory) return FindJobTraces(files, path);
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   UserFiles(FLAGS_traces, ProfileSuffixes(), "run/"));
  return SortTraces(files, paths);
}

absl::StatusOr<int> Scale() {
  FileSystem& files = FileSystem::Posix();
  ScaleOptions options;
  options.ranks = FLAGS_ranks.value();
  if (FLAGS_ranks.given() && options.ranks < 1) {
    return absl::InvalidArgumentError("--ranks is no number of ranks; expected e.g. --ranks=64");
  }
  if (absl::StrContains(FLAGS_layout.value(), "expert")) {
    return absl::InvalidArgumentError(
        "--layout names tensor, data and pipeline axes; experts are told by their all-to-alls");
  }
  RETURN_IF_ERROR(ParseLayout(FLAGS_layout.value(), &options));
  if ((options.ranks != 0) == !options.layout.empty()) {
    return absl::InvalidArgumentError("give either --ranks=64 or --layout=2x32");
  }
  if (FLAGS_et.given() == FLAGS_traces.given()) {
    return absl::InvalidArgumentError(
        "give either --traces=run/, the profiles of a job, or --et=PREFIX, its Chakra traces");
  }
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/large for et/large.0.et, ..."));
  std::string prefix = UserPath(FLAGS_et);
  std::optional<ScratchFolder> scratch;
  if (FLAGS_traces.given()) {
    ASSIGN_OR_RETURN(const JobTraces traces, UserJob());
    RETURN_IF_ERROR(
        CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, traces.All()));
    ASSIGN_OR_RETURN(ScratchFolder folder,
                     ScratchFolder::Create(UserInputOptions().temporary_directory, "scale"));
    scratch.emplace(std::move(folder));
    prefix = absl::StrCat(scratch->path(), "/job");
    const size_t count = std::max(traces.xspaces.size(), traces.device_traces.size());
    RETURN_IF_ERROR(
        ExportJob(files, traces, prefix,
                  WithProgress(JobExportOptions{UserInputOptions(), nullptr}, "reading", count)));
  } else {
    ASSIGN_OR_RETURN(const EtFiles traces, FindEtFiles(files, prefix));
    std::vector<std::string> inputs;
    for (const EtFile& file : traces.files) inputs.push_back(file.path);
    RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, inputs));
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

}  // namespace

Command WorkloadModelCommand() {
  return {"workload_model",
          "Models of a code's calls: fitted to measured runs, evaluated for runs not yet made, "
          "written as traces.",
          {},
          {},
          nullptr,
          {{"fit",
            "Fits models of counts, times and message sizes to runs measured at several "
            "numbers of nodes and sizes, and says how far they are off.",
            {"fit --traces='runs/bfs_exectrace_*' --output=M.json",
             "fit --traces=run2/,run4/,run8/ --size=1 --output=M.json",
             "fit --traces='runs/n*_s*.trace_*' "
             "--name_pattern='n(?P<nodes>\\d+)_s(?P<size>\\d+)' --callsites=run.mpiP "
             "--graph=callsites.dot --output=M.json"},
            {&FLAGS_traces, &FLAGS_et, &FLAGS_size, &FLAGS_name_pattern, &FLAGS_cells,
             &FLAGS_callsites, &FLAGS_models, &FLAGS_order, &FLAGS_output, &FLAGS_graph},
            Fit},
           {"evaluate",
            "Predicts how long a run of so many nodes and such a size takes, with an "
            "interval.",
            {"evaluate --model=M.json --nodes=64 --size=24",
             "evaluate --model=exec_exp.model --nodes=64 --size=24 "
             "--ember_compatible --json"},
            {&FLAGS_model, &FLAGS_nodes, &FLAGS_size, &FLAGS_threads, &FLAGS_ranks_per_node,
             &FLAGS_ember_compatible},
            Evaluate},
           {"generate",
            "Writes a run that was not yet made as Chakra traces, which simulators run: the "
            "control flow of the model, with its times, bytes, groups and peers.",
            {"generate --model=M.json --nodes=256 --size=26 "
             "--output=et/large",
             "generate --model=M.json --nodes=256 --size=26 "
             "--format=ember --output=motif/Search"},
            {&FLAGS_model, &FLAGS_nodes, &FLAGS_size, &FLAGS_threads, &FLAGS_ranks_per_node,
             &FLAGS_format, &FLAGS_output},
            Generate},
           {"scale",
            "Rewrites the traces of a measured job for more ranks: its groups are taken "
            "for rows of a mesh whose axes become longer.",
            {"scale --traces=run/ --ranks=64 --output=et/large",
             "scale --et=et/run --layout=2x32 --output=et/large"},
            {&FLAGS_traces, &FLAGS_et, &FLAGS_ranks, &FLAGS_layout, &FLAGS_output},
            Scale},
           {"report",
            "Compares what a model predicts with measured runs, in total and for each "
            "transition.",
            {"report --model=M.json --traces='runs/bfs_exectrace_*' "
             "--csv=cells.csv"},
            {&FLAGS_model, &FLAGS_traces, &FLAGS_et, &FLAGS_size, &FLAGS_name_pattern, &FLAGS_cells,
             &FLAGS_csv, &FLAGS_html},
            Compare}}};
}

}  // namespace meridian
