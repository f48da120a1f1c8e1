#include "astra_bridge/cache/timing_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "astra_bridge/cache/sqlite_database.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

constexpr CacheMode kReadWrite = CacheMode::kReadWrite;
constexpr CacheMode kReadOnly = CacheMode::kReadOnly;

class TimingCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<TimingCache> Open(CacheMode mode) {
    absl::StatusOr<std::unique_ptr<TimingCache>> cache = TimingCache::Open(path_, mode);
    EXPECT_OK(cache);
    return cache.ok() ? *std::move(cache) : nullptr;
  }

  // Stores keys "key0".. with their number as the time.
  void Fill(int keys) {
    const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
    for (int i = 0; i < keys; ++i) cache->Store(Key(i), {i + 0.5});
  }

  // Long, so that a few hundred fill more than the first pages.
  static std::string Key(int i) { return absl::StrCat("key", i, std::string(100, '-')); }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.PathOf("timing.sqlite");
};

TEST_F(TimingCacheTest, WhatWasStoredIsFoundByTheSameKeyOnly) {
  const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
  EXPECT_EQ(cache->Find("a", 2), std::nullopt);
  cache->Store("a", {1.5, 1e300});
  EXPECT_THAT(cache->Find("a", 2), Optional(ElementsAre(1.5, 1e300)));
  EXPECT_EQ(cache->Find("b", 2), std::nullopt);
  EXPECT_EQ(cache->stats().hits, 1);
  EXPECT_EQ(cache->stats().misses, 2);
  EXPECT_EQ(cache->stats().stored, 1);
  EXPECT_THAT(cache->warnings(), IsEmpty());
}

TEST_F(TimingCacheTest, AnotherProcessFindsIt) {
  Open(kReadWrite)->Store("a", {7});
  EXPECT_THAT(Open(kReadOnly)->Find("a", 1), Optional(ElementsAre(7)));
  EXPECT_THAT(Open(kReadWrite)->Find("a", 1), Optional(ElementsAre(7)));
}

TEST_F(TimingCacheTest, ReadOnlyMakesAndChangesNothing) {
  {
    const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
    cache->Store("a", {7});
    EXPECT_EQ(cache->Find("a", 1), std::nullopt);
  }
  EXPECT_THAT(directory_.List(), IsEmpty());
  Fill(1);
  Open(kReadOnly)->Store("new", {7});
  EXPECT_EQ(Open(kReadOnly)->Find("new", 1), std::nullopt);
}

TEST_F(TimingCacheTest, ReadsInAFolderThatCannotBeWritten) {
  Fill(3);
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
  EXPECT_THAT(cache->Find(Key(2), 1), Optional(ElementsAre(2.5)));
  // Root may write everywhere.
  if (geteuid() != 0) {
    EXPECT_THAT(TimingCache::Open(directory_.PathOf("other.sqlite"), kReadWrite), Not(IsOk()));
  }
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(TimingCacheTest, AFileThatIsNoDatabaseIsMovedAsideAndBegunAnew) {
  directory_.Write("timing.sqlite", "these are somebody's notes, more than a header long");
  {
    const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
    EXPECT_EQ(cache->stats().rebuilds, 1);
    EXPECT_THAT(cache->warnings(), ElementsAre(HasSubstr("begun anew")));
    cache->Store("a", {7});
    EXPECT_THAT(cache->Find("a", 1), Optional(ElementsAre(7)));
  }
  EXPECT_THAT(directory_.Read("timing.sqlite.damaged"), HasSubstr("somebody's notes"));
  EXPECT_EQ(Open(kReadWrite)->stats().rebuilds, 0);
}

TEST_F(TimingCacheTest, ReadOnlyDoesWithoutADamagedFile) {
  directory_.Write("timing.sqlite", "these are somebody's notes, more than a header long");
  const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
  EXPECT_EQ(cache->Find("a", 1), std::nullopt);
  EXPECT_THAT(cache->warnings(), ElementsAre(HasSubstr("not used: ")));
  EXPECT_THAT(directory_.List(), ElementsAre("timing.sqlite"));
}

TEST_F(TimingCacheTest, ACutFileIsBegunAnewWhenTheDamageShows) {
  Fill(500);
  std::string bytes = directory_.Read("timing.sqlite");
  ASSERT_GT(bytes.size(), 40000u);
  directory_.Write("timing.sqlite", bytes.substr(0, 12288));
  const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
  for (int i = 0; i < 500; ++i) {
    EXPECT_THAT(cache->Find(Key(i), 1), AnyOf(std::nullopt, Optional(ElementsAre(i + 0.5))));
    cache->Store(Key(i), {i + 0.5});
  }
  EXPECT_EQ(cache->stats().rebuilds, 1);
  EXPECT_THAT(cache->Find(Key(499), 1), Optional(ElementsAre(499.5)));
}

TEST_F(TimingCacheTest, NoDamagedByteGivesAWrongTime) {
  Fill(300);
  const std::string whole = directory_.Read("timing.sqlite");
  for (size_t offset = 5000; offset < whole.size(); offset += 1013) {
    std::string damaged = whole;
    for (size_t i = offset; i < std::min(offset + 16, damaged.size()); ++i) damaged[i] ^= 0x55;
    directory_.Write("timing.sqlite", damaged);
    const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
    for (int i = 0; i < 300; ++i) {
      EXPECT_THAT(cache->Find(Key(i), 1), AnyOf(std::nullopt, Optional(ElementsAre(i + 0.5))));
    }
  }
}

TEST_F(TimingCacheTest, AChangedRowIsAMiss) {
  Fill(2);
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                         SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
    ASSERT_OK(database.Execute("UPDATE estimates SET ns = zeroblob(8)"));
  }
  const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
  EXPECT_EQ(cache->Find(Key(1), 1), std::nullopt);
  EXPECT_EQ(cache->stats().damaged_rows, 1);
  EXPECT_THAT(cache->warnings(), ElementsAre(HasSubstr("rows of the cache are damaged")));
  cache->Store(Key(1), {4});
  EXPECT_THAT(cache->Find(Key(1), 1), Optional(ElementsAre(4)));
}

TEST_F(TimingCacheTest, WhatIsNoTimeIsNotBelievedThoughItsChecksumFits) {
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const double kInfinity = std::numeric_limits<double>::infinity();
  for (const double ns : {kNan, kInfinity, -kInfinity, -1.0}) {
    Open(kReadWrite)->Store("a", {5, ns});
    const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
    EXPECT_EQ(cache->Find("a", 2), std::nullopt) << ns;
    EXPECT_EQ(cache->stats().damaged_rows, 1);
  }
}

TEST_F(TimingCacheTest, ADamagedSchemaIsMovedAsideAndBegunAnew) {
  for (const std::string damage :
       {"DROP TABLE estimates; CREATE TABLE other (x)",
        "ALTER TABLE estimates RENAME COLUMN ns TO nx",
        "CREATE TRIGGER t AFTER INSERT ON estimates BEGIN DELETE FROM estimates; END",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE estimates (key'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 99"}) {
    Fill(1);
    {
      ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                           SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
      ASSERT_OK(database.Execute(damage));
    }
    EXPECT_EQ(Open(kReadOnly)->Find(Key(0), 1), std::nullopt) << damage;
    const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
    EXPECT_EQ(cache->Find(Key(0), 1), std::nullopt) << damage;
    cache->Store("a", {7});
    EXPECT_THAT(cache->Find("a", 1), Optional(ElementsAre(7))) << damage;
    EXPECT_EQ(cache->stats().rebuilds, 1) << damage;
    EXPECT_THAT(directory_.List(), Contains("timing.sqlite.damaged"));
  }
}

// Somebody who holds what another needs for longer than people wait without a word.
class HeldLock {
 public:
  explicit HeldLock(std::function<void()> let_go)
      : thread_([let_go = std::move(let_go)] {
          absl::SleepFor(absl::Milliseconds(2500));
          let_go();
        }) {}
  ~HeldLock() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST_F(TimingCacheTest, SaysThatItWaitsForALock) {
  const int lock = open(absl::StrCat(path_, ".lock").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  ::testing::internal::CaptureStderr();
  {
    const HeldLock held([lock] { close(lock); });
    Open(kReadWrite);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            absl::StrCat("note: waiting for another process that uses ", path_, ".lock\n"));
}

TEST_F(TimingCacheTest, SaysThatItWaitsForAWriter) {
  const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
  ASSERT_OK_AND_ASSIGN(SqliteDatabase other,
                       SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
  ASSERT_OK(other.Execute("BEGIN IMMEDIATE"));
  ::testing::internal::CaptureStderr();
  {
    const HeldLock held([&other] { EXPECT_OK(other.Execute("COMMIT")); });
    cache->Store("a", {7});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            absl::StrCat("note: waiting for another process that uses ", path_, "\n"));
  EXPECT_EQ(cache->stats().stored, 1);
}

// Waits for half a minute, but not so for each time that is stored.
TEST_F(TimingCacheTest, AWriterThatNeverLetsGoIsWaitedForOnce) {
  const std::unique_ptr<TimingCache> cache = Open(kReadWrite);
  ASSERT_OK_AND_ASSIGN(SqliteDatabase other,
                       SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
  ASSERT_OK(other.Execute("BEGIN IMMEDIATE"));
  cache->Store("a", {7});
  const absl::Time waited = absl::Now();
  for (int i = 0; i < 1000; ++i) cache->Store("b", {8});
  EXPECT_LT(absl::Now() - waited, absl::Seconds(10));
  EXPECT_EQ(cache->stats().stored, 0);
  EXPECT_THAT(cache->warnings(), Contains(HasSubstr("the cache is no longer used")));
}

TEST_F(TimingCacheTest, AnotherNumberOfTimesIsAMiss) {
  Fill(1);
  EXPECT_EQ(Open(kReadWrite)->Find(Key(0), 2), std::nullopt);
}

TEST_F(TimingCacheTest, AnotherLayoutIsBegunAnew) {
  Fill(1);
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                         SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
    ASSERT_OK(database.Execute("PRAGMA user_version = 99"));
  }
  EXPECT_EQ(Open(kReadWrite)->stats().rebuilds, 1);
}

TEST_F(TimingCacheTest, ADatabaseOfAnotherProgramIsNotTouched) {
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                         SqliteDatabase::Open(path_, SqliteDatabase::Access::kReadWrite));
    ASSERT_OK(database.Execute("CREATE TABLE mail (body TEXT)"));
  }
  const std::string before = directory_.Read("timing.sqlite");
  for (CacheMode mode : {kReadWrite, kReadOnly}) {
    EXPECT_THAT(TimingCache::Open(path_, mode),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another program")));
  }
  EXPECT_EQ(directory_.Read("timing.sqlite"), before);
}

TEST_F(TimingCacheTest, AMissingFolderIsAnError) {
  EXPECT_THAT(TimingCache::Open(directory_.PathOf("missing/timing.sqlite"), kReadWrite),
              Not(IsOk()));
}

// Runs the body in a process of its own; returns its id.
template <typename Body>
pid_t InAProcess(Body body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  _exit(body() ? 0 : 1);
}

bool AllSucceed(const std::vector<pid_t>& processes) {
  bool good = true;
  for (pid_t pid : processes) {
    int status = 0;
    good = waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
  }
  return good;
}

TEST_F(TimingCacheTest, ProcessesShareTheFile) {
  constexpr int kProcesses = 8;
  constexpr int kKeys = 100;
  std::vector<pid_t> processes;
  for (int p = 0; p < kProcesses; ++p) {
    processes.push_back(InAProcess([&] {
      const auto cache = TimingCache::Open(path_, kReadWrite);
      if (!cache.ok()) return false;
      // Each begins elsewhere, so that they write different keys at the same time.
      for (int i = 0; i < kKeys; ++i) {
        const int key = (i + p * 13) % kKeys;
        const auto found = (*cache)->Find(Key(key), 1);
        if (found.has_value() && *found != std::vector<double>{key + 0.5}) return false;
        (*cache)->Store(Key(key), {key + 0.5});
      }
      return (*cache)->warnings().empty() && (*cache)->stats().stored == kKeys;
    }));
  }
  EXPECT_TRUE(AllSucceed(processes));
  const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
  for (int i = 0; i < kKeys; ++i)
    EXPECT_THAT(cache->Find(Key(i), 1), Optional(ElementsAre(i + 0.5)));
}

TEST_F(TimingCacheTest, ProcessesThatFindItDamagedBeginItAnewOnce) {
  Fill(500);
  std::string bytes = directory_.Read("timing.sqlite");
  directory_.Write("timing.sqlite", bytes.substr(0, 12288));
  std::vector<pid_t> processes;
  for (int p = 0; p < 6; ++p) {
    processes.push_back(InAProcess([&] {
      const auto cache = TimingCache::Open(path_, kReadWrite);
      if (!cache.ok()) return false;
      for (int i = 0; i < 500; ++i) {
        const auto found = (*cache)->Find(Key(i), 1);
        if (found.has_value() && *found != std::vector<double>{i + 0.5}) return false;
        (*cache)->Store(Key(i), {i + 0.5});
      }
      return true;
    }));
  }
  EXPECT_TRUE(AllSucceed(processes));
  const std::unique_ptr<TimingCache> cache = Open(kReadOnly);
  EXPECT_THAT(cache->Find(Key(499), 1), Optional(ElementsAre(499.5)));
  EXPECT_THAT(cache->warnings(), IsEmpty());
}

TEST(CacheModeTest, NamesOfModes) {
  EXPECT_EQ(CacheModeFromName("off"), CacheMode::kOff);
  EXPECT_EQ(CacheModeFromName("readonly"), kReadOnly);
  EXPECT_EQ(CacheModeFromName("readwrite"), kReadWrite);
  EXPECT_EQ(CacheModeFromName("on"), std::nullopt);
}

}  // namespace
}  // namespace meridian
