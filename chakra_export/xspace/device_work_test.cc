#include "chakra_export/xspace/device_work.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chakra_export/xspace/testing/device_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

std::unique_ptr<ProfileWork> Read(const std::string& bytes) {
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "profile");
  EXPECT_THAT(reader, IsOk());
  absl::StatusOr<std::unique_ptr<ProfileWork>> profile =
      ReadDeviceWork(*std::move(reader), std::nullopt, FileSystem::Posix(),
                     InputFileOptions().temporary_directory);
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
  EXPECT_EQ(fusion.op->name, "loop_add_fusion");
  EXPECT_EQ(fusion.op->stream, 14);
  EXPECT_EQ(fusion.op->module, "jit_step");
  ASSERT_NE(fusion.op->instruction, nullptr);
  EXPECT_EQ(fusion.op->collective, nullptr);
  EXPECT_EQ(fusion.run_id, SyntheticRunId(0));
  ASSERT_NE(fusion.call, nullptr);
  EXPECT_LE(fusion.call->start_ps, fusion.start_ps);
  // Rank 1 computes for 110 us.
  EXPECT_EQ(fusion.end_ps - fusion.start_ps, 110000000);
  const DeviceWork& all_reduce = profile->devices[0].work[5];
  ASSERT_NE(all_reduce.op->collective, nullptr);
  EXPECT_EQ(all_reduce.op->instruction->name(), "all-reduce.2");
  EXPECT_EQ(all_reduce.run_id, SyntheticRunId(2));
  EXPECT_EQ(profile->base_ns + all_reduce.start_ps / 1000, TrueAllReduce(run, 1, 2).start_ns);
  EXPECT_TRUE(profile->dropped.empty());
  EXPECT_EQ(profile->ops.size(), 2) << "one for all steps";
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

TEST(DeviceWorkTest, CopiesMoveBytesThatAreKnownOrZero) {
  const auto copied_bytes = [](const std::string& size) {
    const std::string bytes =
        GpuProfile(0, PartitionedProgram(1),
                   {{7, 10, {{"MemcpyH2D", "", 14, 100000, 101000, "kind_src:pinned" + size}}}})
            .SerializeAsString();
    return Read(bytes)->devices[0].work[0].op->copied_bytes;
  };
  EXPECT_EQ(copied_bytes(" kind_dst:device size:4096 dest:0"), 4096);
  for (const char* size : {"", " size:", " size:-5", " size:x", " size:99999999999999999999"}) {
    EXPECT_EQ(copied_bytes(size), 0) << size;
  }
}

// Long vectors are in files, where few elements stay in memory.
TEST(DeviceWorkTest, WorkOfLongProfilesKnowsTheSameCalls) {
  SyntheticRunOptions run;
  run.steps = 4000;
  const std::string bytes = SyntheticRun(run)[1].SerializeAsString();
  const std::unique_ptr<ProfileWork> profile = Read(bytes);
  ASSERT_EQ(profile->devices.size(), 1);
  const absl::Span<const HostCall> calls = profile->calls.view();
  const absl::Span<const DeviceWork> work = profile->devices[0].work.view();
  ASSERT_EQ(calls.size(), 8000);
  ASSERT_EQ(work.size(), 8000);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < work.size(); ++i) {
      EXPECT_EQ(work[i].call, &calls[i]);
      EXPECT_LE(work[i].LaunchPs(), work[i].start_ps);
      EXPECT_EQ(work[i].op->name, i % 2 == 0 ? work[0].op->name : work[1].op->name);
      EXPECT_EQ(work[i].step, static_cast<int64_t>(1000 + i / 2));
    }
    profile->Forget();
  }
}

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(ProfiledRunTest, WorkAndCollectivesAreOfTheSameProfiles) {
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  for (const XSpaceProto& profile : SyntheticRun({})) {
    traces.push_back(directory.Write("rank" + std::to_string(traces.size()) + ".xplane.pb",
                                     profile.SerializeAsString()));
  }
  std::vector<size_t> read;
  ProfiledRunOptions options;
  options.progress = [&](size_t file) { read.push_back(file); };
  const absl::StatusOr<ProfiledRun> run = ReadProfiledRun(FileSystem::Posix(), traces, options);
  ASSERT_THAT(run, IsOk());
  EXPECT_THAT(read, ElementsAre(0, 1));
  ASSERT_EQ(run->profiles.size(), 2);
  ASSERT_EQ(run->collectives.profiles.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(run->profiles[i]->reader.name(), traces[i]);
    EXPECT_EQ(run->collectives.profiles[i].trace, traces[i]);
  }
  EXPECT_EQ(run->collectives.table.instances().size(), 3);
}

TEST(ProfiledRunTest, DamagedFilesAreNamed) {
  const TemporaryDirectory directory;
  const std::string broken = directory.Write("broken.xplane.pb", "no profile");
  const absl::Status status = ReadProfiledRun(FileSystem::Posix(), {broken}).status();
  EXPECT_THAT(std::string(status.message()), StartsWith(broken));
}

}  // namespace
}  // namespace meridian
