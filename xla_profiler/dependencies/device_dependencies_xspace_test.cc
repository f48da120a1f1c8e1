#include "xla_profiler/dependencies/device_dependencies_xspace.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/events/event_table_xspace.h"
#include "xla_profiler/testing/dependency_text.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Profile {
  EventTable table;
  DeviceDependencies found;
};

absl::StatusOr<Profile> Read(const XSpaceReader& reader) {
  XSpaceTableOptions options;
  options.profile_start_ns = 0;
  ASSIGN_OR_RETURN(XSpaceTable loaded, LoadXSpace(reader, options));
  ASSIGN_OR_RETURN(DeviceDependencies found, FindXSpaceDependencies(reader, loaded.table));
  return Profile{std::move(loaded.table), std::move(found)};
}

// Two devices with one kernel each on a stream 7, and calls on the line of a thread.
class SpaceBuilder {
 public:
  SpaceBuilder() {
    AddKernel("/device:GPU:0", "a0", 1);
    AddKernel("/device:GPU:1", "a1", 2);
    AddCall("cuLaunchKernel", 0, "correlation_id", 1);
    AddCall("cuLaunchKernel", 20, "correlation_id", 2);
  }

  // Adds a call of 10 ps with two stats.
  template <typename Value>
  void AddCall(absl::string_view name, int64_t start_ps, absl::string_view stat, Value value,
               std::optional<int64_t> device_id = std::nullopt) {
    XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space_, kHostThreadsPlaneName));
    XLineBuilder line = plane.GetOrCreateLine(42);
    line.SetName("Host Threads/42");
    XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan(start_ps, 10));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(stat), value);
    if (device_id.has_value()) {
      event.AddStatValue(*plane.GetOrCreateStatMetadata("device_id"), *device_id);
    }
  }

  absl::StatusOr<Profile> ReadProfile() const {
    const std::string bytes = space_.SerializeAsString();
    ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
    return Read(reader);
  }

 private:
  void AddKernel(absl::string_view plane_name, absl::string_view name, int64_t correlation) {
    XPlaneBuilder plane(FindOrAddMutablePlaneWithName(&space_, plane_name));
    XLineBuilder line = plane.GetOrCreateLine(7);
    line.SetName("Stream #7(Kernel)");
    XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan(100, 50));
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kCorrelationId), correlation);
  }

  XSpaceProto space_;
};

TEST(DeviceDependenciesXSpaceTest, CallsThatTellTheirStreamAreResolved) {
  SpaceBuilder space;
  space.AddCall("cuStreamSynchronize", 200, "stream", 7, 0);
  space.AddCall("hipStreamSynchronize", 300, "stream", "7", 1);
  space.AddCall("cuCtxSynchronize", 400, "context_id", "$$1", 1);
  ASSERT_OK_AND_ASSIGN(const Profile profile, space.ReadProfile());
  EXPECT_THAT(EdgeTexts(profile.table, profile.found, DeviceDependencyKind::kLaunch),
              ElementsAre("launch: cuLaunchKernel -> a0", "launch: cuLaunchKernel -> a1"));
  EXPECT_THAT(EdgeTexts(profile.table, profile.found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: a0 -> cuStreamSynchronize",
                          "stream sync: a1 -> hipStreamSynchronize"));
  EXPECT_THAT(EdgeTexts(profile.table, profile.found, DeviceDependencyKind::kDeviceSync),
              ElementsAre("device sync: a1 -> cuCtxSynchronize"));
  EXPECT_THAT(EdgeTexts(profile.table, profile.found, DeviceDependencyKind::kStreamOrder),
              IsEmpty());
  EXPECT_THAT(UnresolvedTexts(profile.found), IsEmpty());
}

TEST(DeviceDependenciesXSpaceTest, OtherCallsAreCounted) {
  SpaceBuilder space;
  space.AddCall("cuEventRecord", 200, "correlation_id", 3, 0);
  space.AddCall("cuStreamWaitEvent", 220, "correlation_id", 4, 0);
  space.AddCall("cuEventSynchronize", 240, "correlation_id", 5, 0);
  space.AddCall("cuStreamSynchronize", 260, "stream", "default", 0);
  space.AddCall("cuCtxSynchronize", 280, "correlation_id", 6);
  ASSERT_OK_AND_ASSIGN(const Profile profile, space.ReadProfile());
  EXPECT_THAT(EdgeCounts(profile.found), ElementsAre("launch: 2"));
  EXPECT_THAT(UnresolvedTexts(profile.found),
              ElementsAre("event wait, record unknown: 1", "event sync, record unknown: 1",
                          "stream sync, stream unknown: 1", "device sync, device unknown: 1"));
}

TEST(DeviceDependenciesXSpaceTest, DependenciesOfASyntheticRun) {
  SyntheticRunOptions options;
  options.steps = 2;
  const std::string bytes = SyntheticRun(options)[0].SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "rank0.pb"));
  ASSERT_OK_AND_ASSIGN(const Profile profile, Read(reader));
  // Two kernels a step, one after the other.
  EXPECT_THAT(EdgeCounts(profile.found), ElementsAre("launch: 4", "stream order: 3"));
  EXPECT_THAT(UnresolvedTexts(profile.found), IsEmpty());
}

TEST(DeviceDependenciesXSpaceTest, EveryPieceOfWorkOfARealRunHasItsLaunch) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string path = absl::StrCat(*shared, "/traces/jax_tp_cuda4/rank", rank, ".xplane.pb");
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::Open(FileSystem::Posix(), path));
    ASSERT_OK_AND_ASSIGN(const Profile profile, Read(reader));
    EXPECT_EQ(profile.found.num_work, 1452);
    EXPECT_EQ(EdgeTexts(profile.table, profile.found, DeviceDependencyKind::kLaunch).size(), 1452);
    EXPECT_THAT(UnresolvedTexts(profile.found), IsEmpty());
  }
}

TEST(DeviceDependenciesXSpaceTest, CountsOfRealFiles) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const auto read = [&](const char* path) {
    absl::StatusOr<XSpaceReader> reader =
        XSpaceReader::Open(FileSystem::Posix(), absl::StrCat(*shared, path));
    EXPECT_OK(reader);
    absl::StatusOr<Profile> profile = Read(*reader);
    EXPECT_OK(profile);
    return *std::move(profile);
  };
  // Counted with a few lines of Python: 16 launches return late, 423 kernels of CUDA graphs
  // overlap.
  const DeviceDependencies cuda = read("/traces/jax_tp_cuda4/rank0.xplane.pb").found;
  EXPECT_EQ(cuda.started_before_return, 16);
  EXPECT_EQ(cuda.overlapping, 423);
  // 235 kernels on 11 streams.
  const DeviceDependencies rocm = read("/samples/xplane/rocm_mi300_jax08_conv.xplane.pb").found;
  EXPECT_THAT(EdgeCounts(rocm), ElementsAre("launch: 235", "stream order: 224"));
  EXPECT_THAT(UnresolvedTexts(rocm), ElementsAre("event wait, record unknown: 2"));
  // TPUs and CPUs have no streams.
  EXPECT_THAT(read("/samples/xplane/tpu_inference_2.xplane.pb").found.edges, IsEmpty());
  EXPECT_THAT(read("/traces/jax_cpu4/rank0.xplane.pb").found.edges, IsEmpty());
}

TEST(DeviceDependenciesXSpaceTest, EdgesOfAllRealFilesAreInOrderAndRunForward) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::Open(FileSystem::Posix(), path));
    ASSERT_OK_AND_ASSIGN(const Profile profile, Read(reader));
    EXPECT_EQ(FindBadEdge(profile.table, profile.found), "");
  }
}

}  // namespace
}  // namespace meridian
