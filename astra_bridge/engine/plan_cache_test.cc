#include "astra_bridge/engine/plan_cache.h"

#include "absl/status/status.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// A cache on a network, with the groups {0, 2, 4} and {1, 2, 3}.
class Fixture {
 public:
  Fixture(const NetworkConfig& network, Congestion congestion, const char* algorithm = "ring")
      : workload_(WithGroups(network.npus())),
        groups_(*GroupTable::Create(workload_)),
        topology_(network),
        system_(SystemWith({algorithm})),
        events_(network.npus()),
        network_(topology_, congestion, /*record_use=*/false, events_),
        cache(workload_, groups_, topology_, system_, network_) {}

 private:
  static Workload WithGroups(int32_t npus) {
    Workload workload = EveryRank(npus, ComputeNode(1, 0));
    workload.groups = {{1, {0, 2, 4}}, {2, {1, 2, 3}}};
    return workload;
  }

  const Workload workload_;
  const GroupTable groups_;
  const Topology topology_;
  const SystemConfig system_;
  EventQueue events_;
  LinkNetwork network_;

 public:
  PlanCache cache;
};

CollectiveShape AllReduce(int64_t bytes, uint32_t group = 0) {
  CollectiveShape shape;
  shape.bytes = bytes;
  shape.group = group;
  return shape;
}

bool HasShortCut(Fixture& fixture, const CollectiveShape& shape) {
  const absl::StatusOr<PlanCache::Entry*> entry = fixture.cache.Find(shape);
  EXPECT_OK(entry.status());
  return entry.ok() && fixture.cache.Lockstep(*entry).has_value();
}

TEST(PlanCacheTest, PlansOnce) {
  Fixture fixture(Network({Dimension(BlockShape::kRing, 6)}), Congestion::kAware);
  ASSERT_OK_AND_ASSIGN(PlanCache::Entry* const entry, fixture.cache.Find(AllReduce(4096)));
  ASSERT_OK_AND_ASSIGN(PlanCache::Entry* const again, fixture.cache.Find(AllReduce(4096)));
  ASSERT_OK_AND_ASSIGN(PlanCache::Entry* const other, fixture.cache.Find(AllReduce(8192)));
  EXPECT_EQ(entry, again);
  EXPECT_NE(entry, other);
  EXPECT_EQ(other->plan.chunk_bytes, 8192);
}

TEST(PlanCacheTest, ErrorsAreNotKept) {
  Fixture fixture(Network({Dimension(BlockShape::kRing, 6)}), Congestion::kAware,
                  "halvingDoubling");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(fixture.cache.Find(AllReduce(4096)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("power of two")));
  }
}

TEST(PlanCacheTest, ShortCutsAreForRingsWhoseStepsAreAlike) {
  const NetworkConfig ring = Network({Dimension(BlockShape::kRing, 6)});
  Fixture aware(ring, Congestion::kAware);
  EXPECT_TRUE(HasShortCut(aware, AllReduce(4096)));
  // From 4 back to 0, over 5, it is two links, like the others; but they share links.
  EXPECT_FALSE(HasShortCut(aware, AllReduce(4096, 1)));
  // From 3 back to 1 it is two, else one.
  EXPECT_FALSE(HasShortCut(aware, AllReduce(4096, 2)));
  Fixture unaware(ring, Congestion::kUnaware);
  EXPECT_TRUE(HasShortCut(unaware, AllReduce(4096, 1)));
  EXPECT_FALSE(HasShortCut(unaware, AllReduce(4096, 2)));
  Fixture behind_switch(Network({Dimension(BlockShape::kSwitch, 6)}), Congestion::kAware);
  EXPECT_TRUE(HasShortCut(behind_switch, AllReduce(4096, 1)));
  Fixture mesh(Network({Dimension(BlockShape::kMesh, 6)}), Congestion::kAware);
  EXPECT_FALSE(HasShortCut(mesh, AllReduce(4096)));
  Fixture direct(ring, Congestion::kAware, "direct");
  EXPECT_FALSE(HasShortCut(direct, AllReduce(4096)));
}

TEST(MemberAheadTest, GoesAroundWithinItsRing) {
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
