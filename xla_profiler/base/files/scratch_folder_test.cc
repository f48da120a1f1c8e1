#include "xla_profiler/base/files/scratch_folder.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(ScratchFolderTest, IsFreshAndLeavesNothing) {
  const TemporaryDirectory directory;
  {
    ASSERT_OK_AND_ASSIGN(ScratchFolder first, ScratchFolder::Create(directory.path(), "test"));
    ASSERT_OK_AND_ASSIGN(const ScratchFolder second,
                         ScratchFolder::Create(directory.path(), "test"));
    EXPECT_THAT(directory.List(), SizeIs(2));
    EXPECT_THAT(directory.List(), Each(StartsWith("meridian-test-")));
    ASSERT_OK(FileSystem::Posix().CreateDirectories(first.path() + "/log/deeper"));
    const std::string path = first.path();
    const ScratchFolder moved = std::move(first);
    EXPECT_EQ(moved.path(), path);
  }
  EXPECT_THAT(directory.List(), IsEmpty());
}

TEST(ScratchFolderTest, LeavesNothingWhenTheProcessIsInterrupted) {
  const TemporaryDirectory directory;
  const auto be_interrupted = [&] {
    absl::StatusOr<ScratchFolder> folder = ScratchFolder::Create(directory.path(), "test");
    if (!folder.ok()) return 1;
    const ScratchFolder moved = *std::move(folder);
    if (!FileSystem::Posix().CreateDirectories(moved.path() + "/log/deeper").ok()) return 2;
    RemoveUnfinishedFiles();
    _exit(0);
  };
  EXPECT_EXIT(_exit(be_interrupted()), ::testing::ExitedWithCode(0), "");
  EXPECT_THAT(directory.List(), IsEmpty());
}

TEST(ScratchFolderTest, AMissingParentIsNamed) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ScratchFolder::Create(directory.PathOf("missing"), "test"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
}

}  // namespace
}  // namespace meridian
