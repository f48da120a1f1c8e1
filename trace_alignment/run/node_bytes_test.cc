#include "trace_alignment/run/node_bytes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProfileCollectives Unpacked(CollectivesPacker* packer, ProfileCollectives profile) {
  PackedBytes packed;
  CollectivesPacker().Pack(packed, profile);
  PackedBytes bytes(packed.bytes());
  ProfileCollectives unpacked;
  packer->Pack(bytes, unpacked);
  EXPECT_OK(bytes.Finish());
  return unpacked;
}

TEST(NodeBytesTest, CollectivesComeBackAndEqualGroupsAreKeptOnce) {
  ProfileCollectives profile;
  profile.trace = "node0";
  profile.ops.resize(3);
  profile.ops[0].groups = {{0, 2, 4}, {1, 3, 5, 9}};
  profile.ops[0].program_fingerprint = absl::MakeUint128(1, 2);
  profile.ops[1].pairs = {{3, 1}};
  profile.ops[2].groups = {{0, 2, 4}, {1, 3, 5, 9}};
  profile.events.resize(1);
  profile.events[0].run_id = -7;
  profile.events[0].start_ps = 1000;
  profile.events[0].end_ps = 900;
  profile.assigned_devices = {0, 1, 2, 3, 4, 5, 9};
  CollectivesPacker packer;
  const ProfileCollectives first = Unpacked(&packer, profile);
  EXPECT_EQ(first.trace, "node0");
  ASSERT_EQ(first.ops.size(), 3);
  EXPECT_EQ(first.ops[0].groups, profile.ops[0].groups);
  EXPECT_EQ(first.ops[0].program_fingerprint, absl::MakeUint128(1, 2));
  EXPECT_TRUE(first.ops[1].groups.empty());
  EXPECT_EQ(first.ops[1].pairs, profile.ops[1].pairs);
  ASSERT_EQ(first.events.size(), 1);
  EXPECT_EQ(first.events[0].run_id, -7);
  EXPECT_EQ(first.events[0].step, std::nullopt);
  EXPECT_EQ(first.events[0].end_ps, 900);
  EXPECT_THAT(first.assigned_devices, ElementsAre(0, 1, 2, 3, 4, 5, 9));
  EXPECT_EQ(first.ops[0].groups.ids().data(), first.ops[2].groups.ids().data());

  const ProfileCollectives second = Unpacked(&packer, profile);
  EXPECT_EQ(first.ops[0].groups.ids().data(), second.ops[0].groups.ids().data());
  EXPECT_THAT(second.assigned_devices, IsEmpty());
}

// The end slopes of an inverted map are not those that its knots alone would give.
TEST(NodeBytesTest, ClocksMapAsBefore) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       ClockMap::Create({{0, 5}, {1000, 1010}, {kEndSlopeSpanPs, 3}},
                                        ClockMap::OnDisorder::kRepair));
  AlignedNode node(RunClock(77));
  node.stated.set_method("offsets");
  node.stated.set_drift_ppm(0.1);
  node.clock.host_to_reference = map;
  node.clock.reference_to_target = map.Inverted();
  PackedBytes packed;
  packed(node);
  PackedBytes bytes(packed.bytes());
  AlignedNode unpacked(RunClock(0));
  bytes(unpacked);
  EXPECT_OK(bytes.Finish());
  EXPECT_EQ(unpacked.clock.run.base_ns(), 77);
  EXPECT_EQ(unpacked.stated.method(), "offsets");
  EXPECT_EQ(unpacked.stated.drift_ppm(), 0.1);
  EXPECT_FALSE(unpacked.stated.has_offset_ns());
  EXPECT_FALSE(unpacked.clock.tracer_to_host.has_value());
  EXPECT_EQ(unpacked.clock.host_to_reference->knots_repaired(), map.knots_repaired());
  for (const int64_t time_ps : {-5000000, 0, 500, 1010, 7000000}) {
    EXPECT_EQ(unpacked.clock.host_to_reference->Forward(time_ps), map.Forward(time_ps));
    EXPECT_EQ(unpacked.clock.reference_to_target->Forward(time_ps),
              map.Inverted().Forward(time_ps));
  }
}

}  // namespace
}  // namespace meridian
