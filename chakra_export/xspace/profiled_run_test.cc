#include "chakra_export/xspace/profiled_run.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

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
