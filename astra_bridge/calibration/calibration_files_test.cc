#include "astra_bridge/calibration/calibration_files.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST_F(CalibrationFilesTest, WhatIsKnownOfItsOwnNetworkIsNotOfAnother) {
  directory_.Write("network.yml",
                   "topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 8 ]\nlatency: [ 500 ]\n");
  directory_.Write("system.json", R"({"preferred-dataset-splits": 1})");
  directory_.Write("corrections.json",
                   R"({"overhead_ns": 70, "all-reduce": [{"bytes": 1, "ratio": 2}]})");
  directory_.Write("calibration.json", R"({
      "prediction_errors": [{"from_bytes": 0, "factor": 1.5, "factor_per_doubling": 2,
                             "mean_over_median": 1}],
      "factor_below_sizes": 1, "factor_above_sizes": 1, "factor_of_other_kinds": 2})");
  FileSystem& posix = FileSystem::Posix();
  CalibrationFiles files = FilesOfCalibration(directory_.PathOf(""));
  ASSERT_OK_AND_ASSIGN(const NamedNetwork own, ReadNetwork(posix, files));
  EXPECT_TRUE(own.is_corrected);
  EXPECT_TRUE(own.is_measured);
  EXPECT_FALSE(own.intervals.empty());
  EXPECT_THAT(own.notes, IsEmpty());
  // Links are multiples of the calibrated one: 1 GiB/s, and half of twice 500 ns.
  const std::string star = directory_.Write(
      "star.yml",
      "topology: [ Links ]\nnpus_count: [ 4 ]\nlinks: { shape: star, bandwidth: 0.125x }\n");
  ASSERT_OK_AND_ASSIGN(const CalibrationFiles on_links,
                       NamedCalibration(posix, directory_.PathOf(""), {star}));
  ASSERT_OK_AND_ASSIGN(const NamedNetwork other, ReadNetwork(posix, on_links));
  EXPECT_FALSE(other.is_measured);
  EXPECT_TRUE(other.intervals.empty());
  EXPECT_EQ(other.calibration.fabric.network.links[0].bytes_per_ns,
            GibibytesPerSecondToBytesPerNs(1));
  EXPECT_EQ(other.calibration.fabric.network.links[0].latency_ns, 500);
  EXPECT_EQ(other.calibration.corrections.overhead_ns, 70);
  EXPECT_THAT(other.calibration.corrections.points[0], IsEmpty());
  EXPECT_THAT(other.notes, ElementsAre(HasSubstr("not its ratios")));
  files.corrections.clear();
  ASSERT_OK_AND_ASSIGN(const NamedNetwork uncorrected, ReadNetwork(posix, files));
  EXPECT_FALSE(uncorrected.is_measured);
  EXPECT_TRUE(uncorrected.intervals.empty());
}

TEST_F(CalibrationFilesTest, WhatIsNoCalibrationIsRefused) {
  EXPECT_THAT(ReadNetwork(FileSystem::Posix(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no network is given")));
  directory_.Write("network.yml",
                   "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 8 ]\nlatency: [ 500 ]\n");
  directory_.Write("system.json", R"({"preferred-dataset-splits": 1})");
  directory_.Write("corrections.json", "{}");
  const CalibrationFiles files = FilesOfCalibration(directory_.PathOf(""));
  directory_.Write("calibration.json", R"({"prediction_errors": [{"factor": 0}]})");
  EXPECT_THAT(ReadNetwork(FileSystem::Posix(), files),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("calibration.json"), HasSubstr("no factor from 1"))));
  directory_.Write("calibration.json", "{}");
  EXPECT_THAT(ReadNetwork(FileSystem::Posix(), files),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing was fitted")));
}

}  // namespace
}  // namespace meridian
