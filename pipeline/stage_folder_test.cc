#include "pipeline/stage_folder.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

class StageFolderTest : public testing::Test {
 protected:
  // Opens the folder anew, as the next command does.
  StageFolder& Open(bool force = false) {
    folder_.reset();
    auto opened = StageFolder::Open(FileSystem::Posix(), directory_.path(), force);
    EXPECT_OK(opened);
    folder_ = *std::move(opened);
    return *folder_;
  }

  std::string KeyOf(const std::string& options) {
    const absl::StatusOr<std::string> key =
        Open().KeyOf("path", options, {directory_.PathOf("in")});
    EXPECT_OK(key);
    return key.value_or("");
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<StageFolder> folder_;
};

TEST_F(StageFolderTest, WhatDidNotChangeIsFoundAgain) {
  directory_.Write("in", "abc");
  const std::string output = directory_.Write("out", "made");
  const std::string key = KeyOf("flags");
  EXPECT_FALSE(folder_->Find("path", key).has_value());
  StageRecord record;
  record.set_key(key);
  record.mutable_report()->set_title("a run");
  record.add_outputs()->set_path(output);
  ASSERT_OK(folder_->Store("path", record));
  const std::optional<StageRecord> found = folder_->Find("path", key);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->report().title(), "a run");
  // Another stage, other options, other content.
  EXPECT_FALSE(Open().Find("chakra", key).has_value());
  EXPECT_NE(KeyOf("more"), key);
  directory_.Write("in", "abd");
  EXPECT_NE(KeyOf("flags"), key);
  // An output that is not what it was.
  directory_.Write("out", "cut");
  EXPECT_FALSE(folder_->Find("path", key).has_value());
  directory_.Write("out", "made");
  EXPECT_TRUE(folder_->Find("path", key).has_value());
  EXPECT_FALSE(Open(/*force=*/true).Find("path", key).has_value());
  // A record that is none.
  directory_.Write("stages/path.json", "{");
  EXPECT_FALSE(Open().Find("path", key).has_value());
}

TEST_F(StageFolderTest, WhatWasMadeOfOtherInputsIsRemoved) {
  const TemporaryDirectory elsewhere;
  const std::string made = directory_.Write("chakra/job.0.et", "made");
  const std::string other = elsewhere.Write("other", "not ours");
  StageRecord record;
  record.set_key("a");
  for (const std::string& path :
       {made, other, directory_.PathOf("chakra/../../" + elsewhere.PathOf("other"))}) {
    record.add_outputs()->set_path(path);
  }
  directory_.Write("stages/chakra.json", ReportToJson(record));
  Open().RemoveStale("chakra", "a");
  EXPECT_EQ(directory_.Read("chakra/job.0.et"), "made");
  folder_->RemoveStale("chakra", "b");
  EXPECT_FALSE(FileSystem::Posix().Kind(made).ok());
  EXPECT_FALSE(FileSystem::Posix().Kind(directory_.PathOf("stages/chakra.json")).ok());
  EXPECT_EQ(elsewhere.Read("other"), "not ours");
}

TEST_F(StageFolderTest, OneAtATimeAndNothingStaysEmpty) {
  const std::string folder = directory_.PathOf("new");
  {
    ASSERT_OK_AND_ASSIGN(const auto first, StageFolder::Open(FileSystem::Posix(), folder, false));
    EXPECT_EQ(StageFolder::Open(FileSystem::Posix(), folder, false).status().code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_FALSE(FileSystem::Posix().Kind(folder).ok());
}

}  // namespace
}  // namespace meridian
