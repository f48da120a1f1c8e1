// What it costs to predict an iteration of a large model: a transformer step of 96 layers and 64
// microbatches on 8 x 2 x 4 ranks, with all communication together on the network.
//
//   ./bazelw run //benchmarks:predict_benchmark -- [--layers=96] [--microbatches=64]
//
// Exits with 1 when a second run with the same cache is not nearly all hits.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

Flag<int64_t> FLAGS_layers("layers", 96, "Layers of the model.");
Flag<int64_t> FLAGS_microbatches("microbatches", 64, "Microbatches of a step.");

constexpr double kLeastHitRatio = 0.99;

struct Case {
  std::string name;
  std::vector<NetworkDimension> dimensions;
};

std::vector<Case> Cases() {
  const std::vector<NetworkDimension> ring = {Dimension(BlockShape::kRing, 64, 400)};
  const std::vector<NetworkDimension> full = {Dimension(BlockShape::kFullyConnected, 64, 400)};
  const std::vector<NetworkDimension> pod = {Dimension(BlockShape::kRing, 8, 400),
                                             Dimension(BlockShape::kSwitch, 8, 50, 2000)};
  return {{"ring of 64", ring}, {"fully connected 64", full}, {"rings of 8, switched", pod}};
}

struct Measured {
  IterationPrediction prediction;
  int64_t cache_hits = 0;
  absl::Duration time;
};

absl::StatusOr<Measured> PredictOnce(const Case& measured_case, const ExecutionGraph& graph,
                                     const CommunicationMatch& match,
                                     const std::string& cache_folder) {
  TimingSetup setup;
  setup.cache = std::make_shared<TimingCache>(FileSystem::Posix(), cache_folder, "benchmark");
  setup.fabrics = OneFabric(FabricOf(measured_case.dimensions));
  setup.timing = EmbeddedTiming(setup.fabrics, Congestion::kAware, setup.cache);
  IterationOptions options;
  options.mode = TimingMode::kSnapshot;
  Measured measured;
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(measured.prediction, PredictIteration(setup, graph, match, options));
  measured.time = absl::Now() - begin;
  measured.cache_hits = setup.cache->hits();
  return measured;
}

absl::StatusOr<ExecutionGraph> MakeGraph() {
  TransformerOptions options;
  options.tensor_parallel = 8;
  options.data_parallel = 2;
  options.pipeline_parallel = 4;
  options.layers = FLAGS_layers.value();
  options.microbatches = FLAGS_microbatches.value();
  options.batch = 2 * options.microbatches;
  options.hidden = 12288;
  ASSIGN_OR_RETURN(const std::unique_ptr<GeneratedWorkload> workload, MakeTransformerStep(options));
  return BuildWorkloadGraph(*workload);
}

std::string Count(size_t count) { return WithThousands(static_cast<int64_t>(count)); }
std::string Seconds(int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e9); }
std::string Millis(absl::Duration time) {
  return absl::StrFormat("%.1f", absl::ToDoubleMilliseconds(time));
}

// Adds the case's row. Returns whether it reaches what it is to.
absl::StatusOr<bool> MeasureCase(const Case& measured_case, const ExecutionGraph& graph,
                                 const CommunicationMatch& match, TextTable* table) {
  const TemporaryDirectory folder;
  ASSIGN_OR_RETURN(const Measured first, PredictOnce(measured_case, graph, match, folder.path()));
  ASSIGN_OR_RETURN(const Measured second, PredictOnce(measured_case, graph, match, folder.path()));
  const double hits =
      static_cast<double>(second.cache_hits) / static_cast<double>(folder.List().size());
  const bool reached = hits >= kLeastHitRatio;
  table->AddRow({measured_case.name, Seconds(first.prediction.isolated_makespan_ns),
                 Seconds(first.prediction.times.replay.makespan_ns), Millis(first.time),
                 Millis(second.time), absl::StrFormat("%.2f %%", 100 * hits),
                 reached ? "" : "MISSED"});
  return reached;
}

absl::StatusOr<int> Measure() {
  ASSIGN_OR_RETURN(const ExecutionGraph graph, MakeGraph());
  const CommunicationMatch match(graph);
  std::printf("%s nodes on %s ranks, %s communications\n\n", Count(graph.node_count()).c_str(),
              Count(graph.Ranks().size()).c_str(), Count(match.instance_count()).c_str());
  TextTable table({"network", ">isolated s", ">snapshot s", ">ms", ">second run ms", ">hits", ""});
  bool reached = true;
  for (const Case& measured_case : Cases()) {
    ASSIGN_OR_RETURN(const bool case_reached, MeasureCase(measured_case, graph, match, &table));
    reached = reached && case_reached;
  }
  RETURN_IF_ERROR(Print(table.ToString()));
  return reached ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"predict_benchmark",
                               "Predicts a step of a large model and prints what that costs.",
                               {"predict_benchmark"},
                               {&meridian::FLAGS_layers, &meridian::FLAGS_microbatches},
                               meridian::Measure},
                              argc, argv);
}
