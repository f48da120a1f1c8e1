#include "xla_profiler/util/unfinished_files.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "xla_profiler/util/testing/temporary_directory.h"

namespace meridian {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Removing is the last thing that a process does: each case does it in a child.
TEST(UnfinishedFilesTest, OnlyWhatIsRegisteredIsRemoved) {
  const TemporaryDirectory directory;
  const std::string registered = directory.Write(".a.tmp", "half");
  const std::string finished = directory.Write("b", "whole");
  EXPECT_EXIT(
      {
        { const UnfinishedFile done(finished); }
        const UnfinishedFile missing(directory.PathOf(".c.tmp"));
        const UnfinishedFile file(registered);
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(Exists(registered));
  EXPECT_TRUE(Exists(finished));
}

TEST(UnfinishedFilesTest, SlotsAreUsedAgainAndTooManyAreNoError) {
  const TemporaryDirectory directory;
  const std::string late = directory.Write(".late.tmp", "half");
  const std::string beyond = directory.Write(".beyond.tmp", "half");
  EXPECT_EXIT(
      {
        std::vector<std::unique_ptr<UnfinishedFile>> files;
        for (int i = 0; i < 4096; ++i) {
          files.push_back(std::make_unique<UnfinishedFile>(directory.PathOf(std::to_string(i))));
        }
        const UnfinishedFile not_registered(beyond);
        files[1000] = nullptr;
        files[1000] = std::make_unique<UnfinishedFile>(late);
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(Exists(late));
  EXPECT_TRUE(Exists(beyond));
}

}  // namespace
}  // namespace meridian
