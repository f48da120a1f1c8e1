#include "xla_profiler/base/files/unfinished_files.h"

#include <unistd.h>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/temporary_directory.h"

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

TEST(UnfinishedFilesTest, AFolderGoesWithAllThatIsInItButNotWhatLinksLeadTo) {
  const TemporaryDirectory directory;
  const std::string kept = directory.Write("kept/file", "whole");
  // More than one read of the folder tells.
  for (int i = 0; i < 500; ++i) {
    directory.Write("work/a file with a rather long name " + std::to_string(i), "half");
  }
  directory.Write("work/deep/deeper/.hidden", "half");
  ASSERT_EQ(symlink(directory.PathOf("kept").c_str(), directory.PathOf("work/link").c_str()), 0);
  EXPECT_EXIT(
      {
        const UnfinishedFile folder(directory.PathOf("work/"));
        const UnfinishedFile missing(directory.PathOf("missing/"));
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(Exists(directory.PathOf("work")));
  EXPECT_TRUE(Exists(kept));
}

TEST(UnfinishedFilesTest, WithoutASlashAFolderStays) {
  const TemporaryDirectory directory;
  const std::string kept = directory.Write("kept/file", "whole");
  EXPECT_EXIT(
      {
        const UnfinishedFile file(directory.PathOf("kept"));
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(Exists(kept));
}

TEST(UnfinishedFilesTest, MoreThan4096AreRemovedTooAndPlacesAreUsedAgain) {
  const TemporaryDirectory directory;
  const std::string late = directory.Write(".late.tmp", "half");
  const std::string beyond = directory.Write(".beyond.tmp", "half");
  EXPECT_EXIT(
      {
        std::vector<std::unique_ptr<UnfinishedFile>> files;
        for (int i = 0; i < 10000; ++i) {
          files.push_back(std::make_unique<UnfinishedFile>(directory.PathOf(std::to_string(i))));
        }
        const UnfinishedFile last(beyond);
        files[1000] = nullptr;
        files[1000] = std::make_unique<UnfinishedFile>(late);
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_FALSE(Exists(late));
  EXPECT_FALSE(Exists(beyond));
}

TEST(UnfinishedFilesTest, ProcessesAreKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EXIT(
      {
        const pid_t leader = fork();
        if (leader == 0) {
          setpgid(0, 0);
          pause();
        }
        setpgid(leader, leader);
        const UnfinishedProcess process(leader);
        RemoveUnfinishedFiles();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  // Nobody holds the other end any more.
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace meridian
