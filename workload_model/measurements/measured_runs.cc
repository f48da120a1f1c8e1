#include "workload_model/measurements/measured_runs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "workload_model/measurements/call_traces.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Returns the size of a job, which its name tells, or the user for all.
absl::StatusOr<double> SizeOfJob(const std::string& name, const MeasuredRunsOptions& options) {
  double size = options.size.value_or(-1);
  if (!options.size.has_value() && !options.name_pattern.empty()) {
    ASSIGN_OR_RETURN(const RunName in_name,
                     ReadRunName(name, options.name_pattern, /*is_job=*/true));
    size = in_name.cell.size;
  }
  if (size >= 0 && size <= kMaxSize) return size;
  return InvalidArgument(name,
                         ": how large is the problem of this job? Say it for all with --size=1, or "
                         "by their names with --name_pattern='s(?P<size>\\d+)'");
}

// The communications of one rank as calls, nodes being in the order in which they started.
std::vector<TracedCall> CallsOf(const ExecutionGraph& graph, int64_t rank,
                                const std::vector<NodeIndex>& nodes) {
  // What tells a callsite: name, kind, group and bytes.
  using CallKey = std::tuple<std::string, std::string, GroupIndex, int64_t>;
  std::map<CallKey, int64_t> callsites;
  std::vector<TracedCall> calls;
  int64_t source = 0, last_end_ns = 0;
  for (NodeIndex node : nodes) {
    const Communication& communication = *graph.communication(node);
    const bool is_message = IsMessage(graph.type(node));
    TracedCall& call = calls.emplace_back();
    call.source = source;
    call.operation = graph.CommunicationKind(node);
    const CallKey key(std::string(graph.name(node)), call.operation,
                      is_message ? 0 : communication.group, communication.bytes);
    call.destination =
        callsites.insert({key, static_cast<int64_t>(callsites.size()) + 1}).first->second;
    const int64_t end_ns = std::max(last_end_ns, graph.start_ns(node) + graph.duration_ns(node));
    call.us = static_cast<double>(end_ns - last_end_ns) / kNsPerUs;
    call.call_us = std::min(call.us, static_cast<double>(graph.duration_ns(node)) / kNsPerUs);
    call.bytes = static_cast<double>(communication.bytes);
    if (!is_message) {
      call.members = graph.groups()[communication.group].ranks;
    } else if (communication.source == rank) {
      call.sends_message = true;
      if (communication.target != kNoRank) call.peer = communication.target;
    }
    source = call.destination;
    last_end_ns = end_ns;
  }
  return calls;
}

}  // namespace

absl::StatusOr<MeasuredInputs> FindMeasuredRuns(FileSystem& file_system,
                                                const MeasuredRunsOptions& options) {
  MeasuredInputs inputs;
  if (options.traces.empty() && options.et.empty()) {
    return InvalidArgument("--traces names no file; expected e.g. --traces='runs/*.trace'");
  }
  for (absl::string_view item : absl::StrSplit(options.et, ',', absl::SkipEmpty())) {
    const std::string& prefix =
        inputs.et_prefixes.emplace_back(ResolvePath(item, options.working_directory));
    ASSIGN_OR_RETURN(const EtFiles found, FindEtFiles(file_system, prefix));
    for (const EtFile& file : found.files) inputs.all.push_back(file.path);
    inputs.all.push_back(CommGroupsPath(prefix));
  }
  for (absl::string_view item : absl::StrSplit(options.traces, ',', absl::SkipEmpty())) {
    const std::string path = ResolvePath(item, options.working_directory);
    const absl::StatusOr<FileKind> kind = file_system.Kind(path);
    if (kind.ok() && *kind == FileKind::kDirectory) {
      const std::vector<std::string> profiles = options.job_profiles(path);
      inputs.all.insert(inputs.all.end(), profiles.begin(), profiles.end());
      if (!profiles.empty()) {
        inputs.run_dirs.push_back(path);
        continue;
      }
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> files,
                     ExpandPaths(file_system, item,
                                 {options.working_directory, {".txt", ".trace", ".csv", ".gz"}}));
    inputs.files.insert(inputs.files.end(), files.begin(), files.end());
  }
  inputs.all.insert(inputs.all.end(), inputs.files.begin(), inputs.files.end());
  inputs.all.push_back(options.callsites);
  return inputs;
}

absl::StatusOr<std::vector<RunMeasurements>> ReadMeasuredRuns(FileSystem& file_system,
                                                              const MeasuredInputs& inputs,
                                                              const MeasuredRunsOptions& options) {
  std::map<int64_t, Callsite> callsites;
  if (!options.callsites.empty()) {
    ASSIGN_OR_RETURN(const InputFile file,
                     InputFile::Open(file_system, options.callsites, options.input));
    ASSIGN_OR_RETURN(callsites, ParseCallsites(file.bytes(), options.callsites));
  }
  std::vector<RunMeasurements> runs;
  size_t position = 0;
  const auto show_progress = [&] {
    if (options.progress) options.progress(position++);
  };
  for (const std::string& path : inputs.files) {
    show_progress();
    ASSIGN_OR_RETURN(const RunName name, ReadRunName(path, options.name_pattern));
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path, options.input));
    ASSIGN_OR_RETURN(RunMeasurements run, ParseMeasurements(file.bytes(), path, name, callsites));
    runs.push_back(std::move(run));
  }
  const auto add_job = [&](const std::string& prefix, const std::string& name) -> absl::Status {
    ASSIGN_OR_RETURN(const double size, SizeOfJob(name, options));
    ASSIGN_OR_RETURN(std::vector<RunMeasurements> of_job,
                     ReadRunCalls(file_system, prefix, name, size));
    for (RunMeasurements& run : of_job) runs.push_back(std::move(run));
    return absl::OkStatus();
  };
  for (const std::string& run_dir : inputs.run_dirs) {
    show_progress();
    ASSIGN_OR_RETURN(const ScratchFolder folder,
                     ScratchFolder::Create(options.input.temporary_directory, "model"));
    const std::string prefix = absl::StrCat(folder.path(), "/job");
    RETURN_IF_ERROR(Annotate(options.export_job(run_dir, prefix), run_dir));
    RETURN_IF_ERROR(add_job(prefix, run_dir));
  }
  for (const std::string& prefix : inputs.et_prefixes) {
    show_progress();
    RETURN_IF_ERROR(add_job(prefix, prefix));
  }
  return runs;
}

absl::StatusOr<std::vector<RunMeasurements>> ReadRunCalls(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          const std::string& name, double size) {
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  EtGraphReaderOptions options;
  options.ignore_dangling = true;
  ASSIGN_OR_RETURN(options.groups, FindCommGroups(file_system, "", prefix));
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, files, options));
  std::map<int64_t, std::vector<NodeIndex>> by_rank;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    if (graph.start_ns(node) == kNoTimeNs) {
      return InvalidArgument(
          Printable(name), ": ", Printable(graph.Describe(node)),
          " does not say when it ran; a model needs traces of a run that was measured");
    }
    by_rank[graph.rank(node)].push_back(node);
  }
  std::vector<RunMeasurements> runs;
  RunName run_name = {{static_cast<double>(graph.Ranks().size()), size}, 0, name};
  for (auto& [rank, nodes] : by_rank) {
    std::sort(nodes.begin(), nodes.end(), [&](NodeIndex a, NodeIndex b) {
      return std::make_pair(graph.start_ns(a), graph.id(a)) <
             std::make_pair(graph.start_ns(b), graph.id(b));
    });
    run_name.rank = rank;
    ASSIGN_OR_RETURN(RunMeasurements run,
                     MeasureCalls(CallsOf(graph, rank, nodes), name, run_name));
    if (run.times.empty()) {
      return InvalidArgument(Printable(name), ": rank ", rank,
                             " communicates once, which makes no transition");
    }
    runs.push_back(std::move(run));
  }
  if (runs.empty()) return InvalidArgument(Printable(name), ": there is no communication in it");
  return runs;
}

}  // namespace meridian
