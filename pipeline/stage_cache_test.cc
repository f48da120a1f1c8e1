#include "pipeline/stage_cache.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

TEST(StageCacheTest, WhatDidNotChangeIsFoundAgain) {
  const TemporaryDirectory directory;
  const std::string input = directory.Write("in", "abc");
  const std::string output = directory.Write("out", "made");
  StageCache cache(FileSystem::Posix(), directory.PathOf("stages"), /*force=*/false);
  ASSERT_OK_AND_ASSIGN(const std::string key, cache.KeyOf("path", "flags", {input}));
  EXPECT_FALSE(cache.Find("path", key).has_value());
  StageRecord record;
  record.set_key(key);
  record.mutable_report()->set_title("a run");
  record.add_outputs()->set_path(output);
  ASSERT_OK(cache.Store("path", record));
  const std::optional<StageRecord> found = cache.Find("path", key);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->report().title(), "a run");
  // Another stage, other options, other content.
  StageCache later(FileSystem::Posix(), directory.PathOf("stages"), false);
  EXPECT_FALSE(later.Find("chakra", key).has_value());
  ASSERT_OK_AND_ASSIGN(const std::string other_options, later.KeyOf("path", "more", {input}));
  EXPECT_NE(other_options, key);
  directory.Write("in", "abd");
  StageCache changed(FileSystem::Posix(), directory.PathOf("stages"), false);
  ASSERT_OK_AND_ASSIGN(const std::string other_content, changed.KeyOf("path", "flags", {input}));
  EXPECT_NE(other_content, key);
  // An output that is not what it was.
  directory.Write("out", "cut");
  EXPECT_FALSE(later.Find("path", key).has_value());
  directory.Write("out", "made");
  EXPECT_TRUE(later.Find("path", key).has_value());
  EXPECT_FALSE(StageCache(FileSystem::Posix(), directory.PathOf("stages"), true)
                   .Find("path", key)
                   .has_value());
  // A record that is none.
  directory.Write("stages/path.json", "{");
  EXPECT_FALSE(later.Find("path", key).has_value());
}

TEST(StageCacheTest, WhatWasMadeOfOtherInputsIsRemoved) {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  const std::string made = directory.Write("chakra/job.0.et", "made");
  const std::string other = elsewhere.Write("other", "not ours");
  const StageCache cache(FileSystem::Posix(), directory.PathOf("stages"), /*force=*/false);
  StageRecord record;
  record.set_key("a");
  for (const std::string& path :
       {made, other, directory.PathOf("chakra/../../" + elsewhere.PathOf("other"))}) {
    record.add_outputs()->set_path(path);
  }
  directory.Write("stages/chakra.json", ReportToJson(record));
  cache.RemoveStale("chakra", "a");
  EXPECT_EQ(directory.Read("chakra/job.0.et"), "made");
  cache.RemoveStale("chakra", "b");
  EXPECT_FALSE(FileSystem::Posix().Kind(made).ok());
  EXPECT_FALSE(FileSystem::Posix().Kind(directory.PathOf("stages/chakra.json")).ok());
  EXPECT_EQ(elsewhere.Read("other"), "not ours");
}

}  // namespace
}  // namespace meridian
