// astra_simulate: how long a workload takes on a network, with AstraSim's inputs and times.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/corrections/corrected_workload.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/et_workload.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_report.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "astra_bridge/timing/fabric.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_workload(
    "workload", "",
    "Prefix of the execution traces: PREFIX.<rank>.et, one per NPU of the network.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The folder of a calibration (astra_calibrate --calibration): network, system, corrections, "
    "and how far predictions may be off. Single flags replace its files.");
Flag<std::string> FLAGS_network("network", "", "The network: AstraSim's YAML.");
Flag<std::string> FLAGS_system(
    "system", "",
    "How collectives are carried out: AstraSim's system JSON. Default: what suits the network.");
Flag<std::string> FLAGS_remote_memory(
    "remote_memory", "",
    "Memory that memory nodes load from and store to: AstraSim's remote memory JSON.");
Flag<std::string> FLAGS_comm_groups("comm_groups", "",
                                    "JSON file with the ranks of process groups, {\"1\": [0, 1], "
                                    "...}. Default: PREFIX.comm_groups.json, if there is one.");
Flag<std::string> FLAGS_engine("engine", "embedded", "embedded, or sidecar (the user's AstraSim).");
Flag<std::string> FLAGS_backend(
    "backend", "analytical",
    "With --engine=sidecar: the network that the AstraSim program was built with; of another than "
    "analytical (ns3, ...), --network is that network's own file, and all files are handed on as "
    "they are.");
Flag<std::string> FLAGS_logical_topology(
    "logical_topology", "",
    "With another --backend: AstraSim's logical topology, {\"logical-dims\": [\"8\"]}.");
Flag<std::string> FLAGS_astra_binary(
    "astra_binary", "", "With --engine=sidecar: the AstraSim program. Default: found on PATH.");
Flag<double> FLAGS_astra_timeout_s(
    "astra_timeout_s", 600, "With --engine=sidecar: how long a run of it may take, in seconds.");
Flag<std::string> FLAGS_congestion(
    "congestion", "aware",
    "aware: messages take turns on links, as in AstraSim; unaware: they never slow each other "
    "down; fair: they share links, all at once, as on networks of links.");
Flag<int32_t> FLAGS_comm_streams(
    "comm_streams", 1, "How many collectives and sends a rank may run at once. AstraSim: 1.");
Flag<std::string> FLAGS_corrections(
    "corrections", "",
    "Corrections of a calibration: JSON. With them each collective and message, alone on the "
    "network, lasts what was measured.");
Flag<bool> FLAGS_node_times("node_times", false, "Also give the issue and finish of every node.");
Flag<std::string> FLAGS_trace_json("trace_json", "",
                                   "Where a timeline of the run goes, for chrome://tracing or "
                                   "Perfetto; gzip when it ends in .gz.");

// Returns the file with the process groups; empty for none.
std::string FindGroups(const std::string& prefix) {
  const std::string named = UserPath(FLAGS_comm_groups);
  if (!named.empty()) return named;
  const std::string beside = CommGroupsBeside(FileSystem::Posix(), prefix);
  if (!beside.empty()) {
    std::fprintf(stderr, "astra_simulate: note: process groups are those of %s\n",
                 Printable(beside).c_str());
  }
  return beside;
}

absl::StatusOr<Workload> ReadWorkload(const std::string& prefix, const std::string& groups,
                                      const Fabric& fabric) {
  EtWorkloadOptions options;
  options.input = UserInputOptions();
  options.names = !FLAGS_trace_json.value().empty();
  ASSIGN_OR_RETURN(Workload workload,
                   ReadEtWorkload(FileSystem::Posix(), prefix, fabric.network, fabric.system,
                                  WithProgress(options, "reading ranks", fabric.network.npus())));
  if (!groups.empty()) RETURN_IF_ERROR(ReadWorkloadGroups(FileSystem::Posix(), groups, &workload));
  return workload;
}

struct Outcome {
  SimulationResult result;
  // A hash of the program that the sidecar ran.
  std::string astra_version;
  // All but what is simulated.
  SimulatedTimes times;
  std::vector<std::string> notes;
};

// Notes how long the run was measured to take, if that was on this network.
void AddMeasured(const NamedNetwork& named, const Workload& workload, Outcome* outcome) {
  const std::optional<int64_t> measured_ns = MeasuredSpanNs(workload);
  if (!measured_ns.has_value() || named.calibration.fabric.system.replay_only) return;
  if (named.is_measured) {
    outcome->times.set_measured_ns(*measured_ns);
  } else {
    outcome->notes.push_back(kNotMeasuredHere);
  }
}

absl::StatusOr<Outcome> SimulateEmbedded(const NamedNetwork& named, const Workload& workload,
                                         SimulationOptions options) {
  const auto& [fabric, corrections, report] = named.calibration;
  uint64_t nodes = 0;
  for (const RankWorkload& rank : workload.ranks) nodes += rank.nodes().size();
  options.progress = ShowProgress("simulating nodes", nodes);
  // Transfers are that many intervals longer than what is predicted.
  const auto simulate = [&](double intervals) -> absl::StatusOr<SimulationResult> {
    if (!named.is_corrected) return Simulate(workload, fabric.network, fabric.system, options);
    TransferFactor factor;
    if (intervals != 0) {
      factor = [&](const TransferTraits& transfer) {
        return std::exp(intervals * named.intervals.LogFactor(transfer));
      };
    }
    ASSIGN_OR_RETURN(const Workload corrected,
                     CorrectWorkload(workload, fabric.network, fabric.system, options.congestion,
                                     corrections, factor));
    return Simulate(corrected, fabric.network, fabric.system, options);
  };
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.result, simulate(0));
  options.node_times = false;
  if (!named.intervals.empty()) {
    ASSIGN_OR_RETURN(const SimulationResult low, simulate(-1));
    ASSIGN_OR_RETURN(const SimulationResult high, simulate(1));
    outcome.times.set_low_ns(low.makespan_ns());
    outcome.times.set_high_ns(high.makespan_ns());
  }
  AddMeasured(named, workload, &outcome);
  return outcome;
}

// What only the embedded engine can do.
absl::Status RefuseWithSidecar(const SimulationOptions& options) {
  absl::string_view flag;
  if (!FLAGS_calibration.value().empty()) {
    return InvalidArgument(
        "--calibration: AstraSim cannot apply corrections; give its --network and --system, or use "
        "--engine=embedded");
  }
  if (options.comm_streams != 1) flag = "comm_streams";
  if (options.congestion == Congestion::kFair) flag = "congestion=fair";
  if (!FLAGS_corrections.value().empty()) flag = "corrections";
  if (flag.empty()) return absl::OkStatus();
  return InvalidArgument("--", flag, ": AstraSim has no such thing; use --engine=embedded");
}

absl::StatusOr<AstraSimulatorOptions> SidecarOptions(Congestion congestion) {
  const double timeout_s = FLAGS_astra_timeout_s.value();
  if (!(timeout_s > 0)) {
    return InvalidArgument("--astra_timeout_s=", timeout_s, " is no time above 0");
  }
  AstraSimulatorOptions simulator;
  ASSIGN_OR_RETURN(simulator.binary,
                   FindAstraBinary(FileSystem::Posix(), UserPath(FLAGS_astra_binary),
                                   EnvironmentVariable("PATH"), congestion));
  simulator.work_folder = UserInputOptions().temporary_directory;
  simulator.timeout = absl::Seconds(timeout_s);
  return simulator;
}

absl::StatusOr<Outcome> SimulateWithSidecar(const Fabric& fabric, const Workload& workload,
                                            const SimulationOptions& options) {
  ASSIGN_OR_RETURN(AstraSimulatorOptions simulator, SidecarOptions(options.congestion));
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.astra_version,
                   ProbeAstraBinary(FileSystem::Posix(), simulator, options.congestion));
  simulator.node_times = options.node_times;
  ASSIGN_OR_RETURN(outcome.result, SimulateWithAstraSim(FileSystem::Posix(), workload,
                                                        fabric.network, fabric.system, simulator));
  return outcome;
}

absl::StatusOr<SimulationOptions> ReadOptions() {
  SimulationOptions options;
  ASSIGN_OR_RETURN(options.congestion,
                   NamedValue<Congestion>(FLAGS_congestion, {{"aware", Congestion::kAware},
                                                             {"unaware", Congestion::kUnaware},
                                                             {"fair", Congestion::kFair}}));
  options.comm_streams = FLAGS_comm_streams.value();
  options.node_times = FLAGS_node_times.value() || !FLAGS_trace_json.value().empty();
  return options;
}

SimulationReport MakeReport(const NamedNetwork& named, const Outcome& outcome) {
  SimulationReport report = MakeSimulationReport(outcome.result);
  if (report.has_times()) report.mutable_times()->MergeFrom(outcome.times);
  report.set_engine(FLAGS_engine.value());
  report.set_congestion(FLAGS_congestion.value());
  report.set_astra_version(outcome.astra_version);
  for (const std::vector<std::string>& notes : {named.notes, outcome.notes}) {
    for (const std::string& note : notes) {
      if (!note.empty()) report.add_notes(note);
    }
  }
  if (!FLAGS_node_times.value()) report.clear_nodes();
  return report;
}

// Another network than the engine has: the program's own answer to the user's own files.
absl::StatusOr<int> SimulateOnBackend(const std::string& prefix, const SimulationOptions& options) {
  if (FLAGS_backend.value().empty()) {
    return InvalidArgument("--backend names no network; expected e.g. --backend=ns3");
  }
  RETURN_IF_ERROR(RefuseWithSidecar(options));
  RETURN_IF_ERROR(RefuseFlags({&FLAGS_congestion}, "is in the files of another --backend"));
  for (const Flag<std::string>* flag : {&FLAGS_astra_binary, &FLAGS_network, &FLAGS_system}) {
    if (flag->value().empty()) {
      return InvalidArgument("--backend=", FLAGS_backend.value(), " needs --", flag->name());
    }
  }
  if (!FLAGS_trace_json.value().empty()) {
    return InvalidArgument("--trace_json: with another --backend the traces are not read");
  }
  ASSIGN_OR_RETURN(AstraSimulatorOptions simulator, SidecarOptions(options.congestion));
  simulator.node_times = options.node_times;
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  ASSIGN_OR_RETURN(const std::vector<EtFile> traces, ListEtFiles(FileSystem::Posix(), prefix));
  if (traces.empty())
    return absl::NotFoundError(absl::StrCat(prefix, ": there is no ", EtPath(prefix, 0)));
  const AstraBackendFiles files{absolute(prefix),
                                absolute(UserPath(FLAGS_system)),
                                absolute(UserPath(FLAGS_network)),
                                absolute(UserPath(FLAGS_logical_topology)),
                                absolute(FindGroups(prefix)),
                                absolute(UserPath(FLAGS_remote_memory))};
  for (const std::string& path :
       {files.system, files.network, files.logical_topology, files.groups, files.memory}) {
    if (path.empty()) continue;
    ASSIGN_OR_RETURN(const FileKind kind, FileSystem::Posix().Kind(path));
    if (kind != FileKind::kRegular) return InvalidArgument(path, ": not a regular file");
  }
  NamedNetwork named;
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.astra_version, HashOfAstraBinary(FileSystem::Posix(), simulator.binary));
  ASSIGN_OR_RETURN(outcome.result, RunAstraBackend(FileSystem::Posix(), files,
                                                   static_cast<int64_t>(traces.size()), simulator));
  outcome.notes.push_back(absl::StrCat("the times are those of this AstraSim with its ",
                                       FLAGS_backend.value(),
                                       " network; nothing here can check them"));
  SimulationReport report = MakeReport(named, outcome);
  report.set_congestion(FLAGS_backend.value());
  return PrintReport(report, FormatSimulationReport);
}

absl::StatusOr<int> SimulateWorkload() {
  ASSIGN_OR_RETURN(const bool is_embedded,
                   NamedValue<bool>(FLAGS_engine, {{"embedded", true}, {"sidecar", false}}));
  ASSIGN_OR_RETURN(const SimulationOptions options, ReadOptions());
  ASSIGN_OR_RETURN(const std::string prefix,
                   RequiredPath(FLAGS_workload, "traces", "run/llama for run/llama.0.et, ..."));
  if (FLAGS_backend.value() != "analytical") {
    if (is_embedded) return InvalidArgument("--backend is of --engine=sidecar");
    return SimulateOnBackend(prefix, options);
  }
  if (!FLAGS_logical_topology.value().empty()) {
    return InvalidArgument("--logical_topology is of another --backend");
  }
  if (!is_embedded) RETURN_IF_ERROR(RefuseWithSidecar(options));
  // Before the traces, which may take minutes.
  ASSIGN_OR_RETURN(const CalibrationFiles files,
                   NamedCalibration(FileSystem::Posix(), UserPath(FLAGS_calibration),
                                    {UserPath(FLAGS_network), UserPath(FLAGS_system),
                                     UserPath(FLAGS_corrections), ""}));
  ASSIGN_OR_RETURN(NamedNetwork named,
                   ReadNetwork(FileSystem::Posix(), files, /*with_computation=*/true));
  const std::string memory = UserPath(FLAGS_remote_memory);
  if (!memory.empty()) {
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(FileSystem::Posix(), memory));
    ASSIGN_OR_RETURN(named.calibration.fabric.system.remote_memory,
                     ParseRemoteMemory(file.bytes(), memory));
  }
  for (std::string& custom : named.calibration.fabric.system.custom) custom = UserPath(custom);
  const Fabric& fabric = named.calibration.fabric;
  const std::string groups = FindGroups(prefix);
  const std::string timeline = UserPath(FLAGS_trace_json);
  // Outputs must not take the place of what is simulated.
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   SimulationInputs(FileSystem::Posix(), prefix, files.All()));
  inputs.insert(inputs.end(), {groups, memory});
  for (const std::string& custom : fabric.system.custom) {
    if (custom.empty()) continue;
    ASSIGN_OR_RETURN(inputs, SimulationInputs(FileSystem::Posix(), custom, std::move(inputs)));
  }
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {timeline}));
  ASSIGN_OR_RETURN(const Workload workload, ReadWorkload(prefix, groups, fabric));
  ASSIGN_OR_RETURN(Outcome outcome, is_embedded ? SimulateEmbedded(named, workload, options)
                                                : SimulateWithSidecar(fabric, workload, options));
  for (const std::string& note : DescribeCustomSizes(workload, fabric.system)) {
    outcome.notes.push_back(note);
  }
  outcome.notes.push_back(fabric.system.remote_memory.unknown_keys);
  outcome.notes.push_back(DescribeRanksLeftOut(FileSystem::Posix(), prefix, fabric.network));
  OutputFiles outputs(FileSystem::Posix());
  if (!timeline.empty()) {
    RETURN_IF_ERROR(outputs.Write("timeline", timeline, [&](ByteSink& sink) {
      return WriteTimeline(workload, outcome.result, &sink);
    }));
  }
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(MakeReport(named, outcome), FormatSimulationReport);
}

}  // namespace

Command AstraSimulateCommand() {
  return {"astra_simulate",
          "Simulates a workload (Chakra execution traces) on a network and prints when each rank "
          "is done, with AstraSim's inputs and, to the nanosecond, its times.",
          {"astra_simulate --workload=run/llama --calibration=machine/",
           "astra_simulate --workload=run/llama --network=network.yml --system=system.json",
           "astra_simulate --workload=run/llama --network=network.yml --system=system.json "
           "--comm_groups=run/llama.comm_groups.json --congestion=unaware --node_times --json"},
          {&FLAGS_workload, &FLAGS_calibration, &FLAGS_network, &FLAGS_system, &FLAGS_remote_memory,
           &FLAGS_comm_groups, &FLAGS_engine, &FLAGS_backend, &FLAGS_logical_topology,
           &FLAGS_astra_binary, &FLAGS_astra_timeout_s, &FLAGS_congestion, &FLAGS_comm_streams,
           &FLAGS_corrections, &FLAGS_node_times, &FLAGS_trace_json},
          SimulateWorkload};
}

}  // namespace meridian
