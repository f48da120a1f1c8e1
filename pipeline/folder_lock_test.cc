#include "pipeline/folder_lock.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

TEST(FolderLockTest, OneAtATimeAndNothingStaysEmpty) {
  const TemporaryDirectory directory;
  const std::string folder = directory.PathOf("new");
  {
    ASSERT_OK_AND_ASSIGN(const auto first, FolderLock::Take(FileSystem::Posix(), folder));
    EXPECT_EQ(FolderLock::Take(FileSystem::Posix(), folder).status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_FALSE(FileSystem::Posix().Kind(folder).ok());
  ASSERT_OK(FolderLock::Take(FileSystem::Posix(), folder));
}

}  // namespace
}  // namespace meridian
