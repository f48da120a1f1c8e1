#include "astra_bridge/calibration/calibrated_range.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

CalibrationReport ReportOfTwoSizes() {
  CalibrationReport report;
  for (int64_t bytes : {1024, 65536}) {
    CalibratedCell* cell = report.add_cells();
    cell->set_kind("all-reduce");
    cell->set_bytes(bytes);
    cell->set_group_size(4);
    cell->set_largest_hop(1);
    cell->set_fitted(true);
  }
  CalibratedCell* permute = report.add_cells();
  permute->set_kind("p2p");
  permute->set_group_size(2);
  permute->set_pairs(4);
  permute->set_largest_hop(1);
  permute->set_bytes(1024);
  permute->set_fitted(true);
  CalibratedCell* held_out = report.add_cells();
  held_out->set_kind("all-gather");
  return report;
}

TransferCell Cell(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = 4;
  cell.participants = std::move(participants);
  return cell;
}

std::vector<std::string> Beyond(const CalibratedRange& range, const TransferCell& cell) {
  return range.Beyond(cell, {"GPU"});
}

TEST(CalibratedRangeTest, TellsWhatIsExtrapolated) {
  ASSERT_OK_AND_ASSIGN(const CalibratedRange range, RangeOf(ReportOfTwoSizes()));
  EXPECT_THAT(Beyond(range, Cell(CollectiveKind::kAllReduce, 4096, {0, 1, 2, 3})), IsEmpty());
  EXPECT_THAT(Beyond(range, Cell(CollectiveKind::kAllReduce, 512, {0, 1, 2, 3})),
              ElementsAre("size outside the calibration"));
  EXPECT_THAT(Beyond(range, Cell(CollectiveKind::kAllReduce, 65537, {0, 1})),
              ElementsAre("size outside the calibration", "group size not in the calibration"));
  TransferCell permute = Cell(CollectiveKind::kPointToPoint, 1024, {2, 3});
  permute.pairs = 4;
  EXPECT_THAT(Beyond(range, permute), IsEmpty());
  permute.pairs = 2;
  EXPECT_THAT(Beyond(range, permute),
              ElementsAre("number of pairs at once not in the calibration"));
  EXPECT_THAT(Beyond(range, Cell(CollectiveKind::kAllGather, 4096, {0, 1, 2, 3})),
              ElementsAre("kind not in the calibration"));
}

// A ring passes the data of {0,2} on through rank 1, so that it takes twice as long as {0,1}.
TEST(CalibratedRangeTest, TellsMembersFurtherApart) {
  CalibrationReport report = ReportOfTwoSizes();
  report.mutable_cells(1)->set_group_size(2);
  ASSERT_OK_AND_ASSIGN(const CalibratedRange neighbours, RangeOf(report));
  EXPECT_THAT(Beyond(neighbours, Cell(CollectiveKind::kAllReduce, 4096, {2, 3})), IsEmpty());
  EXPECT_THAT(Beyond(neighbours, Cell(CollectiveKind::kAllReduce, 4096, {3, 0})), IsEmpty());
  EXPECT_THAT(Beyond(neighbours, Cell(CollectiveKind::kAllReduce, 4096, {1, 3})),
              ElementsAre("members further apart than in the calibration"));
  report.mutable_cells(1)->set_largest_hop(2);
  ASSERT_OK_AND_ASSIGN(const CalibratedRange two_apart, RangeOf(report));
  EXPECT_THAT(Beyond(two_apart, Cell(CollectiveKind::kAllReduce, 4096, {1, 3})), IsEmpty());
}

TEST(CalibratedRangeTest, TellsOtherDevices) {
  CalibrationReport report = ReportOfTwoSizes();
  const TransferCell cell = Cell(CollectiveKind::kAllReduce, 4096, {0, 1, 2, 3});
  ASSERT_OK_AND_ASSIGN(const CalibratedRange unknown, RangeOf(report));
  EXPECT_THAT(unknown.Beyond(cell, {"CPU"}), IsEmpty());
  report.add_runs()->add_device_kinds("GPU");
  ASSERT_OK_AND_ASSIGN(const CalibratedRange range, RangeOf(report));
  EXPECT_THAT(range.Beyond(cell, {"GPU"}), IsEmpty());
  EXPECT_THAT(range.Beyond(cell, {"CPU", "GPU"}), ElementsAre("on CPU and GPU, calibrated on GPU"));
}

TEST(CalibratedRangeTest, TellsOtherProtocolsWhereBothAreNamed) {
  CalibrationReport report = ReportOfTwoSizes();
  report.mutable_cells(0)->set_protocol("TREE_LL");
  report.mutable_cells(1)->set_protocol("RING_LL");
  ASSERT_OK_AND_ASSIGN(const CalibratedRange range, RangeOf(report));
  const auto beyond = [&](int64_t bytes, const std::string& protocol) {
    TransferCell cell = Cell(CollectiveKind::kAllReduce, bytes, {0, 1, 2, 3});
    cell.protocol = protocol;
    return Beyond(range, cell);
  };
  const auto is_other = ElementsAre("another protocol than in the calibration");
  EXPECT_THAT(beyond(1024, "TREE_LL"), IsEmpty());
  EXPECT_THAT(beyond(1024, "RING_LL"), is_other);
  EXPECT_THAT(beyond(1024, ""), IsEmpty());
  // Either may be right between the two.
  EXPECT_THAT(beyond(4096, "TREE_LL"), IsEmpty());
  EXPECT_THAT(beyond(4096, "RING_LL"), IsEmpty());
  EXPECT_THAT(beyond(4096, "NVLS_SIMPLE"), is_other);
  EXPECT_THAT(beyond(65536, "TREE_LL"), is_other);
  TransferCell permute = Cell(CollectiveKind::kPointToPoint, 1024, {0, 1});
  permute.pairs = 4;
  permute.protocol = "TREE_LL";
  EXPECT_THAT(Beyond(range, permute), IsEmpty());
}

TEST(CalibratedRangeTest, ReportsAreReadAsTheyAreWritten) {
  ASSERT_OK_AND_ASSIGN(const CalibrationReport report,
                       ParseCalibrationReport(ReportToJson(ReportOfTwoSizes()), "r.json"));
  EXPECT_EQ(report.cells_size(), 4);
  EXPECT_EQ(report.cells(1).bytes(), 65536);
}

TEST(CalibratedRangeTest, WhatIsNoReportIsNamed) {
  for (const char* json : {"", "{", "[]", R"({"cells":[{"bytes":"many"}]})", "\xff"}) {
    const absl::Status status = ParseCalibrationReport(json, "r.json").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << json;
    const std::string message(status.message());
    EXPECT_THAT(message, StartsWith("r.json: this is no report of astra_calibrate, or one of "
                                    "another version; give the file that astra_calibrate --report "
                                    "has written ("));
    EXPECT_THAT(message, AllOf(EndsWith(")"), Not(EndsWith("()")), Not(HasSubstr("INVALID"))));
    EXPECT_EQ(message, Printable(message));
  }
  EXPECT_THAT(
      std::string(
          ParseCalibrationReport(R"({"cells":[{"bytes":"many"}]})", "r.json").status().message()),
      AllOf(HasSubstr("bytes"), HasSubstr("many")));
  CalibrationReport wrong = ReportOfTwoSizes();
  wrong.mutable_cells(0)->set_kind("gossip");
  EXPECT_TRUE(absl::IsInvalidArgument(RangeOf(wrong).status()));
}

// Anything would be "not in the calibration".
TEST(CalibratedRangeTest, ReportsInWhichNothingWasFittedAreRefused) {
  ASSERT_OK_AND_ASSIGN(const CalibrationReport empty, ParseCalibrationReport("{}", "r.json"));
  CalibrationReport held_out = ReportOfTwoSizes();
  for (CalibratedCell& cell : *held_out.mutable_cells()) cell.set_fitted(false);
  for (const CalibrationReport& report : {empty, held_out}) {
    const absl::Status status = RangeOf(report).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("nothing was fitted"), HasSubstr("astra_calibrate --report")));
  }
}

TEST(CalibratedRangeTest, ReportsWithoutGroupSizesAreToBeWrittenAnew) {
  CalibrationReport without_sizes = ReportOfTwoSizes();
  without_sizes.mutable_cells(0)->clear_group_size();
  EXPECT_THAT(std::string(RangeOf(without_sizes).status().message()),
              HasSubstr("anew with astra_calibrate"));
  without_sizes = ReportOfTwoSizes();
  without_sizes.mutable_cells(2)->clear_pairs();
  EXPECT_THAT(std::string(RangeOf(without_sizes).status().message()), HasSubstr("how many pairs"));
  without_sizes = ReportOfTwoSizes();
  without_sizes.mutable_cells(1)->clear_largest_hop();
  EXPECT_THAT(std::string(RangeOf(without_sizes).status().message()), HasSubstr("how far apart"));
}

}  // namespace
}  // namespace meridian
