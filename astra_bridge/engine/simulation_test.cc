#include "astra_bridge/engine/simulation.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kMiB = 1 << 20;
// What 1 MiB takes on a link of 50 GiB/s and 500 ns: 19531.25 ns and 20031.25 ns, cut off.
constexpr int64_t kSendingNs = 19531;
constexpr int64_t kCrossingNs = 20031;

SimulationOptions WithNodeTimes(Congestion congestion = Congestion::kAware) {
  SimulationOptions options;
  options.congestion = congestion;
  options.node_times = true;
  return options;
}

SimulationOptions Unaware() {
  SimulationOptions options;
  options.congestion = Congestion::kUnaware;
  return options;
}

SimulationResult RunSimulation(const Workload& workload, const NetworkConfig& network,
                               const SystemConfig& system, const SimulationOptions& options = {}) {
  const absl::StatusOr<SimulationResult> result = Simulate(workload, network, system, options);
  EXPECT_OK(result.status());
  return result.ok() ? *result : SimulationResult();
}

NetworkConfig Ring(int32_t npus) { return Network({Dimension(BlockShape::kRing, npus)}); }

// What AstraSim prints for an all-reduce of 1 MiB on growing rings.
TEST(SimulationTest, AllReduceGrowsWithTheRing) {
  SystemConfig system = SystemWith({"ring"});
  system.local_memory_bandwidth = 1600;
  const std::vector<std::pair<int32_t, int64_t>> expected = {
      {8, 43025}, {64, 104590}, {256, 300400}, {1024, 1082344}};
  for (const auto& [npus, finish_ns] : expected) {
    const Workload workload = EveryRank(npus, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
    EXPECT_THAT(RunSimulation(workload, Ring(npus), system).finish_ns, Each(finish_ns));
    EXPECT_THAT(RunSimulation(workload, Ring(npus), system, Unaware()).finish_ns, Each(finish_ns));
  }
}

TEST(SimulationTest, BytesOverBandwidthAreSeconds) {
  Workload workload;
  workload.ranks.resize(2);
  workload.ranks[0].Add(SendNode(1, 1, 50 * (int64_t{1} << 30)));
  workload.ranks[1].Add(ReceiveNode(1, 0, 50 * (int64_t{1} << 30)));
  const NetworkConfig network = Network({Dimension(BlockShape::kFullyConnected, 2, 50, 0)});
  EXPECT_THAT(RunSimulation(workload, network, SystemConfig()).finish_ns,
              ElementsAre(1'000'000'000, 1'000'000'000));
}

TEST(SimulationTest, SendsThatShareALinkTakeLongerOnlyWithCongestion) {
  const auto finish = [](bool with_other, const SimulationOptions& options) {
    Workload workload = EveryRank(4, ComputeNode(1, 0));
    workload.ranks[0].Add(SendNode(2, 2, 1024));
    workload.ranks[2].Add(ReceiveNode(2, 0, 1024));
    if (with_other) {
      // Also goes over the link from 1 to 2.
      workload.ranks[1].Add(SendNode(2, 3, kMiB));
      workload.ranks[3].Add(ReceiveNode(2, 1, kMiB));
    }
    return RunSimulation(workload, Ring(4), SystemConfig(), options).finish_ns[2];
  };
  // 1024 bytes cross a link in 519 ns.
  EXPECT_EQ(finish(false, {}), 2 * 519);
  EXPECT_EQ(finish(true, {}), kSendingNs + 519);
  EXPECT_EQ(finish(false, Unaware()), 1019);
  EXPECT_EQ(finish(true, Unaware()), 1019);

  // Two at once over one link.
  Workload workload;
  workload.ranks.resize(2);
  for (uint64_t id : {1, 2}) {
    workload.ranks[0].Add(SendNode(id, 1, kMiB, static_cast<int32_t>(id)));
    workload.ranks[1].Add(ReceiveNode(id, 0, kMiB, static_cast<int32_t>(id)));
  }
  SimulationOptions two_streams;
  two_streams.comm_streams = 2;
  EXPECT_EQ(RunSimulation(workload, Ring(2), SystemConfig(), two_streams).makespan_ns(),
            kSendingNs + kCrossingNs);
  two_streams.congestion = Congestion::kUnaware;
  EXPECT_EQ(RunSimulation(workload, Ring(2), SystemConfig(), two_streams).makespan_ns(),
            kCrossingNs);
  // One after another with one stream: a send occupies it until the message is there.
  EXPECT_EQ(RunSimulation(workload, Ring(2), SystemConfig()).makespan_ns(), 2 * kCrossingNs);
}

TEST(SimulationTest, DisjointGroupsDoNotInteract) {
  Workload workload;
  workload.ranks.resize(8);
  workload.groups = {{1, {0, 1, 2, 3}}, {2, {4, 5, 6, 7}}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(1, CollectiveKind::kAllReduce, kMiB, 1));
  }
  const NetworkConfig network = Network({Dimension(BlockShape::kSwitch, 8)});
  const SimulationResult alone = RunSimulation(workload, network, SystemWith({"ring"}));
  for (int32_t rank = 4; rank < 8; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(1, CollectiveKind::kAllToAll, 9 * kMiB, 2));
  }
  const SimulationResult together = RunSimulation(workload, network, SystemWith({"ring"}));
  for (int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(alone.finish_ns[rank], together.finish_ns[rank]);
  }
  EXPECT_EQ(alone.finish_ns[4], 0);
  EXPECT_GT(together.finish_ns[4], together.finish_ns[0]);
}

TEST(SimulationTest, AllGatherInARingTakesThreeTimesADirectOne) {
  const Workload workload = EveryRank(4, CollectiveNode(1, CollectiveKind::kAllGather, 16 * kMiB));
  const int64_t ring_ns = RunSimulation(workload, Ring(4), SystemWith({"ring"})).makespan_ns();
  const NetworkConfig full = Network({Dimension(BlockShape::kFullyConnected, 4)});
  const int64_t direct_ns = RunSimulation(workload, full, SystemWith({"direct"})).makespan_ns();
  EXPECT_NEAR(static_cast<double>(ring_ns) / static_cast<double>(direct_ns), 3, 0.001);
}

// On a network where all are alike, what a rank does is all that matters.
TEST(SimulationTest, RelabellingRanksChangesNothing) {
  std::mt19937_64 random(3);
  const NetworkConfig network = Network({Dimension(BlockShape::kSwitch, 6)});
  for (const char* const algorithm : {"ring", "direct", "direct2"}) {
    Workload workload = EveryRank(6, ComputeNode(1, 0));
    workload.groups = {{1, {4, 0, 2}}};
    for (int32_t rank = 0; rank < 6; ++rank) {
      workload.ranks[rank].Add(CollectiveNode(2, CollectiveKind::kAllReduce, 3 * kMiB), {1});
      workload.ranks[rank].Add(ComputeNode(3, 1000 * rank), {2});
    }
    for (int32_t rank : {0, 2, 4}) {
      workload.ranks[rank].Add(CollectiveNode(4, CollectiveKind::kAllGather, kMiB, 1), {3});
    }
    workload.ranks[1].Add(SendNode(4, 5, kMiB), {3});
    workload.ranks[5].Add(ReceiveNode(4, 1, kMiB), {3});
    const SimulationResult expected = RunSimulation(workload, network, SystemWith({algorithm}));

    std::vector<int32_t> names(6);
    std::iota(names.begin(), names.end(), 0);
    std::shuffle(names.begin(), names.end(), random);
    Workload renamed;
    renamed.ranks.resize(6);
    for (const int32_t member : workload.groups[1]) renamed.groups[1].push_back(names[member]);
    for (int32_t rank = 0; rank < 6; ++rank) {
      for (size_t i = 0; i < workload.ranks[rank].nodes().size(); ++i) {
        WorkloadNode node = workload.ranks[rank].nodes()[i];
        node.peer = names[node.peer];
        renamed.ranks[names[rank]].Add(node, workload.ranks[rank].dependencies(i));
      }
    }
    const SimulationResult result = RunSimulation(renamed, network, SystemWith({algorithm}));
    for (int32_t rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(result.finish_ns[names[rank]], expected.finish_ns[rank]) << algorithm;
    }
  }
}

TEST(SimulationTest, IssuesReadyNodesByIdWhenTheirResourceIsFree) {
  Workload workload = EveryRank(2, ComputeNode(9, 0));
  RankWorkload rank;
  rank.Add(ComputeNode(3, 500));
  rank.Add(ComputeNode(1, 2000));
  WorkloadNode host = ComputeNode(2, 700);
  host.on_host = true;
  rank.Add(host);
  rank.Add(ComputeNode(4, 0), {2, 3});
  workload.ranks[0] = rank;
  const SimulationResult result = RunSimulation(workload, Ring(2), SystemConfig(), WithNodeTimes());
  ASSERT_THAT(result.nodes, SizeIs(5));
  // Node 3 waits for node 1; the host's node 2 does not.
  EXPECT_EQ(result.nodes[0].issue_ns, 2000);
  EXPECT_EQ(result.nodes[0].finish_ns, 2500);
  EXPECT_EQ(result.nodes[1].issue_ns, 0);
  EXPECT_EQ(result.nodes[2].issue_ns, 0);
  EXPECT_EQ(result.nodes[2].finish_ns, 700);
  // Without a duration a node lasts 1 ns.
  EXPECT_EQ(result.nodes[3].issue_ns, 2500);
  EXPECT_EQ(result.nodes[3].finish_ns, 2501);
  EXPECT_THAT(result.finish_ns, ElementsAre(2501, 1));
}

TEST(SimulationTest, ReceivesWaitBesideOtherCommunication) {
  Workload workload = EveryRank(2, ReceiveNode(1, 1, 100, /*tag=*/1));
  workload.ranks[0].Add(SendNode(2, 1, 100, /*tag=*/2));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ReceiveNode(1, 0, 100, /*tag=*/2));
  workload.ranks[1].Add(SendNode(2, 0, 100, /*tag=*/1), {1});
  // 100 bytes take 501 ns each way.
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemConfig()).finish_ns, ElementsAre(1002, 1002));
}

TEST(SimulationTest, EarlyMessagesWaitForTheirReceives) {
  Workload workload = EveryRank(2, SendNode(1, 1, 100));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(1, 7000));
  workload.ranks[1].Add(ReceiveNode(2, 0, 100), {1});
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemConfig()).finish_ns, ElementsAre(501, 7000));
}

TEST(SimulationTest, WithRendezvousMessagesWaitForTheirReceives) {
  Workload workload;
  workload.ranks.resize(2);
  workload.ranks[0].Add(SendNode(1, 1, kMiB));
  workload.ranks[1].Add(ComputeNode(1, 100000));
  workload.ranks[1].Add(ReceiveNode(2, 0, kMiB), {1});
  EXPECT_EQ(RunSimulation(workload, Ring(2), SystemWith({"ring"})).makespan_ns(), 100000);
  SimulationOptions options;
  options.rendezvous = true;
  EXPECT_EQ(RunSimulation(workload, Ring(2), SystemWith({"ring"}), options).makespan_ns(),
            100000 + kCrossingNs);
}

TEST(SimulationTest, NodesMayBecomeReadyLater) {
  Workload workload;
  workload.ranks.resize(2);
  workload.ranks[0].Add(ComputeNode(1, 1000));
  WorkloadNode later = ComputeNode(2, 500);
  later.delay_ns = 300;
  workload.ranks[0].Add(later, {1});
  // Beside the delay others run.
  workload.ranks[0].Add(ComputeNode(3, 100), {1});
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemWith({"ring"})).finish_ns,
              ElementsAre(1000 + 300 + 500, 0));
}

TEST(SimulationTest, LateRanksKeepTheOthersWaiting) {
  Workload workload = EveryRank(4, CollectiveNode(2, CollectiveKind::kAllReduce, kMiB));
  workload.ranks[2] = RankWorkload();
  workload.ranks[2].Add(ComputeNode(1, 1'000'000));
  workload.ranks[2].Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB), {1});
  const SimulationResult result = RunSimulation(workload, Ring(4), SystemWith({"ring"}));
  for (const int64_t finish_ns : result.finish_ns) EXPECT_GT(finish_ns, 1'000'000);
}

TEST(SimulationTest, MoreCommStreamsRunCollectivesSideBySide) {
  Workload workload = EveryRank(4, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  for (RankWorkload& rank : workload.ranks) {
    rank.Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB));
  }
  SimulationOptions options = WithNodeTimes(Congestion::kUnaware);
  const SimulationResult one = RunSimulation(workload, Ring(4), SystemWith({"ring"}), options);
  options.comm_streams = 2;
  const SimulationResult two = RunSimulation(workload, Ring(4), SystemWith({"ring"}), options);
  EXPECT_EQ(one.makespan_ns(), 2 * two.makespan_ns());
  EXPECT_EQ(two.nodes[1].issue_ns, 0);
  options.congestion = Congestion::kAware;
  const SimulationResult aware = RunSimulation(workload, Ring(4), SystemWith({"ring"}), options);
  EXPECT_GT(aware.makespan_ns(), two.makespan_ns());
  EXPECT_LE(aware.makespan_ns(), one.makespan_ns());
}

// Crossing orders are a deadlock for one stream; with two they run side by side.
TEST(SimulationTest, MoreCommStreamsUntieCrossingOrders) {
  Workload workload;
  workload.ranks.resize(3);
  workload.groups = {{1, {0, 1}}, {2, {1, 2}}, {3, {2, 0}}};
  const std::vector<std::pair<int32_t, int32_t>> orders = {{1, 3}, {2, 1}, {3, 2}};
  for (int32_t rank = 0; rank < 3; ++rank) {
    workload.ranks[rank].Add(
        CollectiveNode(1, CollectiveKind::kAllReduce, kMiB, orders[rank].first));
    workload.ranks[rank].Add(
        CollectiveNode(2, CollectiveKind::kAllReduce, kMiB, orders[rank].second));
  }
  EXPECT_THAT(
      Simulate(workload, Ring(3), SystemWith({"ring"}), {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(StartsWith("deadlock at "),
                     HasSubstr("rank 0 waits in node 1 (all-reduce of group 1) for rank 1"),
                     HasSubstr("rank 1 waits in node 1 (all-reduce of group 2) for rank 2"),
                     HasSubstr("rank 2 waits in node 1 (all-reduce of group 3) for rank 0"))));
  SimulationOptions options;
  options.comm_streams = 2;
  RunSimulation(workload, Ring(3), SystemWith({"ring"}), options);
}

TEST(SimulationTest, NodesMayNameAlgorithmsOfTheirOwn) {
  const NetworkConfig full = Network({Dimension(BlockShape::kFullyConnected, 8)});
  Workload workload = EveryRank(8, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  const int64_t direct_ns = RunSimulation(workload, full, SystemWith({"direct"})).makespan_ns();
  WorkloadNode node = CollectiveNode(1, CollectiveKind::kAllReduce, kMiB);
  node.algorithms = 0;
  workload = EveryRank(8, node);
  workload.algorithms = {SystemWith({"direct"}).algorithms_of(CollectiveKind::kAllReduce)};
  EXPECT_EQ(RunSimulation(workload, full, SystemWith({"ring"})).makespan_ns(), direct_ns);
}

TEST(SimulationTest, DimensionsMakeUpToriAndGrids) {
  const Workload workload = EveryRank(16, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  const auto grid = [&](BlockShape shape) {
    const NetworkConfig network = Network({Dimension(shape, 4), Dimension(shape, 4)});
    return RunSimulation(workload, network, SystemWith({"ring", "ring"})).makespan_ns();
  };
  // A grid's rings close over all links of a row.
  EXPECT_GT(grid(BlockShape::kMesh), grid(BlockShape::kRing));
  Workload corner = EveryRank(16, ComputeNode(1, 0));
  corner.ranks[0].Add(SendNode(2, 15, kMiB));
  corner.ranks[15].Add(ReceiveNode(2, 0, kMiB));
  const NetworkConfig mesh =
      Network({Dimension(BlockShape::kMesh, 4), Dimension(BlockShape::kMesh, 4)});
  EXPECT_EQ(RunSimulation(corner, mesh, SystemConfig()).finish_ns[15], 6 * kCrossingNs);
  const NetworkConfig torus =
      Network({Dimension(BlockShape::kRing, 4), Dimension(BlockShape::kRing, 4)});
  EXPECT_EQ(RunSimulation(corner, torus, SystemConfig()).finish_ns[15], 2 * kCrossingNs);
}

TEST(SimulationTest, RooflineSaysHowLongComputeNodesLast) {
  SystemConfig system;
  system.roofline_enabled = true;
  system.peak_performance = 100;
  system.local_memory_bandwidth = 1000;
  Workload workload = EveryRank(2, WorkloadNode());
  workload.ranks[0] = RankWorkload();
  // 2e9 operations on 1e6 bytes: bound by 100e12/s, 20 us.
  WorkloadNode dense = ComputeNode(1, 0);
  dense.operations = 2'000'000'000;
  dense.tensor_bytes = 1'000'000;
  workload.ranks[0].Add(dense);
  // 1e6 operations on 1e6 bytes: bound by 1000e9 bytes/s, 1 us.
  WorkloadNode sparse = ComputeNode(2, 0);
  sparse.operations = 1'000'000;
  sparse.tensor_bytes = 1'000'000;
  workload.ranks[0].Add(sparse, {1});
  // The host's nodes keep their durations; a byte takes no time.
  WorkloadNode host = ComputeNode(3, 5000);
  host.on_host = true;
  workload.ranks[0].Add(host, {2});
  WorkloadNode least = ComputeNode(4, 9000);
  least.operations = 1;
  least.tensor_bytes = 1;
  workload.ranks[0].Add(least, {3});
  const SimulationResult result = RunSimulation(workload, Ring(2), system, WithNodeTimes());
  EXPECT_EQ(result.nodes[0].finish_ns, 20'000);
  EXPECT_EQ(result.nodes[1].finish_ns, 21'000);
  EXPECT_EQ(result.nodes[2].finish_ns, 26'000);
  EXPECT_EQ(result.nodes[3].finish_ns, 26'000);
  system.peak_performance = 0;
  EXPECT_THAT(
      Simulate(workload, Ring(2), system, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("roofline-enabled: peak-perf")));
}

class RooflineTest : public testing::Test {
 protected:
  RooflineTest() {
    system_.roofline_enabled = true;
    system_.peak_performance = 100;
    system_.local_memory_bandwidth = 1000;
    workload_.ranks[0].source = "w.0.et";
  }

  // 1 byte takes 1 ps.
  static WorkloadNode Moves(uint64_t id, int64_t bytes) {
    WorkloadNode node = ComputeNode(id, 5000);
    node.operations = 1;
    node.tensor_bytes = bytes;
    return node;
  }

  SystemConfig system_ = SystemWith({"ring"});
  Workload workload_ = EveryRank(2, Moves(1, 1'000'000));
};

// What the real AstraSim does: it ends such a node and goes on to what waits for it when anything
// else of the rank ends.
TEST_F(RooflineTest, AComputationWithoutBytesIsSkippedUntilTheNextEnd) {
  workload_.ranks[0].Add(Moves(2, 0), {1});
  EXPECT_THAT(RunSimulation(workload_, Ring(2), system_).finish_ns, ElementsAre(1000, 1000));
  workload_.ranks[0].Add(Moves(3, 2'000'000));
  workload_.ranks[0].Add(Moves(4, 2'000'000), {2});
  const SimulationResult result = RunSimulation(workload_, Ring(2), system_, WithNodeTimes());
  EXPECT_EQ(result.nodes[1].issue_ns, 1000);
  EXPECT_EQ(result.nodes[1].finish_ns, 1000);
  EXPECT_EQ(result.nodes[2].issue_ns, 1000);
  EXPECT_EQ(result.nodes[3].issue_ns, 3000);
  EXPECT_THAT(result.finish_ns, ElementsAre(5000, 1000));
}

TEST_F(RooflineTest, WhatWaitsForAComputationWithoutBytesMayNeverRun) {
  workload_.ranks[0].Add(Moves(2, 0), {1});
  workload_.ranks[0].Add(Moves(3, 1000), {2});
  EXPECT_THAT(Simulate(workload_, Ring(2), system_, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("w.0.et: node 2: tensor_size is 0: with roofline-enabled "
                                        "AstraSim skips it"),
                             HasSubstr("here node 3"))));
}

TEST_F(RooflineTest, ARooflineDividesByTheOperations) {
  WorkloadNode node = Moves(2, 1000);
  node.operations = 0;
  workload_.ranks[0].Add(node);
  EXPECT_THAT(Simulate(workload_, Ring(2), system_, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("w.0.et: node 2: num_ops is 0; a roofline divides by it")));
}

TEST_F(RooflineTest, AComputationLongerThanTheClockIsRefused) {
  system_.local_memory_bandwidth = 0.5;
  workload_.ranks[0].Add(Moves(2, int64_t{1} << 62));
  EXPECT_THAT(Simulate(workload_, Ring(2), system_, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("w.0.et: node 2: num_ops 1 and tensor_size 46116"),
                             HasSubstr("by the roofline, which is out of range"))));
  system_.local_memory_bandwidth = 1000;
  system_.peak_performance = 1e-300;
  EXPECT_THAT(Simulate(workload_, Ring(2), system_, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("w.0.et: node 1: num_ops")));
}

TEST(SimulationTest, ReplayLetsEveryNodeLastItsDuration) {
  SystemConfig system;
  system.replay_only = true;
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  WorkloadNode receive = ReceiveNode(2, 1, 7);
  receive.duration_ns = 3000;
  workload.ranks[0].Add(receive, {1});
  EXPECT_THAT(RunSimulation(workload, Ring(2), system).finish_ns, ElementsAre(3001, 1));
}

TEST(SimulationTest, BroadcastsLastTheirDuration) {
  WorkloadNode node = CollectiveNode(1, CollectiveKind::kCollectiveBroadcast, kMiB);
  node.duration_ns = 4000;
  EXPECT_THAT(RunSimulation(EveryRank(2, node), Ring(2), SystemConfig()).finish_ns,
              ElementsAre(4000, 4000));
}

TEST(SimulationTest, AFixedCollectiveLastsFromTheLastJoin) {
  Workload workload = EveryRank(2, CollectiveNode(2, CollectiveKind::kAllReduce, kMiB));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(1, 5000));
  workload.ranks[1].Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB), {1});
  workload.ranks[0].mutable_nodes()[0].fixed_ns = 70;
  workload.ranks[1].mutable_nodes()[1].fixed_ns = 80;
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemWith({"ring"})).finish_ns,
              ElementsAre(5070, 5080));
}

TEST(SimulationTest, AFixedMessageLastsFromTheSendAndMeetsNothing) {
  // The second send, simulated, has the link to itself.
  Workload workload;
  workload.ranks.resize(2);
  for (const int32_t tag : {1, 2}) {
    workload.ranks[0].Add(SendNode(tag, 1, kMiB, tag));
    workload.ranks[1].Add(ReceiveNode(tag, 0, kMiB, tag));
  }
  workload.ranks[0].mutable_nodes()[0].fixed_ns = 90'000;
  SimulationOptions options = WithNodeTimes();
  options.comm_streams = 2;
  const SimulationResult result = RunSimulation(workload, Ring(2), SystemWith({"ring"}), options);
  ASSERT_THAT(result.nodes, SizeIs(4));
  EXPECT_EQ(result.nodes[0].finish_ns, 90'000);
  EXPECT_EQ(result.nodes[1].finish_ns, kCrossingNs);
  EXPECT_EQ(result.nodes[2].finish_ns, 90'000);
  EXPECT_EQ(result.nodes[3].finish_ns, kCrossingNs);
}

TEST(SimulationTest, AMemberWithoutADurationTakesThatOfTheFirst) {
  Workload workload = EveryRank(2, CollectiveNode(2, CollectiveKind::kAllReduce, kMiB));
  workload.ranks[0].mutable_nodes()[0].fixed_ns = 70;
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemWith({"ring"})).finish_ns,
              ElementsAre(70, 70));
}

// Each keeps the only comm stream for 1000 ns before its message leaves.
TEST(SimulationTest, OverheadsKeepTheirCommStream) {
  Workload workload;
  workload.ranks.resize(2);
  for (const int32_t tag : {1, 2}) {
    WorkloadNode send = SendNode(tag, 1, kMiB, tag);
    send.overhead_ns = 1000;
    workload.ranks[0].Add(send);
    workload.ranks[1].Add(ReceiveNode(tag, 0, kMiB, tag));
  }
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemWith({"ring"})).finish_ns,
              ElementsAre(2 * (1000 + kCrossingNs), 2 * (1000 + kCrossingNs)));
}

// With one algorithm for two dimensions, rows of ranks run each on its own: one is over long before
// the other begins, and so before the whole does.
TEST(SimulationTest, CollectivesMayLeaveTheirMembersUntied) {
  WorkloadNode all_reduce = CollectiveNode(2, CollectiveKind::kAllReduce, kMiB);
  // A fixed time would tie them.
  all_reduce.fixed_ns = 5;
  Workload workload = EveryRank(4, all_reduce);
  for (const int32_t rank : {2, 3}) {
    workload.ranks[rank] = RankWorkload();
    workload.ranks[rank].Add(ComputeNode(1, 1'000'000));
    workload.ranks[rank].Add(all_reduce, {1});
  }
  workload.ranks[2].Add(SendNode(3, 3, kMiB, /*tag=*/3), {2});
  workload.ranks[3].Add(ReceiveNode(3, 2, kMiB, /*tag=*/3));
  const NetworkConfig mesh =
      Network({Dimension(BlockShape::kMesh, 2), Dimension(BlockShape::kMesh, 2)});
  const SimulationResult result = RunSimulation(workload, mesh, SystemWith({"ring"}));
  // Two messages of 512 KiB, 500 + 9765 each, and 10 before, between and after them.
  constexpr int64_t kRowNs = 20'560;
  const int64_t sent_ns = 1'000'000 + kRowNs;
  EXPECT_THAT(result.finish_ns,
              ElementsAre(kRowNs, kRowNs, sent_ns + kCrossingNs, sent_ns + kCrossingNs));
}

TEST(SimulationTest, ACollectiveOfAGroupOfOneMemberTakesNoTime) {
  Workload workload = EveryRank(2, ComputeNode(1, 100));
  workload.groups = {{1, {0}}, {2, {1}}};
  for (const CollectiveKind op : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                  CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    const uint64_t id = workload.ranks[0].nodes().back().id + 1;
    workload.ranks[0].Add(CollectiveNode(id, op, kMiB, 1), {id - 1});
  }
  workload.ranks[0].Add(ComputeNode(9, 50), {5});
  EXPECT_THAT(RunSimulation(workload, Ring(2), SystemWith({"ring"})).finish_ns,
              ElementsAre(150, 100));
}

// AstraSim stops at these with an assertion; the rules give an answer all the same.
TEST(SimulationTest, AnswersWhereOnlyAstraSimsProgramStops) {
  // A message that takes no time at the start.
  Workload workload = EveryRank(2, SendNode(1, 1, 1));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ReceiveNode(1, 0, 1));
  const NetworkConfig fast = Network({Dimension(BlockShape::kFullyConnected, 2, 50, 0)});
  EXPECT_THAT(RunSimulation(workload, fast, SystemConfig()).finish_ns, ElementsAre(0, 0));
  // Messages of 2, 1, 0 and 0 bytes, since halving leaves nothing.
  EXPECT_THAT(RunSimulation(EveryRank(4, CollectiveNode(1, CollectiveKind::kAllReduce, 0)),
                            Network({Dimension(BlockShape::kFullyConnected, 4)}),
                            SystemWith({"halvingDoubling"}))
                  .finish_ns,
              Each(10 + 4 * (500 + 10)));
  // No endpoint delay.
  SystemConfig system = SystemWith({"ring"});
  system.endpoint_delay_ns = 0;
  EXPECT_THAT(RunSimulation(EveryRank(2, CollectiveNode(1, CollectiveKind::kAllGather, kMiB)),
                            Ring(2), system)
                  .finish_ns,
              Each(kCrossingNs));
}

class BadWorkloadTest : public testing::Test {
 protected:
  absl::Status Simulated() { return Simulate(workload_, network_, system_, options_).status(); }

  NetworkConfig network_ = Ring(4);
  SystemConfig system_ = SystemWith({"ring"});
  SimulationOptions options_;
  Workload workload_ = EveryRank(4, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
};

TEST_F(BadWorkloadTest, RanksMustFitTheNetwork) {
  network_ = Ring(8);
  network_.source = "n.yml";
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    StartsWith("n.yml: npus_count: the network has 8 NPUs")));
}

TEST_F(BadWorkloadTest, ConfigurationsMustMakeSense) {
  network_.dimensions[0].bytes_per_ns = 0;
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bandwidth")));
  network_ = Ring(4);
  system_.preferred_dataset_splits = 0;
  EXPECT_THAT(Simulated(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("preferred-dataset-splits")));
  system_ = SystemWith({"ring"});
  options_.comm_streams = 0;
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("comm_streams")));
}

TEST_F(BadWorkloadTest, NodesMustMakeSense) {
  const auto fault = [&](WorkloadNode node) {
    workload_.ranks[2] = RankWorkload();
    workload_.ranks[2].source = "w.2.et";
    workload_.ranks[2].Add(std::move(node));
    return Simulated();
  };
  const auto is_fault = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(message));
  };
  EXPECT_THAT(fault(SendNode(7, 2, 1)), is_fault("w.2.et: node 7: comm_dst 2 is the rank itself"));
  EXPECT_THAT(fault(SendNode(7, 4, 1)), is_fault("w.2.et: node 7: comm_dst 4 is no rank"));
  EXPECT_THAT(fault(ReceiveNode(7, -1, 1)), is_fault("w.2.et: node 7: comm_src -1 is no rank"));
  EXPECT_THAT(fault(SendNode(7, 1, 0)), is_fault("w.2.et: node 7: comm_size 0"));
  EXPECT_THAT(fault(SendNode(7, 1, 1, -1)), is_fault("w.2.et: node 7: comm_tag -1 is negative"));
  EXPECT_THAT(fault(CollectiveNode(7, CollectiveKind::kAllReduce, -1)),
              is_fault("w.2.et: node 7: comm_size -1 is out of range"));
  EXPECT_THAT(fault(CollectiveNode(7, CollectiveKind::kAllReduce, (int64_t{1} << 42) + 1)),
              is_fault("w.2.et: node 7: comm_size"));
  EXPECT_THAT(fault(ComputeNode(7, -1)), is_fault("w.2.et: node 7: duration of -1 ns"));
  WorkloadNode algorithms = CollectiveNode(7, CollectiveKind::kAllReduce, kMiB);
  algorithms.algorithms = 0;
  EXPECT_THAT(fault(algorithms), is_fault("w.2.et: node 7: has no algorithms number 0"));
  EXPECT_THAT(fault(CollectiveNode(7, CollectiveKind::kAllReduce, kMiB, 5)),
              StatusIs(absl::StatusCode::kNotFound,
                       StartsWith("w.2.et: node 7: group 5 is not among the communicator groups")));
}

TEST_F(BadWorkloadTest, TimesMustFit) {
  workload_ = EveryRank(4, ComputeNode(1, int64_t{1} << 60));
  for (uint64_t id = 2; id < 20; ++id) {
    workload_.ranks[0].Add(ComputeNode(id, int64_t{1} << 60), {id - 1});
  }
  EXPECT_THAT(Simulated(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer than 73 years")));
}

TEST_F(BadWorkloadTest, DependenciesMustExistAndEnd) {
  workload_.ranks[1].source = "w.1.et";
  workload_.ranks[1].Add(ComputeNode(2, 0), {9});
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "w.1.et: node 2 depends on node 9, which does not exist"));
  workload_.ranks[1] = RankWorkload();
  workload_.ranks[1].source = "w.1.et";
  workload_.ranks[1].Add(ComputeNode(1, 0));
  workload_.ranks[1].Add(ComputeNode(2, 0), {1, 4});
  workload_.ranks[1].Add(ComputeNode(3, 0), {2});
  workload_.ranks[1].Add(ComputeNode(4, 0), {3});
  workload_.ranks[1].Add(ComputeNode(5, 0), {4});
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "w.1.et: nodes depend on each other in a circle: 2 -> 4 -> 3 "
                                    "-> 2"));
}

TEST_F(BadWorkloadTest, MembersMustMeanTheSameCollective) {
  workload_.ranks[3] = RankWorkload();
  workload_.ranks[3].Add(CollectiveNode(1, CollectiveKind::kAllGather, kMiB));
  EXPECT_THAT(Simulated(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("rank 3: node 1: is all-gather of 1048576 bytes, but the same "
                                  "collective (number 1 of all ranks) is all-reduce of 1048576 "
                                  "bytes on rank 0 (node 1)")));
}

// Distances 3 and 1; the real AstraSim's time.
TEST(SimulationTest, SixRanksGatherByHalvingDoubling) {
  SystemConfig system = SystemWith({"halvingDoubling"});
  EXPECT_THAT(RunSimulation(EveryRank(6, CollectiveNode(1, CollectiveKind::kAllGather, kMiB)),
                            Network({Dimension(BlockShape::kFullyConnected, 6)}), system)
                  .finish_ns,
              Each(59623));
}

TEST_F(BadWorkloadTest, MissingMembersAreADeadlock) {
  workload_.ranks[3] = RankWorkload();
  workload_.ranks[3].Add(ComputeNode(1, 100));
  EXPECT_THAT(Simulated(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 0 waits in node 1 (all-reduce of all ranks) for rank 3")));
}

TEST_F(BadWorkloadTest, ReceivesWithoutTheirSendAreADeadlock) {
  workload_ = EveryRank(4, ComputeNode(1, 0));
  workload_.ranks[1].Add(ReceiveNode(2, 0, 64, 7));
  EXPECT_THAT(Simulated(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "deadlock at 1 ns: rank 1 waits in node 2 (receive from rank "
                                    "0, tag 7, 64 bytes) for rank 0"));
  workload_.ranks[0].Add(SendNode(2, 1, 32, 7));
  EXPECT_THAT(Simulated(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("for rank 0: a send with this tag has 32 bytes, not 64")));
}

// A run that hangs in AstraSim, too.
TEST_F(BadWorkloadTest, ChunksMayHoldUpEachOther) {
  network_ = Network({Dimension(BlockShape::kFullyConnected, 2, 25, 500),
                      Dimension(BlockShape::kFullyConnected, 4, 100, 250),
                      Dimension(BlockShape::kRing, 2, 25, 500)});
  system_ = SystemWith({"halvingDoubling", "doubleBinaryTree", "doubleBinaryTree"});
  system_.preferred_dataset_splits = 8;
  system_.endpoint_delay_ns = 1;
  system_.local_memory_bandwidth = 1600;
  workload_ = EveryRank(16, CollectiveNode(1, CollectiveKind::kAllReduce, 64 * kMiB));
  for (const Congestion congestion : {Congestion::kAware, Congestion::kUnaware}) {
    options_.congestion = congestion;
    EXPECT_THAT(
        Simulated(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("raise active-chunks-per-dimension to preferred-dataset-splits")));
  }
  system_.active_chunks_per_dimension = 8;
  EXPECT_OK(Simulated());
}

// 100 ns of computing beside a message of 1 MiB, 20,031 ns; a host gap is no computing, and what
// the host does counts only where no device does anything.
TEST(SimulationTest, CommunicationIsExposedWhereNothingIsComputed) {
  Workload workload;
  workload.ranks.resize(2);
  workload.ranks[0].Add(ComputeNode(1, 100));
  workload.ranks[0].Add(SendNode(2, 1, 1 << 20));
  WorkloadNode gap = ComputeNode(3, 50'000);
  gap.is_host_gap = true;
  workload.ranks[0].Add(gap, {1});
  workload.ranks[1].Add(ReceiveNode(1, 0, 1 << 20));
  WorkloadNode host = ComputeNode(2, 500);
  host.on_host = true;
  workload.ranks[1].Add(host);
  const SimulationResult result = RunSimulation(workload, Ring(2), SystemWith({"ring"}));
  ASSERT_EQ(result.activity.size(), 2u);
  const int64_t message_ns = result.finish_ns[1];
  EXPECT_EQ(result.activity[0].span_ns, 50'100);
  EXPECT_EQ(result.activity[0].computing_ns, 100);
  EXPECT_EQ(result.activity[0].communicating_ns, message_ns);
  EXPECT_EQ(result.activity[0].exposed_ns, message_ns - 100);
  EXPECT_EQ(result.activity[0].idle_ns(), 50'100 - message_ns);
  EXPECT_EQ(result.activity[1].computing_ns, 500);
  EXPECT_EQ(result.activity[1].exposed_ns, message_ns - 500);
}

}  // namespace
}  // namespace meridian
