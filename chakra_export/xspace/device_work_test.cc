#include "chakra_export/xspace/device_work.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

std::unique_ptr<ProfileWork> Read(const std::string& bytes) {
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "profile");
  EXPECT_THAT(reader, IsOk());
  absl::StatusOr<std::unique_ptr<ProfileWork>> profile = ReadDeviceWork(*std::move(reader));
  EXPECT_THAT(profile, IsOk());
  return *std::move(profile);
}

TEST(DeviceWorkTest, KernelsKnowTheirInstructionExecutionAndLaunch) {
  const SyntheticRunOptions run;
  const std::string bytes = SyntheticRun(run)[1].SerializeAsString();
  const std::unique_ptr<ProfileWork> profile = Read(bytes);
  ASSERT_EQ(profile->devices.size(), 1);
  EXPECT_EQ(profile->devices[0].name, "/device:GPU:0");
  ASSERT_EQ(profile->devices[0].work.size(), 6);
  const DeviceWork& fusion = profile->devices[0].work[0];
  EXPECT_EQ(fusion.name, "loop_add_fusion");
  EXPECT_EQ(fusion.stream, 14);
  EXPECT_EQ(fusion.module, "jit_step");
  ASSERT_NE(fusion.instruction, nullptr);
  EXPECT_EQ(fusion.collective, nullptr);
  EXPECT_EQ(fusion.run_id, SyntheticRunId(0));
  ASSERT_TRUE(fusion.launch_ps.has_value());
  EXPECT_LE(*fusion.launch_ps, fusion.start_ps);
  // Rank 1 computes for 110 us.
  EXPECT_EQ(fusion.end_ps - fusion.start_ps, 110000000);
  const DeviceWork& all_reduce = profile->devices[0].work[5];
  ASSERT_NE(all_reduce.collective, nullptr);
  EXPECT_EQ(all_reduce.instruction->name(), "all-reduce.2");
  EXPECT_EQ(all_reduce.run_id, SyntheticRunId(2));
  EXPECT_EQ(profile->base_ns + all_reduce.start_ps / 1000, TrueAllReduce(run, 1, 2).start_ns);
  EXPECT_TRUE(profile->dropped.empty());
}

TEST(DeviceWorkTest, EventsThatCannotBeTimedAreCounted) {
  XSpaceProto space = SyntheticRun({})[0];
  for (auto& plane : *space.mutable_planes()) {
    if (plane.name() != "/device:GPU:0") continue;
    plane.mutable_lines(0)->mutable_events(0)->set_duration_ps(-1);
    plane.mutable_lines(0)->mutable_events(1)->set_num_occurrences(3);
  }
  const std::string bytes = space.SerializeAsString();
  const std::unique_ptr<ProfileWork> profile = Read(bytes);
  EXPECT_EQ(profile->devices[0].work.size(), 4);
  EXPECT_EQ(profile->dropped["times that cannot be true"], 1);
  EXPECT_EQ(profile->dropped["aggregated event without a start"], 1);
}

}  // namespace
}  // namespace meridian
