#include "astra_bridge/corrections/corrected_workload.h"

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
using ::testing::HasSubstr;

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

SimulationResult RunPlain(const Workload& workload, const NetworkConfig& network,
                          const SimulationOptions& options = Options()) {
  absl::StatusOr<SimulationResult> result =
      Simulate(workload, network, SystemWith({"ring"}), options);
  EXPECT_OK(result.status());
  return result.ok() ? *std::move(result) : SimulationResult();
}

SimulationResult RunCorrected(const Workload& workload, const NetworkConfig& network,
                              const Corrections& corrections,
                              const SimulationOptions& options = Options()) {
  const absl::StatusOr<Workload> corrected =
      CorrectWorkload(workload, network, SystemWith({"ring"}), options.congestion, corrections);
  EXPECT_OK(corrected.status());
  return corrected.ok() ? RunPlain(*corrected, network, options) : SimulationResult();
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

TEST(CorrectedWorkloadTest, CollectivesThatAreAlone) {
  Workload workload = EveryRank(2, ComputeNode(1, 1000));
  for (RankWorkload& rank : workload.ranks) {
    rank.Add(CollectiveNode(2, CollectiveKind::kAllReduce, kMiB), {1});
    rank.Add(ComputeNode(3, 500), {2});
  }
  const int64_t engine_ns = RunPlain(workload, Ring(2)).nodes[1].finish_ns - 1000;
  // Faster than the engine has it.
  const SimulationResult simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllReduce, 0.5));
  const int64_t corrected_ns = (engine_ns + 1) / 2;
  EXPECT_EQ(simulation.nodes[1].finish_ns, 1000 + corrected_ns);
  EXPECT_EQ(simulation.nodes[2].finish_ns, 1500 + corrected_ns);
}

TEST(CorrectedWorkloadTest, GroupsOnLinksOfTheirOwnAreEachAsAlone) {
  Workload workload;
  workload.ranks.resize(4);
  workload.groups = {{1, {0, 1}}, {2, {2, 3}}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(1, CollectiveKind::kAllReduce, kMiB, rank < 2 ? 1 : 2));
  }
  const int64_t engine_ns = RunPlain(workload, SquareMesh()).makespan_ns();
  const SimulationResult simulation =
      RunCorrected(workload, SquareMesh(), Only(CollectiveKind::kAllReduce, 2));
  EXPECT_THAT(simulation.finish_ns, testing::Each(2 * engine_ns));
}

TEST(CorrectedWorkloadTest, AMessageAlone) {
  // 2 x 20031. A receive that comes later is over when it comes.
  Workload workload = Messages({kMiB});
  const Corrections corrections = Only(CollectiveKind::kPointToPoint, 2);
  EXPECT_THAT(RunCorrected(workload, Ring(2), corrections).finish_ns, ElementsAre(40062, 40062));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(1, 50'000));
  workload.ranks[1].Add(ReceiveNode(2, 0, kMiB), {1});
  const SimulationResult late = RunCorrected(workload, Ring(2), corrections);
  EXPECT_THAT(late.finish_ns, ElementsAre(40062, 50'000));
}

TEST(CorrectedWorkloadTest, OneMessageBehindAnother) {
  // Engine: 20031 and 39562, the second waits 19531. Corrected: twice
  // 20031, and twice 39562.
  EXPECT_EQ(kCrossingNs + kSendingNs, 39562);
  EXPECT_THAT(RunCorrected(Messages({kMiB, kMiB}), Ring(2), Only(CollectiveKind::kPointToPoint, 2),
                           Options(2))
                  .finish_ns,
              ElementsAre(79124, 79124));
}

TEST(CorrectedWorkloadTest, ASmallMessageBehindAHugeOne) {
  // The huge one is 80 MiB, 1,562,500 + 500 ns, and 125 before: 1.25 x 1,250,500. The small one is
  // 5 KiB, 95 + 500, and 2000 before: 5 x 519. It gets the link when the huge one has left it.
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{1024, 5},
                                                                            {64 * kMiB, 1.25}};
  const SimulationResult simulation =
      RunCorrected(Messages({64 * kMiB, 1024}), Ring(2), corrections, Options(2));
  EXPECT_EQ(simulation.nodes[0].finish_ns, 1'563'125);
  EXPECT_EQ(simulation.nodes[1].finish_ns, 125 + 1'562'500 + 595);
}

TEST(CorrectedWorkloadTest, AMessageShorterThanItsLatencyMeetsNothing) {
  // A hundredth of 519.
  EXPECT_THAT(RunCorrected(Messages({1024, 1024}), Ring(2),
                           Only(CollectiveKind::kPointToPoint, 0.01), Options(2))
                  .finish_ns,
              ElementsAre(5, 5));
}

TEST(CorrectedWorkloadTest, OverheadsOfOneCommStreamAddUp) {
  Corrections corrections;
  corrections.overhead_ns = 5000;
  EXPECT_THAT(RunCorrected(Messages({kMiB, kMiB}), Ring(2), corrections).finish_ns,
              ElementsAre(2 * (5000 + kCrossingNs), 2 * (5000 + kCrossingNs)));
}

TEST(CorrectedWorkloadTest, TimesAreMultipliedByTheFactor) {
  const Workload workload = Messages({kMiB});
  const TransferFactor twice = [](const TransferTraits&) { return 2; };
  ASSERT_OK_AND_ASSIGN(const Workload corrected,
                       CorrectWorkload(workload, Ring(2), SystemWith({"ring"}), Congestion::kAware,
                                       Corrections(), twice));
  EXPECT_EQ(RunPlain(corrected, Ring(2)).makespan_ns(), 2 * kCrossingNs);
}

TEST(CorrectedWorkloadTest, WhatHasNoMeaningIsRefused) {
  Workload workload = Messages({kMiB});
  workload.ranks[0].Add(SendNode(9, 7, kMiB));
  EXPECT_THAT(CorrectWorkload(workload, Ring(2), SystemWith({"ring"}), Congestion::kAware,
                              Only(CollectiveKind::kPointToPoint, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("comm_dst 7 is no rank")));
}

TEST(CorrectedWorkloadTest, AKindWithoutCorrectionsWaitsForThoseThatHaveSome) {
  // The all-gather is of 128 MiB, from 520 + 10 ns on; then rank 0 sends over the link that it keeps
  // busy.
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllGather, 64 * kMiB));
  workload.ranks[0].Add(ComputeNode(2, 1000));
  workload.ranks[0].Add(SendNode(3, 1, kMiB), {2});
  workload.ranks[1].Add(ReceiveNode(3, 0, kMiB));
  const SimulationResult simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllGather, 2), Options(2));
  EXPECT_EQ(simulation.nodes[0].finish_ns, 2 * (1'250'000 + 520));
  EXPECT_EQ(simulation.nodes[2].finish_ns, 530 + 2'500'000 + kCrossingNs);
}

TEST(CorrectedWorkloadTest, KindsWithoutCorrectionsAmongThemselvesAreSimulated) {
  // A corrected all-gather, then two messages, one behind the other.
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllGather, kMiB));
  for (const int32_t tag : {2, 3}) {
    workload.ranks[0].Add(SendNode(tag, 1, kMiB, tag), {1});
    workload.ranks[1].Add(ReceiveNode(tag, 0, kMiB, tag), {1});
  }
  // The engine's all-gather: 20031, and 10 before and after it.
  const SimulationResult simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllGather, 2), Options(2));
  EXPECT_EQ(simulation.nodes[1].finish_ns, 2 * (kCrossingNs + 20) + kCrossingNs);
  EXPECT_EQ(simulation.nodes[2].finish_ns, 2 * (kCrossingNs + 20) + kCrossingNs + kSendingNs);
}

TEST(CorrectedWorkloadTest, WithNothingToCorrectItIsTheEngines) {
  const Workload workload = Messages({kMiB, 5 * kMiB, 7});
  const SimulationResult simulation =
      RunCorrected(workload, Ring(2), Only(CollectiveKind::kAllReduce, 2), Options(3));
  EXPECT_EQ(simulation.finish_ns, RunPlain(workload, Ring(2), Options(3)).finish_ns);
}

// With one algorithm for two dimensions, rows of ranks run each on its own. The two that come late
// do not keep the others waiting.
TEST(CorrectedWorkloadTest, CollectivesThatLeaveTheirMembersUntied) {
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
  const SimulationResult simulation = RunCorrected(workload, SquareMesh(), corrections);
  // Two messages of 512 KiB, 500 + 9765 each, and 10 before, between and after them: 20,560, and
  // three times that. The message: 2 x 20031.
  EXPECT_THAT(simulation.finish_ns,
              ElementsAre(61'680 + 40'062, 61'680 + 40'062, 1'061'680, 1'061'680));
}

TEST(CorrectedWorkloadTest, RefusesAlgorithmsThatWereNotMeasured) {
  Workload workload = EveryRank(2, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  workload.custom[static_cast<size_t>(CollectiveKind::kAllReduce)] =
      EveryRank(2, ComputeNode(1, 0)).ranks;
  EXPECT_THAT(CorrectWorkload(workload, Network({Dimension(BlockShape::kRing, 2)}),
                              SystemWith({"ring"}), Congestion::kAware, Corrections()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("custom collectives")));
}

TEST(CorrectedWorkloadTest, TimesBeyondAllBoundsAreCut) {
  // 2^42 bytes take 2^42 / 2^30 s on a link of 1 GiB/s, and a million times as long is 4.1e18 ns:
  // more than a simulated run may last.
  const NetworkConfig slow = Network({Dimension(BlockShape::kRing, 2, /*gibibytes_per_second=*/1)});
  EXPECT_EQ(
      RunCorrected(Messages({int64_t{1} << 42}), slow, Only(CollectiveKind::kPointToPoint, 1e6))
          .makespan_ns(),
      kMaxDurationNs);
}

}  // namespace
}  // namespace meridian
