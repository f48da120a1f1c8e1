// workload_model: models of a code's calls, fitted to measured runs, for runs not yet made.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pipeline/job_traces.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/generate/call_workload.h"
#include "workload_model/measurements/measured_runs.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/measurements/rank_classes.h"
#include "workload_model/models/models.h"
#include "workload_model/scaling/scaling.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/files/scratch_folder.h"
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
    "A regular expression (RE2) with groups called nodes, size and, if names tell them, threads: "
    "'n(?P<nodes>\\d+)_s(?P<size>\\d+)'. Default: names of the published data, "
    "..._16-16-1-20-0.txt for 16 nodes, 1 thread, size 20.");
Flag<std::string> FLAGS_models(
    "models", "auto",
    "Of times: auto, the simplest normal form that predicts runs it was not fitted to; or "
    "CONSTANT, EXPONENTIAL, BILINEAR, POLYNOMIAL, NORMAL for all.");
Flag<int32_t> FLAGS_order("order", 2, "Of polynomials: 1 to 4.");
Flag<std::string> FLAGS_callsites(
    "callsites", "",
    "A report of mpiP or A-mpiP (.mpiP): traces are checked against its table of callsites, and "
    "its times of calls tell computation from communication.");
Flag<std::string> FLAGS_output(
    "output", "",
    "fit: the file that models are written to, as JSON, or, if it ends in .model, those of times "
    "in the form of the published Ember motif, which has no NORMAL; generate, scale: PREFIX of the "
    "new traces.");
Flag<std::string> FLAGS_format("format", "chakra",
                               "chakra: execution traces; ember: a motif of SST's Ember, "
                               "OUTPUT.cc, its SDL, OUTPUT.py, and the "
                               "models that it evaluates, OUTPUT.exec.model and OUTPUT.msg.model.");
Flag<std::string> FLAGS_model(
    "model", "",
    "A file that workload_model fit has written; for evaluate also one in the form of the Ember "
    "motif.");
Flag<double> FLAGS_nodes("nodes", 0, "How many nodes to predict for.");
Flag<double> FLAGS_size(
    "size", -1,
    "How large a problem to predict for; for fit, that of jobs whose names do not tell.");
Flag<int64_t> FLAGS_threads("threads", 1, "How many threads to predict for.");
Flag<int64_t> FLAGS_ranks_per_node("ranks_per_node", 1, "How many ranks per node to predict for.");
Flag<bool> FLAGS_ember_compatible("ember_compatible", false,
                                  "Evaluates a model file of the Ember motif as the motif does: "
                                  "rounded to the ns, of a trace the first value.");

FileSystem& Files() { return FileSystem::Posix(); }

// Reads the runs of --traces and --et, unless one of their files would be overwritten by an output.
absl::StatusOr<std::vector<RunMeasurements>> ReadRuns(const std::vector<std::string>& outputs) {
  MeasuredRunsOptions options;
  options.traces = FLAGS_traces.value();
  options.et = FLAGS_et.value();
  options.working_directory = UserDirectory();
  options.name_pattern = FLAGS_name_pattern.value();
  options.callsites = UserPath(FLAGS_callsites);
  if (FLAGS_size.given()) options.size = FLAGS_size.value();
  options.input = UserInputOptions();
  options.job_profiles = [](const std::string& folder) {
    return FindJobTraces(Files(), folder).value_or(JobTraces()).All();
  };
  options.export_job = [](const std::string& folder, const std::string& prefix) -> absl::Status {
    ASSIGN_OR_RETURN(const JobTraces traces, FindJobTraces(Files(), folder));
    return ExportJob(Files(), traces, prefix, {UserInputOptions(), nullptr});
  };
  ASSIGN_OR_RETURN(MeasuredInputs inputs, FindMeasuredRuns(Files(), options));
  inputs.all.push_back(UserPath(FLAGS_model));
  RETURN_IF_ERROR(CheckOutputPaths(inputs.all, outputs));
  return ReadMeasuredRuns(Files(), inputs, WithProgress(options, "reading", inputs.count()));
}

absl::StatusOr<int> Fit() {
  if (FLAGS_models.value() != kPolynomial) {
    RETURN_IF_ERROR(RefuseFlags({&FLAGS_order}, "is of --models=POLYNOMIAL"));
  }
  const std::string output = UserPath(FLAGS_output);
  ASSIGN_OR_RETURN(std::vector<RunMeasurements> runs, ReadRuns({output}));
  ASSIGN_OR_RETURN(const WorkloadModel model,
                   FitRuns(std::move(runs), FLAGS_models.value(), FLAGS_order.value()));
  ASSIGN_OR_RETURN(const std::string text, WorkloadModelText(model, output));
  OutputFiles outputs(Files());
  RETURN_IF_ERROR(outputs.WriteText("model", output, text));
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(model, FormatWorkloadModel);
}

absl::StatusOr<InputFile> OpenModel() {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(FLAGS_model, "file", "M.json"));
  return InputFile::Open(Files(), path, UserInputOptions());
}

absl::StatusOr<WorkloadModel> ReadModel() {
  ASSIGN_OR_RETURN(const InputFile file, OpenModel());
  return ParseWorkloadModel(file.bytes(), UserPath(FLAGS_model));
}

absl::StatusOr<int> Compare() {
  ASSIGN_OR_RETURN(const WorkloadModel model, ReadModel());
  ASSIGN_OR_RETURN(std::vector<RunMeasurements> runs, ReadRuns({}));
  AssignClasses(model.rank_classes(), &runs);
  ASSIGN_OR_RETURN(const WorkloadComparison comparison, CompareWorkload(model, Aggregate(runs)));
  return PrintReport(comparison, FormatWorkloadComparison);
}

absl::StatusOr<WorkloadCell> AskedCell() {
  const CellKind kind = {FLAGS_threads.value(), FLAGS_ranks_per_node.value(), ""};
  const WorkloadCell cell(FLAGS_nodes.value(), FLAGS_size.value(), kind);
  RETURN_IF_ERROR(CheckAskedCell(cell));
  return cell;
}

absl::StatusOr<int> Evaluate() {
  ASSIGN_OR_RETURN(const InputFile file, OpenModel());
  ASSIGN_OR_RETURN(const WorkloadCell cell, AskedCell());
  ASSIGN_OR_RETURN(
      const WorkloadEvaluation evaluation,
      EvaluateFile(file.bytes(), UserPath(FLAGS_model), cell, FLAGS_ember_compatible.value()));
  return PrintReport(evaluation, FormatWorkloadEvaluation);
}

absl::StatusOr<std::string> OutputPrefix() {
  return RequiredPath(FLAGS_output, "prefix", "et/large for et/large.0.et, ...");
}

absl::StatusOr<int> Generate() {
  ASSIGN_OR_RETURN(const WorkloadModel model, ReadModel());
  ASSIGN_OR_RETURN(const std::string output, OutputPrefix());
  GenerateOptions options;
  ASSIGN_OR_RETURN(options.cell, AskedCell());
  CallWorkloadReport report;
  if (FLAGS_format.value() == "ember") {
    RETURN_IF_ERROR(CheckOutputPaths(
        {UserPath(FLAGS_model)},
        {output + ".cc", output + ".py", output + ".exec.model", output + ".msg.model"}));
    ASSIGN_OR_RETURN(report, WriteEmberMotif(Files(), model, options.cell, output));
  } else if (FLAGS_format.value() == "chakra") {
    RETURN_IF_ERROR(CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"},
                                      {UserPath(FLAGS_model)}));
    ASSIGN_OR_RETURN(report,
                     GenerateWorkload(Files(), model, output, WithProgress(options, "writing", 0)));
  } else {
    return InvalidArgument("--format=", FLAGS_format.value(), " is neither chakra nor ember");
  }
  return PrintReport(report, FormatCallWorkload);
}

absl::StatusOr<JobTraces> UserJob() {
  const std::string path = UserPath(FLAGS_traces);
  const absl::StatusOr<FileKind> kind = Files().Kind(path);
  if (kind.ok() && *kind == FileKind::kDirectory) return FindJobTraces(Files(), path);
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   UserFiles(FLAGS_traces, ProfileSuffixes(), "run/"));
  return SortTraces(Files(), paths);
}

// Writes the profiles of --traces as Chakra traces first.
absl::StatusOr<ScaleReport> ScaleProfiles(const std::string& output, const ScaleOptions& options) {
  ASSIGN_OR_RETURN(const JobTraces traces, UserJob());
  RETURN_IF_ERROR(
      CheckOutputPrefix("--output", output, {".et", ".comm_groups.json"}, traces.All()));
  ASSIGN_OR_RETURN(const ScratchFolder folder,
                   ScratchFolder::Create(UserInputOptions().temporary_directory, "scale"));
  const std::string prefix = absl::StrCat(folder.path(), "/job");
  const size_t count = std::max(traces.xspaces.size(), traces.device_traces.size());
  RETURN_IF_ERROR(
      ExportJob(Files(), traces, prefix,
                WithProgress(JobExportOptions{UserInputOptions(), nullptr}, "reading", count)));
  const absl::StatusOr<ScaleReport> report =
      ScaleWorkload(Files(), prefix, output, WithProgress(options, "writing", 0));
  if (report.ok()) return report;
  // Nobody knows where the job's traces were for a while.
  return absl::Status(report.status().code(),
                      absl::StrReplaceAll(report.status().message(), {{prefix, "the job"}}));
}

absl::StatusOr<int> Scale() {
  ScaleOptions options;
  options.ranks = FLAGS_ranks.value();
  RETURN_IF_ERROR(ParseLayout(FLAGS_layout.value(), &options));
  if (FLAGS_et.given() == FLAGS_traces.given()) {
    return InvalidArgument(
        "give either --traces=run/, the profiles of a job, or --et=PREFIX, its Chakra traces");
  }
  ASSIGN_OR_RETURN(const std::string output, OutputPrefix());
  ASSIGN_OR_RETURN(const ScaleReport report,
                   FLAGS_traces.given() ? ScaleProfiles(output, options)
                                        : ScaleWorkload(Files(), UserPath(FLAGS_et), output,
                                                        WithProgress(options, "writing", 0)));
  return PrintReport(report, FormatScaleReport);
}

}  // namespace

Command WorkloadModelCommand() {
  return {
      "workload_model",
      "Models of a code's calls: fitted to measured runs, evaluated for runs not yet made, written "
      "as traces.",
      {},
      {},
      nullptr,
      {{"fit",
        "Fits models of counts, times and message sizes to runs measured at several numbers of "
        "nodes and sizes, and says how far they are off.",
        {"fit --traces='runs/bfs_exectrace_*' --output=M.json",
         "fit --traces=run2/,run4/,run8/ --size=1 --output=M.json",
         "fit --traces='runs/n*_s*.trace_*' --name_pattern='n(?P<nodes>\\d+)_s(?P<size>\\d+)' "
         "--callsites=run.mpiP --output=M.json"},
        {&FLAGS_traces, &FLAGS_et, &FLAGS_size, &FLAGS_name_pattern, &FLAGS_callsites,
         &FLAGS_models, &FLAGS_order, &FLAGS_output},
        Fit},
       {"evaluate",
        "Predicts how long a run of so many nodes and such a size takes, with an interval.",
        {"evaluate --model=M.json --nodes=64 --size=24",
         "evaluate --model=exec_exp.model --nodes=64 --size=24 --ember_compatible --json"},
        {&FLAGS_model, &FLAGS_nodes, &FLAGS_size, &FLAGS_threads, &FLAGS_ranks_per_node,
         &FLAGS_ember_compatible},
        Evaluate},
       {"generate",
        "Writes a run that was not yet made as Chakra traces, which simulators run: the control "
        "flow of the model, with its times, bytes, groups and peers.",
        {"generate --model=M.json --nodes=256 --size=26 --output=et/large",
         "generate --model=M.json --nodes=256 --size=26 --format=ember --output=motif/Search"},
        {&FLAGS_model, &FLAGS_nodes, &FLAGS_size, &FLAGS_threads, &FLAGS_ranks_per_node,
         &FLAGS_format, &FLAGS_output},
        Generate},
       {"scale",
        "Rewrites the traces of a measured job for more ranks: its groups are taken for rows of a "
        "mesh whose axes become longer.",
        {"scale --traces=run/ --ranks=64 --output=et/large",
         "scale --et=et/run --layout=2x32 --output=et/large"},
        {&FLAGS_traces, &FLAGS_et, &FLAGS_ranks, &FLAGS_layout, &FLAGS_output},
        Scale},
       {"report",
        "Compares what a model predicts with measured runs, in total and for each transition.",
        {"report --model=M.json --traces='runs/bfs_exectrace_*'"},
        {&FLAGS_model, &FLAGS_traces, &FLAGS_et, &FLAGS_size, &FLAGS_name_pattern},
        Compare}}};
}

}  // namespace meridian
