// astra_simulate: how long a workload takes on a network, with AstraSim's inputs and times.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/corrections/corrected_simulation.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/et_workload.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulated_times.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_report.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/timeline.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "astra_bridge/timing/fabric.h"
#include "chakra_export/et/comm_groups.h"
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
    "and how far predictions may be off. Single flags replace its files. A comma list compares "
    "several.");
Flag<std::string> FLAGS_network("network", "",
                                "The network: AstraSim's YAML. A comma list compares several; each "
                                "of the other files is then one for all, or one for each.");
Flag<std::string> FLAGS_system(
    "system", "",
    "How collectives are carried out: AstraSim's system JSON. Default: what suits the network.");
Flag<std::string> FLAGS_comm_groups("comm_groups", "",
                                    "JSON file with the ranks of process groups, {\"1\": [0, 1], "
                                    "...}. Default: PREFIX.comm_groups.json, if there is one.");
Flag<std::string> FLAGS_engine("engine", "embedded", "embedded, or sidecar (the user's AstraSim).");
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
    "Corrections of a calibration: JSON. Applied to collectives and messages; what these wait for "
    "others lasts as much longer as the others do.");
Flag<bool> FLAGS_node_times("node_times", false, "Also give the issue and finish of every node.");
Flag<std::string> FLAGS_trace_json("trace_json", "",
                                   "Where a timeline of the run goes, for chrome://tracing or "
                                   "Perfetto; gzip when it ends in .gz.");

struct Inputs {
  std::string name;
  NetworkConfig network;
  SystemConfig system;
  // With --corrections.
  std::optional<Corrections> corrections;
  // Of a calibration; empty: not known.
  PredictionIntervals intervals;
  // On how the calibration is used; may be empty.
  std::string note;
};

absl::StatusOr<std::vector<CalibrationFiles>> NamedFiles() {
  return NamedCalibrations(
      FileSystem::Posix(), FLAGS_calibration.value(),
      {FLAGS_network.value(), FLAGS_system.value(), FLAGS_corrections.value(), ""});
}

absl::StatusOr<Inputs> ReadInputs(const CalibrationFiles& files) {
  if (files.network.empty()) {
    return InvalidArgument(
        "--network names no file; expected e.g. --network=network.yml, or --calibration=DIR as "
        "astra_calibrate writes it");
  }
  Inputs inputs;
  inputs.name = files.name;
  ASSIGN_OR_RETURN(const InputFile network,
                   InputFile::Open(FileSystem::Posix(), files.network, UserInputOptions()));
  ASSIGN_OR_RETURN(inputs.network, ParseNetworkConfig(network.bytes(), files.network));
  if (files.system.empty()) {
    inputs.system = DefaultSystemConfig(inputs.network);
  } else {
    ASSIGN_OR_RETURN(const InputFile system,
                     InputFile::Open(FileSystem::Posix(), files.system, UserInputOptions()));
    ASSIGN_OR_RETURN(inputs.system, ParseSystemConfig(system.bytes(), files.system));
  }
  if (!files.corrections.empty()) {
    ASSIGN_OR_RETURN(inputs.corrections, ReadCorrections(FileSystem::Posix(), files.corrections));
  }
  Corrections none;
  ASSIGN_OR_RETURN(inputs.note,
                   ApplyToLinks(FileSystem::Posix(), files, &inputs.network,
                                inputs.corrections.has_value() ? &*inputs.corrections : &none));
  ASSIGN_OR_RETURN(inputs.intervals, ReadIntervals(FileSystem::Posix(), files));
  return inputs;
}

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
                                      const Inputs& inputs) {
  EtWorkloadOptions options;
  options.input = UserInputOptions();
  options.names = !FLAGS_trace_json.value().empty();
  ASSIGN_OR_RETURN(Workload workload,
                   ReadEtWorkload(FileSystem::Posix(), prefix, inputs.network, inputs.system,
                                  WithProgress(options, "reading ranks", inputs.network.npus())));
  if (!groups.empty()) RETURN_IF_ERROR(ReadWorkloadGroups(FileSystem::Posix(), groups, &workload));
  return workload;
}

struct Outcome {
  SimulationResult result;
  // With --corrections.
  std::optional<CorrectionReport> corrections;
  // A hash of the program that the sidecar ran.
  std::string astra_version;
  // All but what is simulated.
  SimulatedTimes times;
};

// Returns how long the workload takes with communication as long as it was measured from the last
// member's start on.
absl::StatusOr<SimulationResult> ReplayMeasured(const Inputs& inputs, const Workload& workload,
                                                SimulationOptions options) {
  FixedDurations measured(workload);
  for (size_t rank = 0; rank < workload.ranks.size(); ++rank) {
    const absl::Span<const WorkloadNode> nodes = workload.ranks[rank].nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool is_transfer = nodes[i].type == WorkloadNodeType::kSend ||
                               (nodes[i].type == WorkloadNodeType::kCollective &&
                                nodes[i].op != CollectiveKind::kCollectiveBroadcast);
      if (!is_transfer) continue;
      measured.Set(static_cast<int32_t>(rank), static_cast<uint32_t>(i), nodes[i].duration_ns);
    }
  }
  options.fixed_durations = &measured;
  options.node_times = false;
  return Simulate(workload, inputs.network, inputs.system, options);
}

absl::Status SimulateCorrected(const Inputs& inputs, const Workload& workload,
                               const SimulationOptions& options, Outcome* outcome) {
  ASSIGN_OR_RETURN(CorrectedSimulator simulator,
                   CorrectedSimulator::Create(workload, inputs.network, inputs.system, options));
  Corrections corrections = *inputs.corrections;
  ASSIGN_OR_RETURN(CorrectedSimulation corrected, simulator.Run(corrections));
  outcome->result = std::move(corrected.result);
  outcome->corrections.emplace();
  outcome->corrections->set_corrected(corrected.corrected);
  outcome->corrections->set_uncorrected(corrected.uncorrected);
  if (inputs.intervals.empty()) return absl::OkStatus();
  const auto makespan_ns = [&](double intervals) -> absl::StatusOr<int64_t> {
    corrections.factor = [&inputs, intervals](const TransferTraits& transfer) {
      return std::exp(intervals * inputs.intervals.LogFactor(transfer));
    };
    ASSIGN_OR_RETURN(const CorrectedSimulation bound, simulator.Run(corrections));
    return bound.result.makespan_ns();
  };
  ASSIGN_OR_RETURN(const int64_t low_ns, makespan_ns(-1));
  ASSIGN_OR_RETURN(const int64_t high_ns, makespan_ns(1));
  outcome->times.set_low_ns(low_ns);
  outcome->times.set_high_ns(high_ns);
  return absl::OkStatus();
}

absl::StatusOr<Outcome> SimulateEmbedded(const Inputs& inputs, const Workload& workload,
                                         SimulationOptions options) {
  uint64_t nodes = 0;
  for (const RankWorkload& rank : workload.ranks) nodes += rank.nodes().size();
  options.progress = ShowProgress("simulating nodes", nodes);
  Outcome outcome;
  if (inputs.corrections.has_value()) {
    RETURN_IF_ERROR(SimulateCorrected(inputs, workload, options, &outcome));
  } else {
    ASSIGN_OR_RETURN(outcome.result, Simulate(workload, inputs.network, inputs.system, options));
  }
  const std::optional<int64_t> measured_ns = MeasuredSpanNs(workload);
  if (!measured_ns.has_value() || inputs.system.replay_only) return outcome;
  outcome.times.set_measured_ns(*measured_ns);
  ASSIGN_OR_RETURN(const SimulationResult replayed, ReplayMeasured(inputs, workload, options));
  *outcome.times.mutable_replayed() = ReportActivity(replayed.activity);
  return outcome;
}

// What only the embedded engine can do.
absl::Status RefuseWithSidecar(const SimulationOptions& options, size_t networks) {
  absl::string_view flag;
  if (networks > 1) flag = "network with several networks";
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

absl::StatusOr<Outcome> SimulateWithSidecar(const Inputs& inputs, const Workload& workload,
                                            const SimulationOptions& options) {
  const double timeout_s = FLAGS_astra_timeout_s.value();
  if (!(timeout_s > 0)) {
    return InvalidArgument("--astra_timeout_s=", timeout_s, " is no time above 0");
  }
  AstraSimulatorOptions simulator;
  ASSIGN_OR_RETURN(simulator.binary,
                   FindAstraBinary(FileSystem::Posix(), UserPath(FLAGS_astra_binary),
                                   EnvironmentVariable("PATH"), options.congestion));
  simulator.work_folder = UserInputOptions().temporary_directory;
  simulator.timeout = absl::Seconds(timeout_s);
  Outcome outcome;
  ASSIGN_OR_RETURN(const AstraBinary binary,
                   ProbeAstraBinary(FileSystem::Posix(), simulator, options.congestion));
  outcome.astra_version = binary.version;
  simulator.node_times = options.node_times;
  ASSIGN_OR_RETURN(outcome.result, SimulateWithAstraSim(FileSystem::Posix(), workload,
                                                        inputs.network, inputs.system, simulator));
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

SimulationReport MakeReport(const Inputs& inputs, const Outcome& outcome) {
  SimulationReport report = MakeSimulationReport(outcome.result);
  report.set_network(inputs.name);
  if (report.has_times()) report.mutable_times()->MergeFrom(outcome.times);
  report.set_engine(FLAGS_engine.value());
  report.set_congestion(FLAGS_congestion.value());
  report.set_astra_version(outcome.astra_version);
  const std::string ways =
      inputs.network.has_links() ? LinkPaths(inputs.network).DescribeChoice() : "";
  for (const std::string& note : {UnknownKeysWarning(inputs.network), inputs.note, ways}) {
    if (!note.empty()) report.add_notes(note);
  }
  if (outcome.corrections.has_value()) *report.mutable_corrections() = *outcome.corrections;
  if (!FLAGS_node_times.value()) report.clear_nodes();
  return report;
}

// Outputs must not take the place of what is simulated.
absl::Status CheckOutputs(const std::string& prefix, const std::string& groups,
                          const std::vector<CalibrationFiles>& networks) {
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   SimulationInputs(FileSystem::Posix(), prefix, networks));
  inputs.push_back(groups);
  return CheckOutputPaths(inputs, {UserPath(FLAGS_trace_json)});
}

absl::StatusOr<int> SimulateWorkload() {
  ASSIGN_OR_RETURN(const bool is_embedded,
                   NamedValue<bool>(FLAGS_engine, {{"embedded", true}, {"sidecar", false}}));
  ASSIGN_OR_RETURN(const SimulationOptions options, ReadOptions());
  ASSIGN_OR_RETURN(const std::string prefix,
                   RequiredPath(FLAGS_workload, "traces", "run/llama for run/llama.0.et, ..."));
  ASSIGN_OR_RETURN(const std::vector<CalibrationFiles> networks, NamedFiles());
  if (!is_embedded) RETURN_IF_ERROR(RefuseWithSidecar(options, networks.size()));
  const std::string timeline = UserPath(FLAGS_trace_json);
  if (networks.size() > 1 && options.node_times) {
    return InvalidArgument("--trace_json and --node_times show one run; name one network");
  }
  // Before the traces, which may take minutes.
  std::vector<Inputs> all;
  for (const CalibrationFiles& files : networks) {
    ASSIGN_OR_RETURN(all.emplace_back(), ReadInputs(files));
  }
  const std::string groups = FindGroups(prefix);
  RETURN_IF_ERROR(CheckOutputs(prefix, groups, networks));
  OutputFiles outputs(FileSystem::Posix());
  SimulationComparison comparison;
  for (const Inputs& inputs : all) {
    ASSIGN_OR_RETURN(const Workload workload, ReadWorkload(prefix, groups, inputs));
    ASSIGN_OR_RETURN(const Outcome outcome, is_embedded
                                                ? SimulateEmbedded(inputs, workload, options)
                                                : SimulateWithSidecar(inputs, workload, options));
    if (!timeline.empty()) {
      RETURN_IF_ERROR(outputs.Write("timeline", timeline, [&](ByteSink& sink) {
        return WriteTimeline(workload, outcome.result, &sink);
      }));
    }
    *comparison.add_networks() = MakeReport(inputs, outcome);
  }
  RETURN_IF_ERROR(outputs.Commit());
  if (networks.size() > 1) return PrintReport(comparison, FormatSimulationComparison);
  return PrintReport(comparison.networks(0), FormatSimulationReport);
}

}  // namespace

Command AstraSimulateCommand() {
  return {"astra_simulate",
          "Simulates a workload (Chakra execution traces) on a network and prints when each rank "
          "is done, with AstraSim's inputs and, to the nanosecond, its times.",
          {"astra_simulate --workload=run/llama --calibration=machine/",
           "astra_simulate --workload=run/llama --network=network.yml --system=system.json",
           "astra_simulate --workload=run/llama --network=ring.yml,switch.yml",
           "astra_simulate --workload=run/llama --network=network.yml --system=system.json "
           "--comm_groups=run/llama.comm_groups.json --congestion=unaware --node_times --json"},
          {&FLAGS_workload, &FLAGS_calibration, &FLAGS_network, &FLAGS_system, &FLAGS_comm_groups,
           &FLAGS_engine, &FLAGS_astra_binary, &FLAGS_astra_timeout_s, &FLAGS_congestion,
           &FLAGS_comm_streams, &FLAGS_corrections, &FLAGS_node_times, &FLAGS_trace_json},
          SimulateWorkload};
}

}  // namespace meridian
