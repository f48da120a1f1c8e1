#include "astra_bridge/corrections/isolated_transfers.h"

#include <algorithm>
#include <random>
#include <vector>

#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

constexpr int64_t kMiB = 1 << 20;
// What 1 MiB takes on a link of 50 GiB/s and 500 ns.
constexpr int64_t kCrossingNs = 20031;

TEST(IsolatedTransfersTest, NothingElseIsThere) {
  // Two messages over the same link, and two groups across each other.
  Workload workload;
  workload.ranks.resize(4);
  workload.groups = {{1, {0, 2}}, {2, {1, 3}}};
  workload.ranks[0].Add(SendNode(1, 1, kMiB));
  workload.ranks[0].Add(SendNode(2, 1, kMiB));
  for (int32_t rank = 0; rank < 4; ++rank) {
    workload.ranks[rank].Add(
        CollectiveNode(9, CollectiveKind::kAllGather, kMiB, rank % 2 == 0 ? 1 : 2));
  }
  const NetworkConfig network = Network({Dimension(BlockShape::kRing, 4)});
  const SystemConfig system = SystemWith({"ring"});
  IsolatedTransfers isolated(workload, network, system, Congestion::kAware);
  for (const uint32_t node : {0, 1}) {
    ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> message_ns,
                         isolated.PartsNs({{/*rank=*/0, node, 0}}));
    EXPECT_THAT(message_ns, ElementsAre(kCrossingNs));
  }
  // Each sends the other 1 MiB over two links, once it is prepared (10 ns).
  ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> first_ns,
                       isolated.PartsNs({{0, 2, 0}, {2, 0, 0}}));
  EXPECT_THAT(first_ns, ElementsAre(2 * kCrossingNs + 20, 2 * kCrossingNs + 20));
  ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> second_ns,
                       isolated.PartsNs({{1, 0, 0}, {3, 0, 0}}));
  EXPECT_EQ(first_ns, second_ns);
}

TEST(IsolatedTransfersTest, ShapesAreKeptApart) {
  Workload workload;
  workload.ranks.resize(4);
  workload.ranks[0].Add(SendNode(1, 1, kMiB));
  workload.ranks[0].Add(SendNode(2, 2, kMiB));
  workload.ranks[0].Add(SendNode(3, 1, 2 * kMiB));
  const NetworkConfig network = Network({Dimension(BlockShape::kRing, 4)});
  const SystemConfig system = SystemWith({"ring"});
  IsolatedTransfers isolated(workload, network, system, Congestion::kAware);
  const int64_t expected_ns[] = {kCrossingNs, 2 * kCrossingNs, 500 + 39062};
  for (uint32_t node = 0; node < 3; ++node) {
    ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> message_ns,
                         isolated.PartsNs({{/*rank=*/0, node, 0}}));
    EXPECT_THAT(message_ns, ElementsAre(expected_ns[node]));
  }
}

// Double binary trees take turns. With one chunk each, the second of two all-reduces has the other
// tree than the first: members that were done early are late.
TEST(IsolatedTransfersTest, TreesAreThoseOfTheRun) {
  Workload workload;
  workload.ranks.resize(8);
  for (RankWorkload& rank : workload.ranks) {
    rank.Add(CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
    rank.Add(ComputeNode(2, 1'000'000));
    rank.Add(CollectiveNode(3, CollectiveKind::kAllReduce, kMiB), {1, 2});
  }
  const NetworkConfig network =
      Network({Dimension(BlockShape::kRing, 4), Dimension(BlockShape::kSwitch, 2)});
  SystemConfig system = SystemWith({"doubleBinaryTree", "ring"});
  system.collective_optimization = CollectiveOptimization::kBaseline;
  for (const int32_t chunks : {1, 4}) {
    system.preferred_dataset_splits = chunks;
    SimulationOptions options;
    options.transfers = true;
    ASSERT_OK_AND_ASSIGN(const SimulationResult result,
                         Simulate(workload, network, system, options));
    IsolatedTransfers isolated(workload, network, system, Congestion::kAware);
    std::vector<std::vector<int64_t>> transfers_ns;
    for (const Transfer& transfer : result.transfers.transfers()) {
      const absl::Span<const TransferPart> parts = result.transfers.parts(transfer);
      std::vector<int64_t>& run_ns = transfers_ns.emplace_back();
      for (const TransferPart& part : parts) run_ns.push_back(part.end_ns - transfer.begin_ns);
      ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> parts_ns,
                           isolated.PartsNs(parts, transfer.odd_trees));
      EXPECT_THAT(parts_ns, ElementsAreArray(run_ns)) << chunks;
    }
    ASSERT_THAT(transfers_ns, SizeIs(2));
    // An even number of chunks begins with the same tree every time.
    EXPECT_EQ(transfers_ns[0] == transfers_ns[1], chunks % 2 == 0);
  }
}

// Groups of random ranks, moved about, and a message between two of them: each in turn is the one
// that is simulated.
TEST(IsolatedTransfersTest, MovingAllRanksAlikeChangesNothing) {
  std::mt19937 random(3);
  const auto pick = [&](int32_t below) { return static_cast<int32_t>(random() % below); };
  constexpr BlockShape kShapes[] = {BlockShape::kRing, BlockShape::kMesh, BlockShape::kSwitch,
                                    BlockShape::kFullyConnected};
  constexpr CollectiveKind kOps[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
  for (int round = 0; round < 200; ++round) {
    constexpr int32_t kSide = 6;
    const NetworkConfig network = Network(
        {Dimension(kShapes[pick(4)], kSide, 50), Dimension(kShapes[pick(4)], kSide, 20, 700)});
    // Within a square of half the side, at two places.
    std::vector<int32_t> ranks;
    for (int32_t i = 0; i < 9; ++i) ranks.push_back(i % 3 + kSide * (i / 3));
    std::shuffle(ranks.begin(), ranks.end(), random);
    ranks.resize(2 + pick(5));
    const int32_t moved_by = pick(4) + kSide * pick(4);
    Workload workload;
    workload.ranks.resize(network.npus());
    const CollectiveKind op = kOps[pick(4)];
    const int64_t bytes = 1 + pick(1 << 20);
    std::vector<std::vector<TransferPart>> transfers(4);
    for (const int32_t group : {0, 1}) {
      for (const int32_t rank : ranks) {
        const int32_t member = rank + group * moved_by;
        workload.groups[group + 1].push_back(member);
        transfers[group].push_back(
            {member, static_cast<uint32_t>(workload.ranks[member].nodes().size()), 0});
        workload.ranks[member].Add(CollectiveNode(group, op, bytes, group + 1));
      }
      const int32_t sender = ranks[0] + group * moved_by;
      transfers[2 + group] = {
          {sender, static_cast<uint32_t>(workload.ranks[sender].nodes().size()), 0}};
      workload.ranks[sender].Add(SendNode(2, ranks[1] + group * moved_by, bytes));
    }
    const SystemConfig system = SystemWith({pick(2) == 0 ? "ring" : "direct"});
    IsolatedTransfers both(workload, network, system, Congestion::kAware);
    for (const size_t first : {0, 2}) {
      ASSERT_OK(both.PartsNs(transfers[first]));
      ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> moved_ns,
                           both.PartsNs(transfers[first + 1]));
      IsolatedTransfers one(workload, network, system, Congestion::kAware);
      ASSERT_OK_AND_ASSIGN(const absl::Span<const int64_t> own_ns,
                           one.PartsNs(transfers[first + 1]));
      EXPECT_EQ(moved_ns, own_ns) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace meridian
