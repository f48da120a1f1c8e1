#include "astra_bridge/engine/ring_lockstep.h"

#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

// All-reduce of 1 MiB among 4 with 50 GiB/s, 500 ns and reductions at 1600 GB/s: AstraSim's
// documentation of itself is one run, 33829 cycles.
CollectivePlan AllReducePlan(int32_t chunks) {
  CollectivePlan plan;
  plan.chunks = chunks;
  plan.chunk_bytes = 1 << 20;
  CollectivePhase phase;
  phase.size = 4;
  phase.stride = 1;
  phase.endpoint_delay_ns = 10;
  phase.messages = 6;
  phase.message_bytes = 1 << 18;
  phase.reduced_run = 3;
  plan.phases.push_back(phase);
  return plan;
}

// 262144 / 53.6870912 = 4882.8125.
constexpr RingStep kUnaware = {0, 5382, 0};
constexpr RingStep kOneLink = {1, 5382, 4882};
constexpr RingStep kTwoLinks = {2, 5382, 4882};

TEST(RingLockstepTest, OneChunkTakesWhatTheFormulaSays) {
  for (const RingStep& step : {kUnaware, kOneLink}) {
    const std::optional<LockstepResult> result =
        RunRingInLockstep(AllReducePlan(1), step, 1, /*local_memory_bandwidth=*/1600);
    ASSERT_TRUE(result.has_value());
    // 10 + 6 * (5382 + 10) + 3 * 489.
    EXPECT_EQ(result->duration_ns, 33829);
    // Six messages turn the order of four members by two.
    EXPECT_EQ(result->turn, 2);
  }
}

TEST(RingLockstepTest, LinksInARowForwardWholeMessages) {
  const std::optional<LockstepResult> result = RunRingInLockstep(AllReducePlan(1), kTwoLinks, 1, 0);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->duration_ns, 10 + 6 * (2 * 5382 + 10));
  EXPECT_EQ(result->turn, 2);
}

TEST(RingLockstepTest, ChunksFollowEachOther) {
  const std::optional<LockstepResult> result =
      RunRingInLockstep(AllReducePlan(5), kUnaware, 2, 1600);
  ASSERT_TRUE(result.has_value());
  // Two at a time without congestion: three rounds.
  EXPECT_EQ(result->duration_ns, 3 * 33829);
}

TEST(RingLockstepTest, ChunksShareALink) {
  const std::optional<LockstepResult> result = RunRingInLockstep(AllReducePlan(2), kOneLink, 2, 0);
  ASSERT_TRUE(result.has_value());
  // Per step the second chunk waits 4882 ns for the link. The first, back after 5382 + 10, finds it
  // busy with the second's until 2 * 4882, so that each step takes 2 * 4882; the last message of
  // the second chunk is through 5382 later, and 10 more.
  EXPECT_EQ(result->duration_ns, 10 + 11 * 4882 + 5382 + 10);
}

TEST(RingLockstepTest, DeclinesWhereMembersMayDiffer) {
  // Without latency a message arrives when its link is free again: whether a member first takes the
  // message or first sends on depends on its neighbours.
  constexpr RingStep kNoLatency = {1, 4882, 4882};
  EXPECT_FALSE(RunRingInLockstep(AllReducePlan(2), kNoLatency, 2, 0).has_value());
}

// Whether an all-reduce of 4 KiB has a short cut: of all ranks, or of the groups {0, 2, 4} and
// {1, 2, 3}.
bool HasShortCut(const NetworkConfig& config, Congestion congestion, uint32_t group,
                 const char* algorithm = "ring") {
  Workload workload = EveryRank(config.npus(), ComputeNode(1, 0));
  workload.groups = {{1, {0, 2, 4}}, {2, {1, 2, 3}}};
  const absl::StatusOr<GroupTable> groups = GroupTable::Create(workload);
  EXPECT_OK(groups.status());
  const Topology topology(config);
  const SystemConfig system = SystemWith({algorithm});
  EventQueue events(config.npus());
  const LinkNetwork network(topology, congestion, events);
  CollectiveRequest request;
  request.bytes = 4096;
  request.group_size = group == 0 ? 0 : 3;
  request.algorithms = system.algorithms_of(request.op);
  const absl::StatusOr<CollectivePlan> plan = PlanCollective(request, topology, system);
  EXPECT_OK(plan.status());
  return RunInLockstep(*plan, *groups, group, topology, network, system).has_value();
}

TEST(RingLockstepTest, ShortCutsAreForRingsWhoseStepsAreAlike) {
  const NetworkConfig ring = Network({Dimension(BlockShape::kRing, 6)});
  EXPECT_TRUE(HasShortCut(ring, Congestion::kAware, 0));
  // From 4 back to 0, over 5, it is two links, like the others; but they share links.
  EXPECT_FALSE(HasShortCut(ring, Congestion::kAware, 1));
  // From 3 back to 1 it is two, else one.
  EXPECT_FALSE(HasShortCut(ring, Congestion::kAware, 2));
  EXPECT_TRUE(HasShortCut(ring, Congestion::kUnaware, 1));
  EXPECT_FALSE(HasShortCut(ring, Congestion::kUnaware, 2));
  EXPECT_TRUE(HasShortCut(Network({Dimension(BlockShape::kSwitch, 6)}), Congestion::kAware, 1));
  EXPECT_FALSE(HasShortCut(Network({Dimension(BlockShape::kMesh, 6)}), Congestion::kAware, 0));
  EXPECT_FALSE(HasShortCut(ring, Congestion::kAware, 0, "direct"));
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
