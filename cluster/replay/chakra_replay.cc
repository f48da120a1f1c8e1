// chakra_replay: runs a Chakra execution trace on real ranks, over MPI or NCCL.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "cluster/mpi/mpi_processes.h"
#include "cluster/replay/mpi_transport.h"
#include "cluster/replay/nccl_transport.h"
#include "cluster/replay/rank_replayer.h"
#include "cluster/replay/replay_output.h"
#include "cluster/replay/replay_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/wire/packed_bytes.h"

namespace meridian {

static void Pack(PackedBytes& bytes, ReplayedTimes& times) { bytes(times.start_ns, times.end_ns); }

namespace {

Flag<std::string> FLAGS_et("et", "",
                           "Prefix of the traces: PREFIX.<rank>.et, one for each process of "
                           "mpirun; every host reads all of them.");
Flag<std::string> FLAGS_comm_groups(
    "comm_groups", "",
    "JSON of the groups' ranks; default PREFIX.comm_groups.json if there is one.");
Flag<std::string> FLAGS_output(
    "output", "",
    "Prefix of what is written: PREFIX.<rank>.xplane.pb of every repeat, by each rank; and "
    "PREFIX.<rank>.et with the times of the median one, by rank 0.");
Flag<int64_t> FLAGS_warmup("warmup", 1, "How often the workload runs before it is measured.");
Flag<int64_t> FLAGS_repeats("repeats", 5, "How often it is measured.");
Flag<std::string> FLAGS_compute(
    "compute", "busy",
    "busy: work that takes a node's duration on an idle core; sleep: the core is free meanwhile; "
    "none: only communication is replayed. With --backend=nccl, busy and sleep are the host's "
    "computation; the device's is kernels of its duration.");
Flag<std::string> FLAGS_backend(
    "backend", "mpi",
    "What carries communication: mpi, or nccl, on a GPU for each rank. NCCL and the driver are "
    "looked for when it runs; mpirun starts the ranks all the same.");
Flag<double> FLAGS_timeout_s("timeout_s", 60,
                             "A rank that waits for so long, and as long as the longest rank's "
                             "computation, is in a deadlock.");

enum class Backend : uint8_t { kMpi, kNccl };

struct Workload {
  std::string output;
  ExecutionGraph graph;
  std::vector<NodeCost> costs;
  std::unique_ptr<CommunicationMatch> match;
  std::unique_ptr<MpiTransport> mpi;
  // Null without --backend=nccl.
  std::unique_ptr<NcclTransport> nccl;
  ReplayerOptions options;
};

absl::StatusOr<int64_t> CostOf(const ChakraProtoMsg::Node& node, absl::string_view attribute) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, GetIntAttribute(node.attr(), attribute));
  return value.value_or(0);
}

absl::Status ReadGraph(const std::string& prefix, Workload* workload) {
  FileSystem& file_system = FileSystem::Posix();
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  std::vector<std::string> inputs;
  for (const EtFile& file : files.files) inputs.push_back(file.path);
  RETURN_IF_ERROR(CheckOutputPrefix("--output", workload->output, {".et", ".xplane.pb"}, inputs));
  EtGraphReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(options.groups,
                   FindCommGroups(file_system, UserPath(FLAGS_comm_groups), prefix));
  options.visit = [&](NodeIndex, const ChakraProtoMsg::Node& node) -> absl::Status {
    NodeCost& cost = workload->costs.emplace_back();
    ASSIGN_OR_RETURN(cost.operations, CostOf(node, kNumOpsAttribute));
    ASSIGN_OR_RETURN(cost.bytes, CostOf(node, kTensorSizeAttribute));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(workload->graph, ReadEtGraph(file_system, files, options));
  return TopologicalOrder(workload->graph).status();
}

absl::Status CheckGroups(const ExecutionGraph& graph, int64_t rank_count) {
  for (const ProcessGroup& group : graph.groups()) {
    for (const int64_t rank : group.ranks) {
      if (rank < rank_count) continue;
      return InvalidArgument("group \"", group.name, "\" has rank ", rank, ", but there are ",
                             rank_count, " ranks");
    }
  }
  return absl::OkStatus();
}

std::string ProfilePath(const std::string& prefix, int64_t rank) {
  return absl::StrCat(prefix, ".", rank, ".xplane.pb");
}

absl::Status Load(const MpiProcesses& processes, Workload* workload) {
  ASSIGN_OR_RETURN(const std::string et,
                   RequiredPath(FLAGS_et, "prefix", "et/run for et/run.0.et"));
  ASSIGN_OR_RETURN(workload->output, RequiredPath(FLAGS_output, "prefix", "replay/run"));
  if (FLAGS_warmup.value() < 0 || FLAGS_repeats.value() < 1 || !(FLAGS_timeout_s.value() >= 1) ||
      FLAGS_timeout_s.value() > 1e6) {
    return InvalidArgument(
        "expected --warmup of at least 0, --repeats of at least 1 and --timeout_s of 1 to 10^6");
  }
  workload->options.timeout_ns = static_cast<int64_t>(FLAGS_timeout_s.value() * 1e9);
  ASSIGN_OR_RETURN(workload->options.compute,
                   NamedValue<ComputeMode>(FLAGS_compute, {{"busy", ComputeMode::kBusy},
                                                           {"sleep", ComputeMode::kSleep},
                                                           {"none", ComputeMode::kNone}}));
  ASSIGN_OR_RETURN(
      const Backend backend,
      NamedValue<Backend>(FLAGS_backend, {{"mpi", Backend::kMpi}, {"nccl", Backend::kNccl}}));
  RETURN_IF_ERROR(ReadGraph(et, workload));
  const auto ranks = static_cast<int64_t>(workload->graph.Ranks().size());
  if (ranks != processes.rank_count()) {
    return InvalidArgument(et, ": there are traces of ", ranks, " ranks, but ",
                           processes.rank_count(), " processes; run it with mpirun -n ", ranks);
  }
  RETURN_IF_ERROR(CheckGroups(workload->graph, ranks));
  workload->match = std::make_unique<CommunicationMatch>(workload->graph);
  if (!workload->match->problems().empty()) {
    return InvalidArgument(workload->match->problems()[0].text);
  }
  ASSIGN_OR_RETURN(workload->mpi, MpiTransport::Create(processes, workload->graph));
  if (backend == Backend::kNccl) {
    ASSIGN_OR_RETURN(
        workload->nccl,
        NcclTransport::Create(workload->graph, processes.rank_on_host(), workload->mpi.get()));
  }
  // Before the replay, which may take long.
  return AtomicFileWriter::CreateWithFolder(FileSystem::Posix(),
                                            ProfilePath(workload->output, processes.rank()))
      .status();
}

absl::Status Connect(MpiProcesses* processes, Workload* workload) {
  workload->mpi->MakeCommunicators();
  if (workload->nccl == nullptr) return absl::OkStatus();
  absl::StatusOr<std::string> ids = std::string();
  if (processes->is_first()) ids = workload->nccl->NewIds();
  RETURN_IF_ERROR(processes->Agree(ids.status()));
  processes->Broadcast(&*ids);
  return workload->nccl->MakeCommunicators(*ids);
}

absl::StatusOr<std::vector<ReplayedStep>> RunSteps(MpiProcesses* processes, Workload* workload) {
  RETURN_IF_ERROR(Connect(processes, workload));
  Transport* transport = workload->mpi.get();
  if (workload->nccl != nullptr) transport = workload->nccl.get();
  RankReplayer replayer(workload->graph, workload->options, transport);
  for (int64_t i = 0; i < FLAGS_warmup.value(); ++i) RETURN_IF_ERROR(replayer.RunStep().status());
  std::vector<ReplayedStep> steps;
  for (int64_t i = 0; i < FLAGS_repeats.value(); ++i) {
    ASSIGN_OR_RETURN(steps.emplace_back(), replayer.RunStep());
  }
  RETURN_IF_ERROR(replayer.Meet());
  return steps;
}

std::string Hostname() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

absl::Status Write(const std::vector<ReplayedStep>& steps, MpiProcesses* processes,
                   Workload* workload, ChakraReplayReport* report) {
  std::vector<int64_t> spans_ns;
  for (const ReplayedStep& step : steps) spans_ns.push_back(step.span.end_ns - step.span.start_ns);
  spans_ns = processes->LargestOf(std::move(spans_ns));
  // Repeats by how long they took; the median is the lower one of two.
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < spans_ns.size(); ++i) order.push_back({spans_ns[i], i});
  absl::c_sort(order);
  const size_t median = order[(order.size() - 1) / 2].second;
  // At the first rank: of all ranks' nodes, one rank after the other.
  std::vector<ReplayedTimes> all_times = steps[median].nodes;
  PackedBytes packed;
  packed(all_times);
  RETURN_IF_ERROR(processes->Gather(packed.bytes(), [&](absl::string_view bytes) {
    PackedBytes received(bytes);
    std::vector<ReplayedTimes> times;
    received(times);
    all_times.insert(all_times.end(), times.begin(), times.end());
    return received.Finish();
  }));
  for (const int64_t span_ns : spans_ns) report->add_repeats()->set_step_ns(span_ns);
  report->set_median_repeat(static_cast<int64_t>(median));
  report->set_median_ns(spans_ns[median]);
  FileSystem& file_system = FileSystem::Posix();
  RETURN_IF_ERROR(WriteOutput(
      file_system, ProfilePath(workload->output, processes->rank()),
      ReplayProfile(workload->graph, *workload->match, processes->rank(), Hostname(), steps)));
  if (processes->rank() != 0) return absl::OkStatus();
  // Readers would take the profiles of an earlier, larger replay for part of this one.
  for (int64_t rank = processes->rank_count();
       file_system.Delete(ProfilePath(workload->output, rank)).ok();) {
    ++rank;
  }
  return WriteMeasuredTrace(file_system, *workload->match, all_times, workload->costs,
                            workload->output, &workload->graph);
}

void Describe(const Workload& workload, ChakraReplayReport* report) {
  const ExecutionGraph& graph = workload.graph;
  report->set_ranks(workload.mpi->rank_count());
  report->set_nodes(static_cast<int64_t>(graph.node_count()));
  report->set_output(workload.output);
  std::vector<int64_t> compute_ns(report->ranks(), 0);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) != nullptr) {
      report->set_comm_nodes(report->comm_nodes() + 1);
    } else {
      compute_ns[graph.rank(node)] += graph.duration_ns(node);
    }
  }
  report->set_compute_ns(*absl::c_max_element(compute_ns));
  const std::optional<int64_t> recorded_ns = MeasuredSpanNs(graph);
  if (recorded_ns.has_value()) report->set_recorded_ns(*recorded_ns);
}

// Returns a line that says what the job took when it was recorded, if that is known.
std::string FormatRecorded(const ChakraReplayReport& report) {
  if (report.recorded_ns() <= 0 || FLAGS_compute.value() == "none") return "";
  const auto recorded_ns = static_cast<double>(report.recorded_ns());
  return absl::StrCat(
      "recorded ", WithThousands(report.recorded_ns() / 1000), " us; the replay is ",
      absl::StrFormat("%+.1f %%", (report.median_ns() - recorded_ns) / recorded_ns * 100),
      FLAGS_backend.value() == "nccl"
          ? " off; threads of the job that took processors from NCCL's are not replayed\n"
          : " off\n");
}

std::string FormatReplayReport(const ChakraReplayReport& report) {
  TextTable repeats({">repeat", ">step us"});
  for (int i = 0; i < report.repeats_size(); ++i) {
    repeats.AddRow({absl::StrCat(i), WithThousands(report.repeats(i).step_ns() / 1000)});
  }
  return absl::StrCat(
      repeats.ToString(), "\n", WithThousands(report.nodes()), " nodes of ", report.ranks(),
      " ranks, ", WithThousands(report.comm_nodes()), " of them communication; median step ",
      WithThousands(report.median_ns() / 1000), " us (repeat ", report.median_repeat(),
      "), computation ", WithThousands(report.compute_ns() / 1000), " us\n", FormatRecorded(report),
      "written: ", report.output(), ".<rank>.xplane.pb, ", report.output(), ".<rank>.et\n");
}

absl::StatusOr<int> Replay(MpiProcesses& processes) {
  Workload workload;
  RETURN_IF_ERROR(processes.Agree(Load(processes, &workload)));
  ChakraReplayReport report;
  Describe(workload, &report);
  // Ranks may wait for one that computes.
  workload.options.timeout_ns += report.compute_ns();
  const absl::StatusOr<std::vector<ReplayedStep>> steps = RunSteps(&processes, &workload);
  if (!steps.ok()) {
    std::fprintf(stderr, "chakra_replay: %s\n", Printable(steps.status().message()).c_str());
    // The others wait for something that never comes, and say so before all are ended.
    sleep(1);
    processes.Abort(absl::IsAborted(steps.status()) ? kExitCheckFailed : kExitEnvironment);
  }
  RETURN_IF_ERROR(processes.Agree(Write(*steps, &processes, &workload, &report)));
  if (!processes.is_first()) return kExitDone;
  return PrintReport(report, FormatReplayReport);
}

int ReplayMain(int argc, char** argv) {
  MpiProcesses processes;
  const Command command = {
      "chakra_replay",
      "Runs a workload of Chakra execution traces on real ranks, over MPI or NCCL, and writes what "
      "it "
      "measured: a profile (XSpace) of each rank, and traces with the measured times.",
      {"mpirun -n 4 chakra_replay --et=et/gpt --output=replay/gpt",
       "mpirun -n 4 chakra_replay --et=et/sweep --output=replay/sweep --compute=none --repeats=20 "
       "--json",
       "mpirun -n 8 chakra_replay --et=et/run --output=replay/run --backend=nccl"},
      {&FLAGS_et, &FLAGS_comm_groups, &FLAGS_output, &FLAGS_backend, &FLAGS_warmup, &FLAGS_repeats,
       &FLAGS_compute, &FLAGS_timeout_s},
      [&]() { return Replay(processes); }};
  return RunMpiCommand(&processes, command, argc, argv);
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) { return meridian::ReplayMain(argc, argv); }
