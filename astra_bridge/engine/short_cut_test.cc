// Short cuts give the same times as all events do, on random simulations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/random_workload.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

void CompareWithEvents(const RandomSimulation& simulation) {
  SimulationOptions run;
  run.congestion = simulation.congestion;
  run.node_times = true;
  ASSERT_OK_AND_ASSIGN(const SimulationResult result,
                       Simulate(simulation.workload, simulation.network, simulation.system, run));
  run.events_only = true;
  ASSERT_OK_AND_ASSIGN(const SimulationResult expected,
                       Simulate(simulation.workload, simulation.network, simulation.system, run));
  ASSERT_EQ(result.finish_ns, expected.finish_ns);
  for (size_t node = 0; node < expected.nodes.size(); ++node) {
    ASSERT_EQ(result.nodes[node].issue_ns, expected.nodes[node].issue_ns);
    ASSERT_EQ(result.nodes[node].finish_ns, expected.nodes[node].finish_ns);
  }
}

void CompareOnRandomSimulations(const RandomSimulationOptions& options, int64_t count) {
  std::mt19937_64 random(20240229);
  for (int64_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    CompareWithEvents(MakeRandomSimulation(options, random));
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Makes training steps of ranks in a grid: groups of rows and of columns work side by side, mostly
// in step, beside computation and messages to the next row. Times are small, so that events that
// have nothing to do with each other often come in the same instant.
class TrainingSteps {
 public:
  explicit TrainingSteps(std::mt19937_64& random) : random_(random) {}

  RandomSimulation Make() {
    columns_ = 1 << Below(4);
    rows_ = std::max(columns_ == 1 ? 2 : 1, 1 << Below(3));
    RandomSimulation result;
    result.congestion = Below(2) == 0 ? Congestion::kAware : Congestion::kUnaware;
    const bool two_dimensions = columns_ > 1 && rows_ > 1 && Below(2) == 0;
    for (const int32_t npus : two_dimensions ? std::vector<int32_t>{columns_, rows_}
                                             : std::vector<int32_t>{columns_ * rows_}) {
      result.network.dimensions.push_back(
          {static_cast<BlockShape>(Below(3)), npus, 1.0 + Below(4), 1.0 * Below(8)});
    }
    result.system.endpoint_delay_ns = Below(4);
    result.system.active_chunks_per_dimension = 1 + Below(4) / 3;
    result.system.preferred_dataset_splits = 1 + Below(3);
    result.system.local_memory_bandwidth = Below(2) * 8;
    for (std::vector<CollectiveAlgorithm>& algorithms : result.system.algorithms) {
      algorithms.assign(result.network.dimensions.size(), {Algorithm(), Below(3)});
    }
    result.workload.ranks.resize(columns_ * rows_);
    if (columns_ > 1) AddGroups(&result.workload.groups, 1, rows_, columns_, columns_, 1);
    if (rows_ > 1) AddGroups(&result.workload.groups, 1 + rows_, columns_, rows_, 1, columns_);
    for (int32_t layer = 0; layer < 6; ++layer) AddLayer(layer, &result.workload);
    return result;
  }

 private:
  int32_t Below(int32_t limit) { return static_cast<int32_t>(random_() % limit); }

  CollectiveAlgorithm::Kind Algorithm() { return static_cast<CollectiveAlgorithm::Kind>(Below(3)); }

  static void AddGroups(WorkloadGroups* groups, int32_t first_id, int32_t count, int32_t size,
                        int32_t step, int32_t stride) {
    for (int32_t g = 0; g < count; ++g) {
      for (int32_t i = 0; i < size; ++i) (*groups)[first_id + g].push_back(g * step + i * stride);
    }
  }

  // A computation, after it a collective, messages or both, and another that waits for less.
  void AddLayer(int32_t layer, Workload* workload) {
    const bool along_row = columns_ > 1 && (rows_ == 1 || Below(3) > 0);
    const int32_t duration_ns = 1 + Below(30), late_rank = Below(16);
    const bool has_messages = Below(3) == 0;
    WorkloadNode collective;
    collective.type = WorkloadNodeType::kCollective;
    // Halving-doubling cannot do an all-to-all.
    collective.op = static_cast<CollectiveKind>(Below(3));
    collective.bytes = 16 * (1 + Below(40));
    for (int32_t rank = 0; rank < columns_ * rows_; ++rank) {
      RankWorkload& nodes = workload->ranks[rank];
      const uint64_t first = static_cast<uint64_t>(layer) * 8 + 8;
      const uint64_t before = first - 8;
      const auto after = [&](uint64_t id) {
        return layer == 0 && id <= before + 7 ? std::vector<uint64_t>{} : std::vector<uint64_t>{id};
      };
      WorkloadNode compute;
      compute.id = first;
      compute.duration_ns = duration_ns + (rank == late_rank ? 1 : 0);
      nodes.Add(compute, after(before + 2));
      collective.id = first + 1;
      collective.group = along_row ? 1 + rank / columns_ : 1 + rows_ + rank % columns_;
      nodes.Add(collective, {first});
      compute.id = first + 2;
      compute.duration_ns = 1 + Below(2) * duration_ns;
      nodes.Add(compute, {first + 1});
      compute.id = first + 3;
      nodes.Add(compute, after(before + 3));
      if (!has_messages || rows_ == 1) continue;
      WorkloadNode message;
      message.bytes = collective.bytes;
      message.tag = layer;
      message.id = first + 4;
      message.type = WorkloadNodeType::kSend;
      message.peer = (rank + columns_) % (columns_ * rows_);
      nodes.Add(message, {first + Below(2)});
      message.id = first + 5;
      message.type = WorkloadNodeType::kReceive;
      message.peer = (rank + columns_ * (rows_ - 1)) % (columns_ * rows_);
      nodes.Add(message);
      compute.id = first + 6;
      nodes.Add(compute, {first + 5});
    }
  }

  std::mt19937_64& random_;
  int32_t columns_ = 0;
  int32_t rows_ = 0;
};

TEST(ShortCutTest, EqualsTheEventsOnRings) {
  RandomSimulationOptions options;
  options.rings_only = true;
  CompareOnRandomSimulations(options, 5000);
}

TEST(ShortCutTest, EqualsTheEventsAmongOtherAlgorithms) {
  CompareOnRandomSimulations(RandomSimulationOptions(), 5000);
}

TEST(ShortCutTest, EqualsTheEventsInSeveralDimensions) {
  RandomSimulationOptions options;
  options.max_dimensions = 3;
  options.max_npus = 24;
  CompareOnRandomSimulations(options, 2000);
}

// Distances 3 and 1: the partners of 1 are 4 and 0.
TEST(ShortCutTest, EqualsTheEventsOfHalvingDoublingAmongSixRanks) {
  RandomSimulation simulation;
  simulation.network.dimensions = {{BlockShape::kSwitch, 6, 4.0, 7.0}};
  for (std::vector<CollectiveAlgorithm>& algorithms : simulation.system.algorithms) {
    algorithms = {{CollectiveAlgorithm::Kind::kHalvingDoubling}};
  }
  WorkloadNode gather;
  gather.type = WorkloadNodeType::kCollective;
  gather.op = CollectiveKind::kAllGather;
  gather.bytes = 96;
  simulation.workload.ranks.resize(6);
  for (RankWorkload& rank : simulation.workload.ranks) rank.Add(gather);
  for (const Congestion congestion : {Congestion::kAware, Congestion::kUnaware}) {
    simulation.congestion = congestion;
    CompareWithEvents(simulation);
  }
}

TEST(ShortCutTest, EqualsTheEventsOfGroupsSideBySide) {
  std::mt19937_64 random(20261116);
  for (int64_t i = 0; i < 4000; ++i) {
    SCOPED_TRACE(i);
    CompareWithEvents(TrainingSteps(random).Make());
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace meridian
