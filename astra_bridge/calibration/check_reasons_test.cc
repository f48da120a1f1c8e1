#include "astra_bridge/calibration/check_reasons.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
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
using ::testing::SizeIs;
using ::testing::StartsWith;

CalibrationReport ReportOfTwoSizes() {
  CalibrationReport report;
  for (int64_t bytes : {1024, 65536}) {
    CalibratedCell* cell = report.add_cells();
    cell->set_kind("all-reduce");
    cell->set_bytes(bytes);
    cell->set_group_size(4);
    cell->set_ranks(4);
    cell->set_largest_hop(1);
    cell->set_fitted(true);
  }
  CalibratedCell* permute = report.add_cells();
  permute->set_kind("p2p");
  permute->set_group_size(2);
  permute->set_ranks(4);
  permute->set_pairs(4);
  permute->set_largest_hop(1);
  permute->set_bytes(1024);
  permute->set_fitted(true);
  CalibratedCell* held_out = report.add_cells();
  held_out->set_kind("all-gather");
  return report;
}

std::vector<std::string> Beyond(const CalibratedRange& range, const TransferCell& cell) {
  return range.Beyond(cell, {"GPU"});
}

TEST(CalibratedRangeTest, TellsWhatIsExtrapolated) {
  ASSERT_OK_AND_ASSIGN(const CalibratedRange range, RangeOf(ReportOfTwoSizes()));
  EXPECT_THAT(Beyond(range, EmptyCell(CollectiveKind::kAllReduce, 4096, {0, 1, 2, 3})), IsEmpty());
  EXPECT_THAT(Beyond(range, EmptyCell(CollectiveKind::kAllReduce, 512, {0, 1, 2, 3})),
              ElementsAre("size outside the calibration"));
  EXPECT_THAT(Beyond(range, EmptyCell(CollectiveKind::kAllReduce, 65537, {0, 1})),
              ElementsAre("size outside the calibration", "group size not in the calibration"));
  TransferCell permute = EmptyCell(CollectiveKind::kPointToPoint, 1024, {2, 3});
  permute.pairs = 4;
  EXPECT_THAT(Beyond(range, permute), ElementsAre("messages one way not in the calibration"));
  permute.is_both_ways = true;
  EXPECT_THAT(Beyond(range, permute), IsEmpty());
  permute.pairs = 2;
  EXPECT_THAT(Beyond(range, permute),
              ElementsAre("number of pairs at once not in the calibration"));
  EXPECT_THAT(Beyond(range, EmptyCell(CollectiveKind::kAllGather, 4096, {0, 1, 2, 3})),
              ElementsAre("kind not in the calibration"));
}

// A ring passes the data of {0,2} on through rank 1, so that it takes twice as long as {0,1}.
TEST(CalibratedRangeTest, TellsMembersFurtherApart) {
  CalibrationReport report = ReportOfTwoSizes();
  report.mutable_cells(1)->set_group_size(2);
  ASSERT_OK_AND_ASSIGN(const CalibratedRange neighbours, RangeOf(report));
  EXPECT_THAT(Beyond(neighbours, EmptyCell(CollectiveKind::kAllReduce, 4096, {2, 3})), IsEmpty());
  EXPECT_THAT(Beyond(neighbours, EmptyCell(CollectiveKind::kAllReduce, 4096, {3, 0})), IsEmpty());
  EXPECT_THAT(Beyond(neighbours, EmptyCell(CollectiveKind::kAllReduce, 4096, {1, 3})),
              ElementsAre("members further apart than in the calibration"));
  report.mutable_cells(1)->set_largest_hop(2);
  ASSERT_OK_AND_ASSIGN(const CalibratedRange two_apart, RangeOf(report));
  EXPECT_THAT(Beyond(two_apart, EmptyCell(CollectiveKind::kAllReduce, 4096, {1, 3})), IsEmpty());
}

TEST(CalibratedRangeTest, TellsOtherDevices) {
  CalibrationReport report = ReportOfTwoSizes();
  const TransferCell cell = EmptyCell(CollectiveKind::kAllReduce, 4096, {0, 1, 2, 3});
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
  const auto beyond = [&](const std::string& protocol) {
    TransferCell cell = EmptyCell(CollectiveKind::kAllReduce, 1024, {0, 1, 2, 3});
    cell.protocol = protocol;
    return Beyond(range, cell);
  };
  EXPECT_THAT(beyond("TREE_LL"), IsEmpty());
  EXPECT_THAT(beyond("RING_LL"), IsEmpty());
  EXPECT_THAT(beyond(""), IsEmpty());
  EXPECT_THAT(beyond("NVLS_SIMPLE"), ElementsAre("another protocol than in the calibration"));
  TransferCell permute = EmptyCell(CollectiveKind::kPointToPoint, 1024, {0, 1});
  permute.pairs = 4;
  permute.is_both_ways = true;
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

TEST(CalibratedRangeTest, SpreadsThatNothingCanBeDrawnFromAreRefused) {
  CalibrationReport report = ReportOfTwoSizes();
  TransferSpread* spread = report.add_spreads();
  EXPECT_THAT(std::string(RangeOf(report).status().message()), HasSubstr("spread without ratios"));
  spread->add_ratios(1.5);
  EXPECT_OK(RangeOf(report));
  spread->add_ratios(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(RangeOf(report).status()));
}

CalibrationRun RunOf(const std::string& folder, size_t transfers) {
  CalibrationRun run;
  run.folder = folder;
  run.transfers.ranks = 4;
  run.transfers.samples.resize(transfers);
  return run;
}

CalibrationReport ReportOf(const std::string& folder, int64_t transfers) {
  CalibrationReport report;
  CalibratedRun* run = report.add_runs();
  run->set_folder(folder);
  run->set_ranks(4);
  run->set_transfers(transfers);
  return report;
}

TEST(SimulationCheckNotesTest, WhatWasCalibratedWithIsNoTest) {
  const CalibrationReport report = ReportOf("sweep", 3);
  EXPECT_THAT(NotesOnCalibratedRuns(report, {RunOf("other", 3), RunOf("sweep", 3)}),
              ElementsAre(HasSubstr("sweep was used for this calibration")));
  EXPECT_THAT(NotesOnCalibratedRuns(report, {RunOf("./a/../sweep/", 3)}),
              ElementsAre(HasSubstr("its errors are those of the fit")));
}

// A folder may have been written anew.
TEST(SimulationCheckNotesTest, OtherTransfersAreAnotherRun) {
  EXPECT_THAT(NotesOnCalibratedRuns(ReportOf("sweep", 3), {RunOf("sweep", 4)}), IsEmpty());
  CalibrationReport of_two = ReportOf("sweep", 3);
  of_two.mutable_runs(0)->set_ranks(2);
  EXPECT_THAT(NotesOnCalibratedRuns(of_two, {RunOf("sweep", 3)}), IsEmpty());
  EXPECT_THAT(NotesOnCalibratedRuns({}, {RunOf("sweep", 3)}), IsEmpty());
}

TEST(SimulationCheckNotesTest, FoldersMayBeNamedAnything) {
  EXPECT_THAT(NotesOnCalibratedRuns(ReportOf("a\nb", 1), {RunOf("a\nb", 1)}),
              ElementsAre(HasSubstr("a?b was used")));
}

TEST(SimulationCheckNotesTest, CorrectionsOfAnotherCalibrationAreNamed) {
  Corrections corrections;
  auto& reduce = corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)];
  reduce = {{1024, 1.25}, {2048, 0.75}};
  CalibrationReport report;
  ListCorrections(corrections, &report);
  corrections.points[static_cast<size_t>(CollectiveKind::kAllGather)] = {{1024, 2}};
  EXPECT_THAT(NotesOnCorrections(report, corrections),
              ElementsAre(HasSubstr("the corrections are not those of this calibration")));
  report.clear_corrections();
  ListCorrections(corrections, &report);
  EXPECT_THAT(NotesOnCorrections(report, corrections), IsEmpty());
  // Files may have been written with fewer digits.
  reduce[0].ratio = 1.2500001;
  EXPECT_THAT(NotesOnCorrections(report, corrections), IsEmpty());
  reduce[0].ratio = 1.26;
  EXPECT_THAT(NotesOnCorrections(report, corrections), SizeIs(1));
  reduce[0] = {1025, 1.25};
  EXPECT_THAT(NotesOnCorrections(report, corrections), SizeIs(1));
  reduce[0] = {1024, 1.25};
  std::swap(corrections.points[static_cast<size_t>(CollectiveKind::kAllGather)],
            corrections.points[static_cast<size_t>(CollectiveKind::kAllToAll)]);
  EXPECT_THAT(NotesOnCorrections(report, corrections), SizeIs(1));
  EXPECT_THAT(NotesOnCorrections(report, {}), SizeIs(1));
}

TransferCell CellOf(std::vector<double> transfers_ns) {
  TransferCell cell;
  cell.bytes = 4096;
  cell.ranks = 4;
  cell.participants = {0, 1, 2, 3};
  cell.transfers_ns = std::move(transfers_ns);
  SummariseCell(&cell);
  return cell;
}

TEST(CheckReasonsTest, AFairTestHasNone) {
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120}), {}, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, MostTransfersMetOthers) {
  CellCircumstances circumstances;
  circumstances.overlapped = 2;
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120}), circumstances, std::nullopt),
              ElementsAre("met other collectives"));
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120, 130}), circumstances, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, ComputationBesideCountsFromATenth) {
  CellCircumstances circumstances;
  circumstances.compute_share = 0.09;
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, std::nullopt), IsEmpty());
  circumstances.compute_share = 0.11;
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, std::nullopt),
              ElementsAre("computing beside: 11 % of its time"));
}

TEST(CheckReasonsTest, OtherGroupsAreNamedWithWhatTheyDo) {
  CellCircumstances circumstances;
  circumstances.others_compute_share = 0.5;
  circumstances.beside = 0.5;
  const std::vector<std::string> reasons =
      FindReasons(CellOf({100, 110, 120}), circumstances, std::nullopt);
  EXPECT_THAT(reasons, ElementsAre("ranks of other groups compute: 50 % of its time",
                                   "beside other groups: on average 0.5 of them under way"));
  EXPECT_EQ(ReasonTopic(reasons[1]), "beside other groups");
  EXPECT_EQ(ReasonTopic(kMetOthers), kMetOthers);
}

TEST(CheckReasonsTest, RepeatsMayVaryTooMuchToMeanAnything) {
  EXPECT_THAT(FindReasons(CellOf({100, 100, 200, 200}), {}, std::nullopt),
              ElementsAre("unsteady repeats (time slicing or other work)"));
}

TEST(CheckReasonsTest, WhatWasNotCalibratedComesFirst) {
  CalibratedRange range;
  range.sizes[CollectiveKind::kAllReduce] = {1024, 2048};
  range.group_sizes = {4};
  range.run_sizes = {4};
  range.largest_hop = 1;
  range.device_kinds = {"GPU"};
  CellCircumstances circumstances;
  circumstances.overlapped = 1;
  circumstances.device_kinds = {"CPU"};
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, range),
              ElementsAre("size outside the calibration", "on CPU, calibrated on GPU",
                          "met other collectives"));
}

}  // namespace
}  // namespace meridian
