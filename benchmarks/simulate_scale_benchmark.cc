// What astra_simulate costs on made-up workloads as ranks grow, whole process: CPU seconds and the
// most memory, a step of a transformer in three dimensions and all-reduces of all ranks.
//
//   ./bazelw run //benchmarks:simulate_scale_benchmark --
//       [--max_ranks=16384] [--astra_folder=/path/to/astra-sim/bin]
//
// With AstraSim's programs at hand the smallest number of ranks runs there, too, in turns, and must
// end at the same time; that takes ten minutes. The traces, up to 1.3 GB, are in the folder for temporary
// files.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/engine/et_workload.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "benchmarks/ratio_benchmark.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/micro_benchmark.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/run/workload_report.pb.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_astra_folder("astra_folder", "",
                                     "Folder of AstraSim's programs. Default: not measured.");
Flag<int64_t> FLAGS_max_ranks("max_ranks", 16384, "Ranks of the largest run.");

constexpr int64_t kLeastRanks = 1024;
// Everybody sends to everybody: messages grow as the square of the ranks, and where many meet within a
// nanosecond each is simulated.
constexpr int64_t kMostDirectRanks = 4096;
// Runs of both programs in turns; the least of each counts, since noise only adds. Of runs that take
// so long, noise adds little: one is enough.
constexpr int kTurns = 3;
constexpr double kLongSeconds = 30;

// A workload, and the network and system that it runs on.
struct Case {
  std::string name;
  std::unique_ptr<GeneratedWorkload> workload;
  std::string network;
  std::string system;
  Congestion congestion = Congestion::kUnaware;
};

std::string SystemText(int splits, const std::vector<std::string>& algorithms) {
  std::vector<std::string> keys;
  for (const char* op : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"}) {
    keys.push_back(absl::StrCat("\"", op, "-implementation\": [\"",
                                absl::StrJoin(algorithms, "\", \""), "\"]"));
  }
  return absl::StrCat(
      "{\"preferred-dataset-splits\": ", splits, ", \"active-chunks-per-dimension\": 1, ",
      "\"endpoint-delay\": 10, \"local-mem-bw\": 50, \"boost-mode\": 0, ",
      "\"scheduling-policy\": \"LIFO\", ", "\"collective-optimization\": \"localBWAware\", ",
      absl::StrJoin(keys, ", "), "}\n");
}

// Two stages; ranks of four times as many have twice the tensor and twice the data parallel ones.
absl::StatusOr<Case> Transformer(int64_t ranks, Congestion congestion) {
  TransformerOptions options;
  options.pipeline_parallel = 2;
  options.tensor_parallel = 16;
  while (options.tensor_parallel * options.tensor_parallel * 4 < ranks) {
    options.tensor_parallel *= 2;
  }
  options.data_parallel = ranks / 2 / options.tensor_parallel;
  options.layers = 32;
  options.hidden = 8192;
  options.microbatches = 4;
  options.batch = 4 * options.data_parallel;
  Case result;
  result.name = congestion == Congestion::kAware  ? "transformer, congestion"
                : congestion == Congestion::kFair ? "transformer, links"
                                                  : "transformer";
  ASSIGN_OR_RETURN(result.workload, MakeTransformerStep(options));
  result.network = absl::StrCat("topology: [FullyConnected, Ring, Switch]\nnpus_count: [",
                                options.tensor_parallel, ", ", options.data_parallel,
                                ", 2]\nbandwidth: [300, 100, 50]\nlatency: [50, 500, 1000]\n");
  result.system = SystemText(/*splits=*/4, {"direct", "ring", "halvingDoubling"});
  result.congestion = congestion;
  return result;
}

absl::StatusOr<Case> AllReduce(int64_t ranks, const std::string& algorithm) {
  MicroBenchmarkOptions options;
  options.pattern = "all-reduce";
  options.ranks = ranks;
  options.bytes = {int64_t{1} << 20};
  Case result;
  result.name = absl::StrCat(algorithm, " all-reduce on a switch");
  ASSIGN_OR_RETURN(result.workload, MakeMicroBenchmark(options));
  result.network = absl::StrCat("topology: [Switch]\nnpus_count: [", ranks,
                                "]\nbandwidth: [50]\nlatency: [500]\n");
  result.system = SystemText(/*splits=*/1, {algorithm});
  result.congestion = Congestion::kAware;
  return result;
}

rusage ChildUsage() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage;
}

// Returns the CPU seconds that AstraSim takes.
absl::StatusOr<double> TimeAstraSim(const Case& measured, const std::string& prefix,
                                    const std::string& work_folder) {
  ASSIGN_OR_RETURN(const NetworkConfig network, ParseNetworkConfig(measured.network, "network"));
  ASSIGN_OR_RETURN(const SystemConfig system, ParseSystemConfig(measured.system, "system"));
  ASSIGN_OR_RETURN(Workload workload,
                   ReadEtWorkload(FileSystem::Posix(), prefix, network, system, {}));
  const std::string groups = CommGroupsPath(prefix);
  if (FileSystem::Posix().Kind(groups).ok()) {
    RETURN_IF_ERROR(ReadWorkloadGroups(FileSystem::Posix(), groups, &workload));
  }
  AstraSimulatorOptions options;
  ASSIGN_OR_RETURN(options.binary,
                   FindAstraBinary(FileSystem::Posix(), "", UserPath(FLAGS_astra_folder.value()),
                                   measured.congestion));
  options.work_folder = work_folder;
  const double before = CpuSeconds(ChildUsage());
  ASSIGN_OR_RETURN(const SimulationResult astra,
                   SimulateWithAstraSim(FileSystem::Posix(), workload, network, system, options));
  const double seconds = CpuSeconds(ChildUsage()) - before;
  SimulationOptions simulation;
  simulation.congestion = measured.congestion;
  ASSIGN_OR_RETURN(const SimulationResult result, Simulate(workload, network, system, simulation));
  if (result.makespan_ns() == astra.makespan_ns()) return seconds;
  return absl::InternalError(absl::StrCat(measured.name, ": ends at ", result.makespan_ns(),
                                          " ns, but AstraSim's at ", astra.makespan_ns()));
}

struct CommandCost {
  double cpu_seconds = 0;
  int64_t peak_bytes = 0;
};

absl::StatusOr<CommandCost> TimeCommand(const Case& measured, const std::string& prefix,
                                        const TemporaryDirectory& folder) {
  const double before = CpuSeconds(ChildUsage());
  const CommandResult result = RunCommandLine(
      "tools/astra_simulate",
      {"--workload=" + prefix, "--network=" + folder.Write("network.yml", measured.network),
       "--system=" + folder.Write("system.json", measured.system),
       absl::StrCat("--congestion=", measured.congestion == Congestion::kAware  ? "aware"
                                     : measured.congestion == Congestion::kFair ? "fair"
                                                                                : "unaware")});
  if (result.exit_code != 0) return absl::InternalError(result.standard_error);
  return CommandCost{CpuSeconds(ChildUsage()) - before, result.peak_bytes};
}

absl::Status Measure(const Case& measured, double* seconds_at_least, TextTable* table) {
  const int64_t ranks = measured.workload->rank_count();
  const TemporaryDirectory folder;
  const std::string prefix = folder.PathOf("w");
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   WriteGeneratedWorkload(FileSystem::Posix(), *measured.workload, prefix));
  ASSIGN_OR_RETURN(const CommandCost first, TimeCommand(measured, prefix, folder));
  double seconds = first.cpu_seconds;
  std::string astra, ratio;
  // AstraSim's congestion-aware program knows one dimension only.
  if (ranks == kLeastRanks && !FLAGS_astra_folder.value().empty() &&
      (measured.congestion == Congestion::kUnaware || report.comm_groups().empty())) {
    double astra_seconds = std::numeric_limits<double>::infinity();
    // As many runs of each.
    seconds = astra_seconds;
    for (int turn = 0; turn < kTurns; ++turn) {
      ASSIGN_OR_RETURN(const double theirs, TimeAstraSim(measured, prefix, folder.path()));
      ASSIGN_OR_RETURN(const CommandCost ours, TimeCommand(measured, prefix, folder));
      astra_seconds = std::min(astra_seconds, theirs);
      seconds = std::min(seconds, ours.cpu_seconds);
      if (theirs > kLongSeconds) break;
    }
    astra = absl::StrFormat("%.2f", astra_seconds);
    ratio = absl::StrFormat("1/%.0f", astra_seconds / seconds);
  }
  if (ranks == kLeastRanks) *seconds_at_least = seconds;
  std::fprintf(stderr, "%s, %s ranks: %.3f CPU s %s\n", measured.name.c_str(),
               WithThousands(ranks).c_str(), seconds, ratio.c_str());
  table->AddRow({measured.name, WithThousands(ranks), WithThousands(report.nodes()),
                 absl::StrFormat("%.3f", seconds),
                 absl::StrFormat("%.1f", seconds / *seconds_at_least),
                 WithThousands(first.peak_bytes / 1'000'000), astra, ratio});
  return absl::OkStatus();
}

absl::StatusOr<int> MeasureAll() {
  TextTable table({"workload", ">ranks", ">nodes", ">CPU s", ">growth", ">MB at most",
                   ">AstraSim CPU s", ">ratio"});
  for (const std::string algorithm : {"doubleBinaryTree", "halvingDoubling", "direct"}) {
    double least = 0;
    for (int64_t ranks = kLeastRanks; ranks <= FLAGS_max_ranks.value(); ranks *= 4) {
      if (algorithm == "direct" && ranks > kMostDirectRanks) break;
      ASSIGN_OR_RETURN(const Case measured, AllReduce(ranks, algorithm));
      RETURN_IF_ERROR(Measure(measured, &least, &table));
    }
  }
  for (const Congestion congestion :
       {Congestion::kUnaware, Congestion::kAware, Congestion::kFair}) {
    double least = 0;
    for (int64_t ranks = kLeastRanks; ranks <= FLAGS_max_ranks.value(); ranks *= 4) {
      ASSIGN_OR_RETURN(const Case measured, Transformer(ranks, congestion));
      RETURN_IF_ERROR(Measure(measured, &least, &table));
    }
  }
  RETURN_IF_ERROR(Print(table.ToString()));
  return kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"simulate_scale_benchmark",
                               "Measures astra_simulate on made-up workloads of 1,024, four and "
                               "sixteen times as many ranks.",
                               {"simulate_scale_benchmark",
                                "simulate_scale_benchmark --max_ranks=1024 "
                                "--astra_folder=/opt/astra-sim/bin"},
                               {&meridian::FLAGS_astra_folder, &meridian::FLAGS_max_ranks},
                               meridian::MeasureAll},
                              argc, argv);
}
