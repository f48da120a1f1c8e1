// astra_simulate: how long a workload takes on a network, with AstraSim's inputs and times.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "astra_bridge/corrections/corrected_simulation.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/et_workload.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_report.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/timeline.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "chakra_export/et/comm_groups.h"
#include "tools/command.h"
#include "tools/pipeline/output_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/tables/text_table.h"

ABSL_FLAG(std::string, workload, "",
          "Prefix of the execution traces: PREFIX.<rank>.et, one per NPU of the network.");
ABSL_FLAG(std::string, network, "", "The network: AstraSim's YAML.");
ABSL_FLAG(std::string, system, "", "How collectives are carried out: AstraSim's system JSON.");
ABSL_FLAG(std::string, comm_groups, "",
          "JSON file with the ranks of process groups, {\"1\": [0, 1], ...}. Default: "
          "PREFIX.comm_groups.json, if there is one.");
ABSL_FLAG(std::string, engine, "embedded", "embedded, or sidecar (the user's AstraSim).");
ABSL_FLAG(std::string, astra_binary, "",
          "With --engine=sidecar: the AstraSim program. Default: found on PATH.");
ABSL_FLAG(double, astra_timeout_s, 600,
          "With --engine=sidecar: how long a run of it may take, in seconds.");
ABSL_FLAG(std::string, congestion, "aware",
          "aware: messages share links; unaware: they never slow each other down.");
ABSL_FLAG(int32_t, comm_streams, 1,
          "How many collectives and sends a rank may run at once. AstraSim: 1.");
ABSL_FLAG(
    std::string, corrections, "",
    "Corrections of a calibration: JSON. Applied to collectives and messages; what these wait "
    "for others lasts as much longer as the others do.");
ABSL_FLAG(bool, node_times, false, "Also give the issue and finish of every node.");
ABSL_FLAG(bool, link_use, false, "Also give what went over every link (--congestion=aware).");
ABSL_FLAG(std::string, trace_json, "",
          "Where a timeline of the run goes, for chrome://tracing or Perfetto; gzip when it ends "
          "in .gz.");

namespace meridian {
namespace {

struct Inputs {
  NetworkConfig network;
  SystemConfig system;
  // With --corrections.
  std::optional<Corrections> corrections;
  Workload workload;
};

absl::StatusOr<InputFile> OpenNamed(const absl::Flag<std::string>& flag,
                                    absl::string_view example) {
  ASSIGN_OR_RETURN(const std::string path, RequiredPath(flag, "file", example));
  return InputFile::Open(FileSystem::Posix(), path, UserInputOptions());
}

absl::StatusOr<Inputs> ReadInputs() {
  Inputs inputs;
  ASSIGN_OR_RETURN(const std::string prefix,
                   RequiredPath(FLAGS_workload, "traces", "run/llama for run/llama.0.et, ..."));
  ASSIGN_OR_RETURN(const InputFile network, OpenNamed(FLAGS_network, "network.yml"));
  ASSIGN_OR_RETURN(inputs.network,
                   ParseNetworkConfig(network.bytes(), absl::GetFlag(FLAGS_network)));
  ASSIGN_OR_RETURN(const InputFile system, OpenNamed(FLAGS_system, "system.json"));
  ASSIGN_OR_RETURN(inputs.system, ParseSystemConfig(system.bytes(), absl::GetFlag(FLAGS_system)));
  // Before the traces, which may take minutes.
  const std::string corrections = UserPath(FLAGS_corrections);
  if (!corrections.empty()) {
    ASSIGN_OR_RETURN(inputs.corrections, ReadCorrections(FileSystem::Posix(), corrections));
  }
  EtWorkloadOptions options;
  options.input = UserInputOptions();
  options.names = !absl::GetFlag(FLAGS_trace_json).empty();
  ASSIGN_OR_RETURN(inputs.workload,
                   ReadEtWorkload(FileSystem::Posix(), prefix, inputs.network, inputs.system,
                                  WithProgress(options, "reading ranks", inputs.network.npus())));
  std::string groups = UserPath(FLAGS_comm_groups);
  if (groups.empty()) {
    groups = CommGroupsBeside(FileSystem::Posix(), prefix);
    if (!groups.empty()) {
      std::fprintf(stderr, "astra_simulate: note: process groups are those of %s\n",
                   Printable(groups).c_str());
    }
  }
  if (!groups.empty()) {
    RETURN_IF_ERROR(ReadWorkloadGroups(FileSystem::Posix(), groups, &inputs.workload));
  }
  return inputs;
}

// What an engine found, and what else it has to say.
struct Outcome {
  SimulationResult result;
  // With --corrections.
  std::optional<CorrectionReport> corrections;
  std::string note;
  // A hash of the program that the sidecar ran.
  std::string astra_version;
};

absl::StatusOr<Outcome> SimulateEmbedded(const Inputs& inputs, SimulationOptions options) {
  int64_t nodes = 0;
  for (const RankWorkload& rank : inputs.workload.ranks) {
    nodes += static_cast<int64_t>(rank.nodes().size());
  }
  // Corrections take a second run.
  const int64_t runs = inputs.corrections.has_value() ? 2 : 1;
  options.progress = ShowProgress("simulating nodes", static_cast<uint64_t>(nodes * runs));
  Outcome outcome;
  if (!inputs.corrections.has_value()) {
    ASSIGN_OR_RETURN(outcome.result,
                     Simulate(inputs.workload, inputs.network, inputs.system, options));
    return outcome;
  }
  ASSIGN_OR_RETURN(CorrectedSimulation corrected,
                   SimulateCorrected(inputs.workload, inputs.network, inputs.system, options,
                                     *inputs.corrections));
  outcome.result = std::move(corrected.result);
  outcome.corrections.emplace();
  outcome.corrections->set_corrected(corrected.corrected);
  outcome.corrections->set_uncorrected(corrected.uncorrected);
  return outcome;
}

// What only the embedded engine can do.
absl::Status RefuseWithSidecar(const SimulationOptions& options) {
  absl::string_view flag;
  if (options.comm_streams != 1) flag = "comm_streams";
  if (options.link_use) flag = "link_use";
  if (!absl::GetFlag(FLAGS_corrections).empty()) flag = "corrections";
  if (flag.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": AstraSim has no such thing; use --engine=embedded"));
}

absl::StatusOr<Outcome> SimulateWithSidecar(const Inputs& inputs,
                                            const SimulationOptions& options) {
  const double timeout_s = absl::GetFlag(FLAGS_astra_timeout_s);
  if (!(timeout_s > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--astra_timeout_s=", timeout_s, " is no time above 0"));
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
  ASSIGN_OR_RETURN(AstraSimulation simulation,
                   SimulateWithAstraSim(FileSystem::Posix(), inputs.workload, inputs.network,
                                        inputs.system, simulator));
  outcome.result = std::move(simulation.result);
  outcome.note = std::move(simulation.note);
  return outcome;
}

absl::Status WriteTimelineFile(const Inputs& inputs, const SimulationResult& result,
                               const std::string& path) {
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.Write("timeline", path, [&](ByteSink& sink) {
    return WriteTimeline(inputs.workload, result, &sink);
  }));
  return outputs.Commit();
}

absl::StatusOr<SimulationOptions> ReadOptions() {
  SimulationOptions options;
  ASSIGN_OR_RETURN(options.congestion,
                   NamedValue<Congestion>(FLAGS_congestion, {{"aware", Congestion::kAware},
                                                             {"unaware", Congestion::kUnaware}}));
  options.comm_streams = absl::GetFlag(FLAGS_comm_streams);
  options.node_times = absl::GetFlag(FLAGS_node_times) || !absl::GetFlag(FLAGS_trace_json).empty();
  options.link_use = absl::GetFlag(FLAGS_link_use);
  if (options.link_use && options.congestion == Congestion::kUnaware) {
    return absl::InvalidArgumentError(
        "--link_use: without congestion there are no links; use --congestion=aware");
  }
  return options;
}

// Returns what to say about messages that nobody receives; empty when there are none.
std::string UnreceivedNote(const UnreceivedMessages& unreceived) {
  if (unreceived.count == 0) return "";
  const SendKey& example = unreceived.example;
  return absl::StrCat(WithThousands(unreceived.count),
                      " messages were sent that no node receives, the first from rank ",
                      example.source, " to rank ", example.destination, " with tag ", example.tag,
                      " and ", example.bytes, " bytes");
}

SimulationReport MakeReport(const Inputs& inputs, const Outcome& outcome) {
  SimulationReport report = MakeSimulationReport(outcome.result);
  report.set_engine(absl::GetFlag(FLAGS_engine));
  report.set_congestion(absl::GetFlag(FLAGS_congestion));
  report.set_astra_version(outcome.astra_version);
  for (const std::string& note : {outcome.note, UnknownKeysWarning(inputs.network),
                                  UnreceivedNote(outcome.result.unreceived_messages)}) {
    if (!note.empty()) report.add_notes(note);
  }
  if (outcome.corrections.has_value()) *report.mutable_corrections() = *outcome.corrections;
  if (!absl::GetFlag(FLAGS_node_times)) report.clear_nodes();
  return report;
}

// The timeline must not take the place of what is simulated.
absl::Status CheckTimelinePath() {
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   FileSystem::Posix().Glob(absl::StrCat(UserPath(FLAGS_workload), ".*")));
  inputs.insert(inputs.end(), {UserPath(FLAGS_network), UserPath(FLAGS_system),
                               UserPath(FLAGS_comm_groups), UserPath(FLAGS_corrections)});
  return CheckOutputPaths(inputs, {UserPath(FLAGS_trace_json)});
}

absl::StatusOr<int> SimulateWorkload() {
  ASSIGN_OR_RETURN(const bool is_embedded,
                   NamedValue<bool>(FLAGS_engine, {{"embedded", true}, {"sidecar", false}}));
  ASSIGN_OR_RETURN(const SimulationOptions options, ReadOptions());
  if (!is_embedded) RETURN_IF_ERROR(RefuseWithSidecar(options));
  RETURN_IF_ERROR(CheckTimelinePath());
  ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs());
  ASSIGN_OR_RETURN(const Outcome outcome, is_embedded ? SimulateEmbedded(inputs, options)
                                                      : SimulateWithSidecar(inputs, options));
  const std::string timeline = UserPath(FLAGS_trace_json);
  if (!timeline.empty()) RETURN_IF_ERROR(WriteTimelineFile(inputs, outcome.result, timeline));
  return PrintReport(MakeReport(inputs, outcome), FormatSimulationReport);
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"astra_simulate",
       "Simulates a workload (Chakra execution traces) on a network and prints when each rank is "
       "done, with AstraSim's inputs and, to the nanosecond, its times.",
       {"astra_simulate --workload=run/llama --network=network.yml --system=system.json",
        "astra_simulate --workload=run/llama --network=network.yml --system=system.json "
        "--comm_groups=run/llama.comm_groups.json --congestion=unaware --node_times --json"},
       {"workload", "network", "system", "comm_groups", "engine", "astra_binary", "astra_timeout_s",
        "congestion", "comm_streams", "corrections", "node_times", "link_use", "trace_json"}},
      argc, argv, meridian::SimulateWorkload);
}
