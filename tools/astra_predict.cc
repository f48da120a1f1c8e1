// astra_predict: how long communication takes, and workloads with it.
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/prediction_run.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/graph/graph_replay.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_et(
    "et", "", "The workload: the PREFIX of its execution traces, PREFIX.<rank>.et[.gz].");
Flag<std::string> FLAGS_comm_groups("comm_groups", "",
                                    "With --et: JSON file with the ranks of process groups. "
                                    "Default: PREFIX.comm_groups.json, if there is one.");
Flag<std::string> FLAGS_edges("edges", "", "Instead of a workload: a list of edges, JSONL.");
Flag<bool> FLAGS_serve(
    "serve", false,
    "Answers lists of edges on standard input, each ended by an empty line, with "
    "a line of JSON each, until the input ends.");
Flag<std::string> FLAGS_config(
    "config", "", "How to time it: YAML with networks and the like. The other flags override it.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The folder of a calibration (astra_calibrate --calibration): network, system, corrections, "
    "and how far predictions may be off. Single flags replace its files.");
Flag<std::string> FLAGS_network(
    "network", "",
    "The network of all edges: AstraSim's YAML. Instead of the configuration's topologies.");
Flag<std::string> FLAGS_system(
    "system", "",
    "How collectives are carried out: AstraSim's system JSON. Default: what suits the network.");
Flag<std::string> FLAGS_mode(
    "mode", "",
    "isolated: every edge alone; snapshot: all together on the network, each from when it begins "
    "(of a list, at once). Default: the configuration's, or isolated.");
Flag<std::string> FLAGS_resources(
    "resources", "streams",
    "With --et: streams: a stream or thread runs one node at a time; simulator: a rank runs one "
    "computation and one communication at a time, as in ASTRA-sim.");
Flag<std::string> FLAGS_manifest(
    "manifest", "",
    "With --et: where the report goes, with the devices of edges: JSON, gzip when it ends in .gz.");
Flag<std::string> FLAGS_congestion(
    "congestion", "",
    "aware: messages take turns on links; unaware: they never slow each other down; fair: they "
    "share links, all at once. Default: the configuration's, or aware.");
Flag<std::string> FLAGS_corrections("corrections", "", "Corrections of a calibration: JSON.");
Flag<std::string> FLAGS_cache("cache", "",
                              "Folder in which simulated times are kept for the next run. Default: "
                              "the configuration's, or none.");

absl::StatusOr<PredictionNetwork> FlaggedNetwork() {
  NetworkFlags flags;
  flags.config = UserPath(FLAGS_config);
  flags.calibration = UserPath(FLAGS_calibration);
  flags.files = {UserPath(FLAGS_network), UserPath(FLAGS_system), UserPath(FLAGS_corrections), ""};
  if (FLAGS_mode.given()) {
    ASSIGN_OR_RETURN(flags.mode,
                     NamedValue<TimingMode>(FLAGS_mode, {{"isolated", TimingMode::kIsolated},
                                                         {"snapshot", TimingMode::kSnapshot}}));
  }
  if (FLAGS_congestion.given()) {
    ASSIGN_OR_RETURN(flags.congestion,
                     NamedValue<Congestion>(FLAGS_congestion, {{"aware", Congestion::kAware},
                                                               {"unaware", Congestion::kUnaware},
                                                               {"fair", Congestion::kFair}}));
  }
  flags.cache_folder = UserPath(FLAGS_cache);
  return ReadPredictionNetwork(FileSystem::Posix(), flags);
}

absl::StatusOr<IterationOptions> ReadIterationOptions(TimingMode mode) {
  IterationOptions options;
  options.mode = mode;
  ASSIGN_OR_RETURN(
      options.resources,
      NamedValue<ReplayResources>(FLAGS_resources, {{"streams", ReplayResources::kPerResource},
                                                    {"simulator", ReplayResources::kSimulator}}));
  options.progress = ShowProgress("timing edges", 0);
  return options;
}

void Warn(const PredictionReport& report) {
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "astra_predict: warning: %s\n", Printable(warning).c_str());
  }
}

// Flags that mean something for a workload only.
absl::Status CheckListFlags() {
  return RefuseFlags({&FLAGS_comm_groups, &FLAGS_resources, &FLAGS_manifest},
                     "is for workloads, --et; all edges of a list start at once");
}

absl::StatusOr<int> PredictList(const PredictionNetwork& network) {
  RETURN_IF_ERROR(CheckListFlags());
  ASSIGN_OR_RETURN(const PredictionReport report,
                   PredictEdgeList(FileSystem::Posix(), UserPath(FLAGS_edges), UserInputOptions(),
                                   network, ShowProgress("timing edges", 0)));
  Warn(report);
  return PrintReport(report, FormatPrediction);
}

absl::StatusOr<int> PredictTraces(const PredictionNetwork& network) {
  WorkloadOptions options;
  options.prefix = UserPath(FLAGS_et);
  options.input = UserInputOptions();
  options.bytes_read = ShowBytesRead();
  options.manifest = UserPath(FLAGS_manifest);
  ASSIGN_OR_RETURN(options.iteration, ReadIterationOptions(network.config.mode));
  options.comm_groups = UserPath(FLAGS_comm_groups);
  if (options.comm_groups.empty()) {
    options.comm_groups = CommGroupsBeside(FileSystem::Posix(), options.prefix);
    if (!options.comm_groups.empty()) {
      std::fprintf(stderr, "astra_predict: note: process groups are those of %s\n",
                   Printable(options.comm_groups).c_str());
    }
  }
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   SimulationInputs(FileSystem::Posix(), options.prefix, network.files));
  inputs.push_back(options.comm_groups);
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {options.manifest}));
  OutputFiles outputs(FileSystem::Posix());
  ASSIGN_OR_RETURN(const PredictionReport report,
                   PredictWorkload(FileSystem::Posix(), std::move(options), network, &outputs));
  Warn(report);
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(report, FormatPrediction);
}

absl::StatusOr<int> Serve(const PredictionNetwork& network) {
  RETURN_IF_ERROR(CheckListFlags());
  if (FLAGS_mode.given()) {
    return InvalidArgument(
        "--serve times a single edge alone and several together; leave out --mode");
  }
  std::ios::sync_with_stdio(false);
  RETURN_IF_ERROR(ServeEdges(FileSystem::Posix(), network, std::cin, Print));
  return kExitDone;
}

absl::StatusOr<int> Predict() {
  const bool has_edges = !FLAGS_edges.value().empty();
  if (has_edges + !FLAGS_et.value().empty() + FLAGS_serve.value() != 1) {
    return InvalidArgument(
        "give either a workload or a list of edges, e.g. --et=run/llama --network=network.yml or "
        "--edges=edges.jsonl --network=network.yml; or --serve");
  }
  ASSIGN_OR_RETURN(const PredictionNetwork network, FlaggedNetwork());
  if (FLAGS_serve.value()) return Serve(network);
  return has_edges ? PredictList(network) : PredictTraces(network);
}

}  // namespace

Command AstraPredictCommand() {
  return {"astra_predict",
          "Predicts how long a workload takes on a network, with every communication alone or all "
          "together; or how long the edges of a list take.",
          {"astra_predict --et=run/llama --calibration=machine/",
           "astra_predict --et=run/llama --network=network.yml --system=system.json "
           "--mode=snapshot --manifest=report.json",
           "astra_predict --edges=edges.jsonl --network=network.yml",
           "astra_predict --edges=edges.jsonl --network=network.yml --system=system.json "
           "--mode=snapshot --cache=times/ --json",
           "astra_predict --edges=edges.jsonl --config=timing.yml",
           "astra_predict --serve --network=network.yml"},
          {&FLAGS_et, &FLAGS_comm_groups, &FLAGS_edges, &FLAGS_serve, &FLAGS_config,
           &FLAGS_calibration, &FLAGS_network, &FLAGS_system, &FLAGS_mode, &FLAGS_resources,
           &FLAGS_manifest, &FLAGS_congestion, &FLAGS_corrections, &FLAGS_cache},
          Predict};
}

}  // namespace meridian
