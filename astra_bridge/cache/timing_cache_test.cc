#include "astra_bridge/cache/timing_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TimingCacheTest : public ::testing::Test {
 protected:
  TimingCache Cache(const std::string& program = "1.0") {
    return TimingCache(FileSystem::Posix(), directory_.path(), program);
  }

  // Stores a time and returns the name of its file.
  std::string StoreOne(const std::string& key, double ns) {
    EXPECT_OK(Cache().Store(key, ns));
    const std::vector<std::string> names = directory_.List();
    EXPECT_THAT(names, SizeIs(1));
    return names[0];
  }

  const TemporaryDirectory directory_;
};

TEST_F(TimingCacheTest, WhatWasStoredIsFoundByTheSameKeyOnly) {
  TimingCache cache = Cache();
  EXPECT_EQ(cache.Find("a"), std::nullopt);
  EXPECT_OK(cache.Store("a", 1e300));
  EXPECT_EQ(cache.Find("a"), 1e300);
  EXPECT_EQ(cache.Find("b"), std::nullopt);
  EXPECT_EQ(cache.hits(), 1);
  EXPECT_OK(cache.Store("a", 2.5));
  EXPECT_EQ(cache.Find("a"), 2.5);
}

TEST_F(TimingCacheTest, AnotherProcessFindsIt) {
  EXPECT_OK(Cache().Store("a", 7));
  EXPECT_EQ(Cache().Find("a"), 7);
}

TEST_F(TimingCacheTest, WhatAnotherProgramStoredIsNotFound) {
  EXPECT_OK(Cache("1.0").Store("a", 7));
  EXPECT_EQ(Cache("1.1").Find("a"), std::nullopt);
  EXPECT_OK(Cache("1.1").Store("a", 8));
  EXPECT_EQ(Cache("1.0").Find("a"), 7);
}

TEST_F(TimingCacheTest, AFileOfAnotherKeyIsAMiss) {
  const std::string name = StoreOne("a", 7);
  const std::string file = directory_.Read(name);
  directory_.Write(name, file.substr(0, file.size() - 1) + "b");
  EXPECT_EQ(Cache().Find("a"), std::nullopt);
}

TEST_F(TimingCacheTest, NoDamagedByteGivesAWrongTime) {
  const std::string name = StoreOne("some key", 7);
  const std::string whole = directory_.Read(name);
  for (size_t offset = 0; offset < whole.size(); ++offset) {
    std::string damaged = whole;
    damaged[offset] ^= 0x55;
    directory_.Write(name, damaged);
    EXPECT_EQ(Cache().Find("some key"), std::nullopt) << offset;
    directory_.Write(name, whole.substr(0, offset));
    EXPECT_EQ(Cache().Find("some key"), std::nullopt) << offset;
  }
  // What is stored again is found again.
  StoreOne("some key", 8);
  EXPECT_EQ(Cache().Find("some key"), 8);
}

TEST_F(TimingCacheTest, WhatIsNoTimeIsNotBelievedThoughItsChecksumFits) {
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const double ns : {kNan, kInfinity, -kInfinity, -1.0}) {
    TimingCache cache = Cache();
    EXPECT_OK(cache.Store("a", ns));
    EXPECT_EQ(cache.Find("a"), std::nullopt) << ns;
  }
}

TEST_F(TimingCacheTest, WhatCannotBeWrittenIsAnError) {
  TimingCache cache(FileSystem::Posix(), directory_.PathOf("missing"), "1.0");
  EXPECT_THAT(cache.Store("a", 1).message(), HasSubstr(directory_.PathOf("missing")));
  EXPECT_EQ(cache.Find("a"), std::nullopt);
}

TEST_F(TimingCacheTest, AFailedWriteLeavesNothingBehind) {
  for (const Operation operation :
       {Operation::kCreateFile, Operation::kAppend, Operation::kClose, Operation::kRename}) {
    FaultyFileSystem faulty(FileSystem::Posix());
    faulty.Fail(operation, 1, absl::ResourceExhaustedError("disk full"));
    TimingCache cache(faulty, directory_.path(), "1.0");
    EXPECT_THAT(cache.Store("a", 1).message(), HasSubstr("disk full")) << operation;
    EXPECT_THAT(directory_.List(), IsEmpty()) << operation;
  }
}

TEST_F(TimingCacheTest, ProcessesShareTheFolder) {
  constexpr int kProcesses = 8;
  constexpr int kKeys = 100;
  std::vector<pid_t> processes;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t pid = fork();
    if (pid != 0) {
      processes.push_back(pid);
      continue;
    }
    TimingCache cache = Cache();
    bool good = true;
    // Each begins elsewhere, so that they write different keys at the same time.
    for (int i = 0; i < kKeys; ++i) {
      const int key = (i + p * 13) % kKeys;
      const auto found = cache.Find(absl::StrCat("key", key));
      good = good && (!found.has_value() || *found == key + 0.5);
      good = good && cache.Store(absl::StrCat("key", key), key + 0.5).ok();
    }
    _exit(good ? 0 : 1);
  }
  for (const pid_t pid : processes) {
    int status = 0;
    EXPECT_TRUE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_THAT(directory_.List(), SizeIs(kKeys));
}

}  // namespace
}  // namespace meridian
