#include "astra_bridge/engine/ring_lockstep.h"

#include <cstdint>
#include <optional>

#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

// How long the short cut says that an all-reduce lasts: of all ranks, or of the groups {0, 2, 4} and
// {1, 2, 3}.
std::optional<int64_t> ShortCutNs(const NetworkConfig& config, Congestion congestion,
                                  const SystemConfig& system, int64_t bytes, uint32_t group = 0) {
  Workload workload = EveryRank(config.npus(), ComputeNode(1, 0));
  if (config.npus() > 4) workload.groups = {{1, {0, 2, 4}}, {2, {1, 2, 3}}};
  const absl::StatusOr<GroupTable> groups = GroupTable::Create(workload);
  EXPECT_OK(groups.status());
  const Topology topology(config);
  EventQueue events(config.npus());
  const LinkNetwork network(topology, congestion, events);
  CollectiveRequest request;
  request.bytes = bytes;
  request.group_size = group == 0 ? 0 : 3;
  request.algorithms = system.algorithms_of(request.op);
  const absl::StatusOr<CollectivePlan> plan = PlanCollective(request, topology, system);
  EXPECT_OK(plan.status());
  return OrderFreeDurationNs(*plan, *groups, group, topology, network, system);
}

// All-reduce of 1 MiB among 4 with 50 GiB/s, 500 ns and reductions at 1600 GB/s: AstraSim's
// documentation of itself is one run, 33829 cycles. 262144 / 53.6870912 = 4882.8125.
TEST(RingLockstepTest, OneChunkTakesWhatTheFormulaSays) {
  SystemConfig system = SystemWith({"ring"});
  system.local_memory_bandwidth = 1600;
  const NetworkConfig ring = Network({Dimension(BlockShape::kRing, 4)});
  // 10 + 6 * (5382 + 10) + 3 * 489.
  EXPECT_EQ(ShortCutNs(ring, Congestion::kAware, system, 1 << 20), 33829);
  EXPECT_EQ(ShortCutNs(ring, Congestion::kUnaware, system, 1 << 20), 33829);
  // Two at a time without congestion: three rounds.
  system.preferred_dataset_splits = 5;
  system.active_chunks_per_dimension = 2;
  EXPECT_EQ(ShortCutNs(ring, Congestion::kUnaware, system, 5 << 20), 3 * 33829);
}

TEST(RingLockstepTest, LinksInARowForwardWholeMessages) {
  const NetworkConfig network = Network({Dimension(BlockShape::kSwitch, 4)});
  EXPECT_EQ(ShortCutNs(network, Congestion::kAware, SystemWith({"ring"}), 1 << 20),
            10 + 6 * (2 * 5382 + 10));
}

TEST(RingLockstepTest, ShortCutsAreForMembersWhoseStepsAreAlike) {
  const auto has_short_cut = [](const NetworkConfig& network, Congestion congestion, uint32_t group,
                                const char* algorithm = "ring") {
    return ShortCutNs(network, congestion, SystemWith({algorithm}), 4096, group).has_value();
  };
  const NetworkConfig ring = Network({Dimension(BlockShape::kRing, 6)});
  EXPECT_TRUE(has_short_cut(ring, Congestion::kAware, 0));
  // From 4 back to 0, over 5, it is two links, like the others; but they share links.
  EXPECT_FALSE(has_short_cut(ring, Congestion::kAware, 1));
  // From 3 back to 1 it is two, else one.
  EXPECT_FALSE(has_short_cut(ring, Congestion::kAware, 2));
  EXPECT_TRUE(has_short_cut(ring, Congestion::kUnaware, 1));
  EXPECT_FALSE(has_short_cut(ring, Congestion::kUnaware, 2));
  const NetworkConfig connected = Network({Dimension(BlockShape::kFullyConnected, 6)});
  EXPECT_TRUE(has_short_cut(connected, Congestion::kAware, 1));
  EXPECT_FALSE(has_short_cut(Network({Dimension(BlockShape::kMesh, 6)}), Congestion::kAware, 0));
  EXPECT_FALSE(has_short_cut(ring, Congestion::kAware, 0, "direct"));
}

TEST(RingLockstepTest, TheMemberAheadIsInTheSameRing) {
  CollectivePhase phase;
  phase.size = 4;
  phase.stride = 2;
  // Ranks 1, 3, 5, 7.
  EXPECT_EQ(MemberAhead(phase, 5, 1), 7);
  EXPECT_EQ(MemberAhead(phase, 7, 1), 1);
  EXPECT_EQ(MemberAhead(phase, 1, -3), 3);
  EXPECT_EQ(MemberAhead(phase, 3, 9), 5);
}

}  // namespace
}  // namespace meridian
