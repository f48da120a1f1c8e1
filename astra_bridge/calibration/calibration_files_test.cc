#include "astra_bridge/calibration/calibration_files.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CalibrationFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"network.yml", "system.json", "corrections.json", "calibration.json"}) {
      directory_.Write(name, "x");
    }
  }

  const TemporaryDirectory directory_;
};

TEST_F(CalibrationFilesTest, AFolderHasAllFilesAndFlagsReplaceThem) {
  ASSERT_OK_AND_ASSIGN(const CalibrationFiles files,
                       NamedCalibration(FileSystem::Posix(), directory_.PathOf(""), {"other.yml"}));
  EXPECT_EQ(files.network, "other.yml");
  EXPECT_EQ(files.calibrated_network, directory_.PathOf("network.yml"));
  EXPECT_EQ(files.system, directory_.PathOf("system.json"));
  EXPECT_EQ(files.corrections, directory_.PathOf("corrections.json"));
  EXPECT_EQ(files.report, directory_.PathOf("calibration.json"));
}

TEST_F(CalibrationFilesTest, AFileIsTheReport) {
  const std::string report = directory_.PathOf("calibration.json");
  ASSERT_OK_AND_ASSIGN(const CalibrationFiles files,
                       NamedCalibration(FileSystem::Posix(), report, {}));
  EXPECT_EQ(files.report, report);
  EXPECT_EQ(files.network, "");
}

TEST_F(CalibrationFilesTest, WhatAFolderLacksIsNamed) {
  const TemporaryDirectory empty;
  EXPECT_THAT(NamedCalibration(FileSystem::Posix(), empty.PathOf(""), {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("network.yml")));
  EXPECT_THAT(NamedCalibration(FileSystem::Posix(), empty.PathOf("missing"), {}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CalibrationFilesTest, ListsHaveOneForAllOrOneForEach) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<CalibrationFiles> files,
      NamedCalibrations(FileSystem::Posix(), directory_.PathOf(""), {"/a.yml,/b.yml", "", "", ""}));
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].network, "/a.yml");
  EXPECT_EQ(files[1].network, "/b.yml");
  EXPECT_EQ(files[1].system, directory_.PathOf("system.json"));
  EXPECT_EQ(files[1].name, "/b.yml");
  // What differs makes the name.
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationFiles> systems,
                       NamedCalibrations(FileSystem::Posix(), "", {"/a.yml", "/s,/t"}));
  EXPECT_EQ(systems[1].name, "/t");
  EXPECT_EQ(systems[1].network, "/a.yml");
  EXPECT_THAT(
      NamedCalibrations(FileSystem::Posix(), "", {"/a,,/c"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing between two commas")));
  EXPECT_THAT(NamedCalibrations(FileSystem::Posix(), directory_.PathOf("calibration.json"), {"/a"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a file")));
  EXPECT_THAT(NamedCalibrations(FileSystem::Posix(), "", {"/a,/b,/c", "/s,/t"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--system names 2")));
  EXPECT_THAT(NamedCalibrations(FileSystem::Posix(), "", {}), IsOkAndHolds(SizeIs(1)));
}

TEST_F(CalibrationFilesTest, IntervalsAreThoseOfItsOwnNetworkAndCorrections) {
  directory_.Write("calibration.json", R"({
      "prediction_errors": [{"from_bytes": 0, "factor": 1.5, "factor_per_doubling": 2,
                             "mean_over_median": 1}],
      "factor_below_sizes": 1, "factor_above_sizes": 1, "factor_of_other_kinds": 2})");
  CalibrationFiles files = FilesOfCalibration(directory_.PathOf(""));
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals own, ReadIntervals(FileSystem::Posix(), files));
  EXPECT_FALSE(own.empty());
  files.calibrated_network = "cal/network.yml";
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals other, ReadIntervals(FileSystem::Posix(), files));
  EXPECT_TRUE(other.empty());
  files = FilesOfCalibration(directory_.PathOf(""));
  files.corrections.clear();
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals uncorrected,
                       ReadIntervals(FileSystem::Posix(), files));
  EXPECT_TRUE(uncorrected.empty());
  directory_.Write("calibration.json", R"({"prediction_errors": [{"factor": 0}]})");
  EXPECT_THAT(ReadIntervals(FileSystem::Posix(), FilesOfCalibration(directory_.PathOf(""))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("calibration.json"), HasSubstr("no factor from 1"))));
}

}  // namespace
}  // namespace meridian
