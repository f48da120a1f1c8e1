#include "astra_bridge/corrections/corrected_simulation.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kMiB = 1 << 20;
// What 1 MiB takes on a link of 50 GiB/s and 500 ns: 19531.25 ns and 20031.25 ns, cut off.
constexpr int64_t kSendingNs = 19531;
constexpr int64_t kCrossingNs = 20031;

NetworkConfig Ring(int32_t npus) { return Network({Dimension(BlockShape::kRing, npus)}); }

NetworkConfig SquareMesh() {
  return Network({Dimension(BlockShape::kMesh, 2), Dimension(BlockShape::kMesh, 2)});
}

void Correct(CollectiveKind kind, double ratio, Corrections* corrections) {
  corrections->points[static_cast<size_t>(kind)] = {{1, ratio}};
}

Corrections Only(CollectiveKind kind, double ratio) {
  Corrections corrections;
  Correct(kind, ratio, &corrections);
  return corrections;
}

SimulationOptions Options(int32_t comm_streams = 1) {
  SimulationOptions options;
  options.node_times = true;
  options.comm_streams = comm_streams;
  return options;
}

CorrectedSimulation RunCorrected(const Workload& workload, const NetworkConfig& network,
                                 const Corrections& corrections,
                                 const SimulationOptions& options = Options()) {
  const SystemConfig system = SystemWith({"ring"});
  absl::StatusOr<CorrectedSimulator> simulator =
      CorrectedSimulator::Create(workload, network, system, options);
  EXPECT_OK(simulator.status());
  if (!simulator.ok()) return CorrectedSimulation();
  absl::StatusOr<CorrectedSimulation> simulation = simulator->Run(corrections);
  EXPECT_OK(simulation.status());
  return simulation.ok() ? *std::move(simulation) : CorrectedSimulation();
}

SimulationResult RunPlain(const Workload& workload, const NetworkConfig& network,
                          const SimulationOptions& options = Options()) {
  absl::StatusOr<SimulationResult> result =
      Simulate(workload, network, SystemWith({"ring"}), options);
  EXPECT_OK(result.status());
  return result.ok() ? *std::move(result) : SimulationResult();
}

// So many messages from rank 0 to rank 1, sent at once, with these bytes.
Workload Messages(const std::vector<int64_t>& bytes) {
  Workload workload;
  workload.ranks.resize(2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    workload.ranks[0].Add(SendNode(i + 1, 1, bytes[i], static_cast<int32_t>(i)));
    workload.ranks[1].Add(ReceiveNode(i + 1, 0, bytes[i], static_cast<int32_t>(i)));
  }
  return workload;
}

TEST(CorrectedSimulationTest, CollectivesThatAreAlone) {
  Workload workload = EveryRank(2, ComputeNode(1, 1000));
  for (RankWorkload& rank : workload.ranks) {
    rank.Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB), {1});
    rank.Add(ComputeNode(3, 500), {2});
  }
  const int64_t engine_ns = RunPlain(workload, Ring(2)).nodes[1].finish_ns - 1000;
  // Faster than the engine has it.
  const CorrectedSimulation simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllReduce, 0.5));
  const int64_t corrected_ns = (engine_ns + 1) / 2;
  EXPECT_EQ(simulation.result.nodes[1].finish_ns, 1000 + corrected_ns);
  EXPECT_EQ(simulation.result.nodes[2].finish_ns, 1500 + corrected_ns);
  EXPECT_EQ(simulation.corrected, 1);
  EXPECT_EQ(simulation.uncorrected, 0);
}

TEST(CorrectedSimulationTest, ACollectiveBeginsWhenTheLastMemberDoes) {
  Workload workload = EveryRank(2, CollectiveNode(2, CollectiveKind::kAllReduce, kMiB));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(1, 5000));
  workload.ranks[1].Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB), {1});
  // Alone it takes the engine 20,560 ns: two messages of 512 KiB, 500 + 9765 each, and 10 before,
  // between and after them. That rank 0's first message comes early gains nothing.
  EXPECT_THAT(
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllReduce, 0.5)).result.finish_ns,
      ElementsAre(5000 + 10'280, 5000 + 10'280));
}

// Ratios are 2 for one pair of a run of four, and 8 for two pairs. One pair that has two messages
// under way is still one.
TEST(CorrectedSimulationTest, RanksAreThoseThatMoveDataAtOnce) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{kMiB, 2, 2},
                                                                            {kMiB, 8, 4}};
  const auto finish_ns = [&](int32_t second_source, int32_t second_target) {
    Workload workload = EveryRank(4, ComputeNode(9, 1));
    workload.ranks[0].Add(SendNode(1, 1, kMiB, 1));
    workload.ranks[1].Add(ReceiveNode(1, 0, kMiB, 1));
    workload.ranks[second_source].Add(SendNode(2, second_target, kMiB, 2));
    workload.ranks[second_target].Add(ReceiveNode(2, second_source, kMiB, 2));
    return RunCorrected(workload, Ring(4), corrections, Options(2)).result.finish_ns[1];
  };
  EXPECT_EQ(finish_ns(2, 3), 8 * 20'031);
  // Both share the link: each waits for the other, which takes twice as long as the engine says.
  EXPECT_LT(finish_ns(0, 1), 5 * 20'031);
}

TEST(CorrectedSimulationTest, GroupsOnLinksOfTheirOwnAreEachAsAlone) {
  Workload workload;
  workload.ranks.resize(4);
  workload.groups = {{1, {0, 1}}, {2, {2, 3}}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(1, CollectiveKind::kAllReduce, kMiB, rank < 2 ? 1 : 2));
  }
  const int64_t engine_ns = RunPlain(workload, SquareMesh()).makespan_ns();
  const CorrectedSimulation simulation =
      RunCorrected(workload, SquareMesh(), Only(CollectiveKind::kAllReduce, 2));
  EXPECT_THAT(simulation.result.finish_ns, testing::Each(2 * engine_ns));
  EXPECT_EQ(simulation.corrected, 2);
}

TEST(CorrectedSimulationTest, AMessageAlone) {
  // 2 x 20031. A receive that comes later is over when it comes.
  Workload workload = Messages({kMiB});
  const Corrections corrections = Only(CollectiveKind::kPointToPoint, 2);
  EXPECT_THAT(RunCorrected(workload, Ring(2), corrections).result.finish_ns,
              ElementsAre(40062, 40062));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(1, 50'000));
  workload.ranks[1].Add(ReceiveNode(2, 0, kMiB), {1});
  const CorrectedSimulation late = RunCorrected(workload, Ring(2), corrections);
  EXPECT_THAT(late.result.finish_ns, ElementsAre(40062, 50'000));
  EXPECT_EQ(late.corrected, 1);
}

TEST(CorrectedSimulationTest, OneMessageBehindAnother) {
  // Engine: 20031 and 39562, the second waits 19531. Corrected: twice
  // 20031, and twice 39562.
  EXPECT_EQ(kCrossingNs + kSendingNs, 39562);
  EXPECT_THAT(RunCorrected(Messages({kMiB, kMiB}), Ring(2), Only(CollectiveKind::kPointToPoint, 2),
                           Options(2))
                  .result.finish_ns,
              ElementsAre(79124, 79124));
}

TEST(CorrectedSimulationTest, ASmallMessageBehindAHugeOne) {
  // 64 MiB take 1,250,000 + 500 ns, 1 KiB 19 + 500. The small one waits 1,250,000. Corrected:
  // the huge one 1250500 x 1.25 = 1,563,125, the small one 519 x 5 = 2595, and together
  // 2595 + 1250000 * 1563125 / 1250500 = 1,565,095.0: not five times 1.25 ms.
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{1024, 5},
                                                                            {64 * kMiB, 1.25}};
  const CorrectedSimulation simulation =
      RunCorrected(Messages({64 * kMiB, 1024}), Ring(2), corrections, Options(2));
  EXPECT_EQ(simulation.result.nodes[0].finish_ns, 1'563'125);
  EXPECT_EQ(simulation.result.nodes[1].finish_ns, 1'565'095);
}

TEST(CorrectedSimulationTest, AKindWithoutCorrectionsWaitsForThoseThatHaveSome) {
  // While the all-gather runs, from 10 ns on, rank 0 sends over a link that is busy with it.
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllGather, 64 * kMiB));
  workload.ranks[0].Add(ComputeNode(2, 100));
  workload.ranks[0].Add(SendNode(3, 1, kMiB), {2});
  workload.ranks[1].Add(ReceiveNode(3, 0, kMiB));
  const SimulationResult plain = RunPlain(workload, Ring(2), Options(2));
  const int64_t message_ns = plain.nodes[2].finish_ns - 100;
  EXPECT_EQ(message_ns, 1'250'000 - 90 + kCrossingNs);
  const CorrectedSimulation simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllGather, 2), Options(2));
  EXPECT_EQ(simulation.result.nodes[2].finish_ns, 100 + kCrossingNs + 2 * (1'250'000 - 90));
  EXPECT_EQ(simulation.corrected, 1);
  EXPECT_EQ(simulation.uncorrected, 1);
}

TEST(CorrectedSimulationTest, KindsWithoutCorrectionsAmongThemselvesAreSimulated) {
  // A corrected all-gather, then two messages, one behind the other.
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllGather, kMiB));
  for (const int32_t tag : {2, 3}) {
    workload.ranks[0].Add(SendNode(tag, 1, kMiB, tag), {1});
    workload.ranks[1].Add(ReceiveNode(tag, 0, kMiB, tag), {1});
  }
  // The engine's all-gather: 20031, and 10 before and after it.
  const CorrectedSimulation simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllGather, 2), Options(2));
  EXPECT_EQ(simulation.result.nodes[1].finish_ns, 2 * (kCrossingNs + 20) + kCrossingNs);
  EXPECT_EQ(simulation.result.nodes[2].finish_ns,
            2 * (kCrossingNs + 20) + kCrossingNs + kSendingNs);
  EXPECT_EQ(simulation.corrected, 1);
  EXPECT_EQ(simulation.uncorrected, 2);
}

TEST(CorrectedSimulationTest, WithNothingToCorrectItIsTheEngines) {
  const Workload workload = Messages({kMiB, 5 * kMiB, 7});
  const CorrectedSimulation simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllReduce, 2), Options(3));
  EXPECT_EQ(simulation.result.finish_ns, RunPlain(workload, Ring(2), Options(3)).finish_ns);
  EXPECT_EQ(simulation.corrected, 0);
  EXPECT_EQ(simulation.uncorrected, 3);
}

// With one algorithm for two dimensions, rows of ranks run each on its own. The two that come late
// do not keep the others waiting.
TEST(CorrectedSimulationTest, CollectivesThatLeaveTheirMembersUntiedAreSimulated) {
  const WorkloadNode all_reduce = CollectiveNode(2, CollectiveKind::kAllReduce, kMiB);
  Workload workload = EveryRank(4, all_reduce);
  for (const int32_t rank : {2, 3}) {
    workload.ranks[rank] = RankWorkload();
    workload.ranks[rank].Add(ComputeNode(1, 1'000'000));
    workload.ranks[rank].Add(all_reduce, {1});
  }
  workload.ranks[0].Add(SendNode(3, 1, kMiB), {2});
  workload.ranks[1].Add(ReceiveNode(3, 0, kMiB));
  Corrections corrections = Only(CollectiveKind::kPointToPoint, 2);
  Correct(CollectiveKind::kAllReduce, 3, &corrections);
  const CorrectedSimulation simulation = RunCorrected(workload, SquareMesh(), corrections);
  // Two messages of 512 KiB, 500 + 9765 each, and 10 before, between and after them. The message:
  // 2 x 20031.
  EXPECT_THAT(simulation.result.finish_ns,
              ElementsAre(20'560 + 40'062, 20'560 + 40'062, 1'020'560, 1'020'560));
  EXPECT_EQ(simulation.corrected, 1);
  EXPECT_EQ(simulation.uncorrected, 1);
}

TEST(CorrectedSimulationTest, WaitingForUntiedCollectivesLastsAsLongAsInTheEngine) {
  Workload workload = EveryRank(4, CollectiveNode(1, CollectiveKind::kAllReduce, 64 * kMiB));
  workload.ranks[0].Add(ComputeNode(2, 100));
  workload.ranks[0].Add(SendNode(3, 1, kMiB), {2});
  workload.ranks[1].Add(ReceiveNode(3, 0, kMiB));
  // The link is busy with the first 32 MiB from 10 ns on, for 625,000.
  const int64_t waiting_ns = 625'010 - 100;
  EXPECT_EQ(RunPlain(workload, SquareMesh(), Options(2)).nodes[2].finish_ns,
            100 + waiting_ns + kCrossingNs);
  EXPECT_EQ(RunCorrected(workload, SquareMesh(), Only(CollectiveKind::kPointToPoint, 2), Options(2))
                .result.nodes[2]
                .finish_ns,
            100 + waiting_ns + 40'062);
}

TEST(CorrectedSimulationTest, TimesBeyondAllBoundsAreCut) {
  // 2^42 bytes take 2^42 / 2^30 s on a link of 1 GiB/s, and a million times as long is 4.1e18 ns:
  // more than a simulated run may last.
  const NetworkConfig slow = Network({Dimension(BlockShape::kRing, 2, /*gibibytes_per_second=*/1)});
  EXPECT_EQ(
      RunCorrected(Messages({int64_t{1} << 42}), slow, Only(CollectiveKind::kPointToPoint, 1e6))
          .result.makespan_ns(),
      kMaxDurationNs);
}

}  // namespace
}  // namespace meridian
