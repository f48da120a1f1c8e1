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

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
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
  const auto beyond = [&](int64_t bytes, const std::string& protocol) {
    TransferCell cell = EmptyCell(CollectiveKind::kAllReduce, bytes, {0, 1, 2, 3});
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

struct Made {
  CollectiveKind kind;
  int64_t bytes;
  double measured_us;
  double simulated_us;
};

std::map<int32_t, double> SlicesOf(const std::vector<Made>& made) {
  std::vector<TransferCell> cells;
  std::vector<double> simulated_ns;
  for (const Made& one : made) {
    TransferCell cell;
    cell.kind = one.kind;
    cell.bytes = one.bytes;
    cell.ranks = 2;
    cell.median_ns = 1000 * one.measured_us;
    cells.push_back(cell);
    simulated_ns.push_back(1000 * one.simulated_us);
  }
  return FindTimeSlicesNs(cells, simulated_ns);
}

TEST(TimeSlicesTest, UnlikeCollectivesThatTakeTheSameAreSliced) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1 << 10, 2260, 50},
                        {CollectiveKind::kAllReduce, 1 << 16, 2250, 200},
                        {CollectiveKind::kAllReduce, 1 << 20, 2255, 900},
                        {CollectiveKind::kAllReduce, 1 << 24, 9000, 8000}}),
              ElementsAre(Pair(2, 2250e3)));
}

// As measured: three of about the same size wait for slices, a permute of that size did not.
TEST(TimeSlicesTest, SomethingAsLargeThatTookFarLessShowsSlices) {
  std::vector<Made> made = {{CollectiveKind::kAllGather, 262144, 2258.6, 230.8},
                            {CollectiveKind::kReduceScatter, 524288, 2245.7, 222.1},
                            {CollectiveKind::kAllToAll, 262144, 2243.8, 150},
                            {CollectiveKind::kPointToPoint, 262144, 117, 237.7}};
  EXPECT_THAT(SlicesOf(made), ElementsAre(Pair(2, 2243.8e3)));
  made.pop_back();
  EXPECT_THAT(SlicesOf(made), IsEmpty());
}

// A network of more latency than thought; permutes, of one step, are simulated to take less.
TEST(TimeSlicesTest, SmallCollectivesTakeAboutTheSame) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 600, 60},
                        {CollectiveKind::kAllReduce, 2048, 602, 61},
                        {CollectiveKind::kAllReduce, 4096, 605, 62},
                        {CollectiveKind::kAllGather, 4096, 304, 31},
                        {CollectiveKind::kPointToPoint, 4096, 100, 10},
                        {CollectiveKind::kAllReduce, 1 << 24, 9000, 8000}}),
              IsEmpty());
}

// As measured: 1 KiB takes twice as simulated, and by chance what 16 and 256 KiB take.
TEST(TimeSlicesTest, TimesMayBeAlikeByChance) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 117.6, 57},
                        {CollectiveKind::kAllReduce, 16384, 118.6, 67.4},
                        {CollectiveKind::kAllToAll, 262144, 118, 98.2},
                        {CollectiveKind::kAllGather, 65536, 105, 125.4}}),
              IsEmpty());
}

// What a collective costs on a slow network, whatever it moves, is no slice.
TEST(TimeSlicesTest, ASlowNetworkIsNotShared) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 41.0, 3.0},
                        {CollectiveKind::kAllGather, 1024, 41.2, 1.5},
                        {CollectiveKind::kPointToPoint, 1024, 40.5, 0.5}}),
              IsEmpty());
  // A slower one, of milliseconds.
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 4100, 300},
                        {CollectiveKind::kAllGather, 1024, 4120, 150},
                        {CollectiveKind::kPointToPoint, 1024, 4050, 50}}),
              IsEmpty());
}

// A network that costs nothing says nothing about what to expect.
TEST(TimeSlicesTest, NothingIsComparableToNothing) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 2250, 0},
                        {CollectiveKind::kAllReduce, 2048, 2251, 0},
                        {CollectiveKind::kAllReduce, 4096, 2252, 0}}),
              IsEmpty());
}

// Unlike as they are, and though a permute was quicker: a slice is no fraction of a millisecond.
TEST(TimeSlicesTest, SlicesAreNotShort) {
  const std::vector<Made> made = {{CollectiveKind::kAllReduce, 1 << 10, 226, 5},
                                  {CollectiveKind::kAllReduce, 1 << 16, 225, 20},
                                  {CollectiveKind::kAllReduce, 1 << 20, 227, 90},
                                  {CollectiveKind::kPointToPoint, 1 << 20, 20, 90}};
  EXPECT_THAT(SlicesOf(made), IsEmpty());
  std::vector<Made> longer = made;
  for (Made& one : longer) {
    one.measured_us *= 10;
    one.simulated_us *= 10;
  }
  EXPECT_THAT(SlicesOf(longer), ElementsAre(Pair(2, 2250e3)));
}

// Times that are alike come in any order, among others that are not.
TEST(TimeSlicesTest, ManySizesAreLookedAtOnce) {
  std::vector<Made> made;
  for (int64_t i = 0; i < 100'000; ++i) {
    made.push_back(
        {CollectiveKind::kAllReduce, i, 3000 + static_cast<double>(i % 1000) / 1000, 1000});
  }
  EXPECT_THAT(SlicesOf(made), IsEmpty());
  made.push_back({CollectiveKind::kAllGather, 1, 3000.5, 100});
  EXPECT_THAT(SlicesOf(made), ElementsAre(Pair(2, 3000e3)));
}

// Groups of a run that do the same are one witness.
TEST(TimeSlicesTest, GroupsAreNoUnlikeCollectives) {
  EXPECT_THAT(SlicesOf({{CollectiveKind::kAllReduce, 1024, 2250, 50},
                        {CollectiveKind::kAllReduce, 1024, 2251, 50},
                        {CollectiveKind::kAllReduce, 1024, 2252, 50},
                        {CollectiveKind::kAllReduce, 2048, 2253, 500}}),
              IsEmpty());
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
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120}), {}, {}, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, MostTransfersMetOthers) {
  CellCircumstances circumstances;
  circumstances.overlapped = 2;
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120}), circumstances, {}, std::nullopt),
              ElementsAre("met other collectives"));
  EXPECT_THAT(FindReasons(CellOf({100, 110, 120, 130}), circumstances, {}, std::nullopt),
              IsEmpty());
}

TEST(CheckReasonsTest, ComputationBesideCountsFromATenth) {
  CellCircumstances circumstances;
  circumstances.compute_share = 0.09;
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, {}, std::nullopt), IsEmpty());
  circumstances.compute_share = 0.11;
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, {}, std::nullopt),
              ElementsAre("computing beside: 11 % of its time"));
}

TEST(CheckReasonsTest, OtherGroupsAreNamedWithWhatTheyDo) {
  CellCircumstances circumstances;
  circumstances.others_compute_share = 0.5;
  circumstances.most_beside = "all-to-all 64 {2,3} of 4";
  // Of nine repeats the last three are beside another all the time, and take twice as long.
  circumstances.beside = {0, 0, 0, 0.5, 0.5, 0.5, 1, 1, 1};
  const std::vector<std::string> reasons = FindReasons(
      CellOf({100, 100, 100, 150, 150, 150, 200, 200, 200}), circumstances, {}, std::nullopt);
  EXPECT_THAT(reasons, ElementsAre("ranks of other groups compute: 50 % of its time",
                                   "beside other groups: mostly all-to-all 64 {2,3} of 4, on "
                                   "average 0.5 of them under way (repeats with the most take 2.00 "
                                   "times those with the least)",
                                   _));
  EXPECT_EQ(ReasonTopic(reasons[1]), "beside other groups");
  EXPECT_EQ(ReasonTopic(kMetOthers), kMetOthers);
}

TEST(CheckReasonsTest, PausesAndDaysDiffer) {
  CalibratedRange range;
  range.sizes[CollectiveKind::kAllReduce] = {1, 1 << 30};
  range.group_sizes = {4};
  range.run_sizes = {4};
  range.largest_hop = 4;
  range.shortest_pause_ns = 100'000;
  range.longest_pause_ns = 200'000;
  range.first_recorded_ns = range.last_recorded_ns = 1'000'000'000'000'000;
  TransferCell cell = CellOf({100});
  CellCircumstances circumstances;
  circumstances.first_recorded_ns = circumstances.last_recorded_ns =
      range.last_recorded_ns + 60'000'000'000;
  cell.pause_ns = 50'000;
  EXPECT_THAT(FindReasons(cell, circumstances, {}, range), IsEmpty());
  cell.pause_ns = 10'000;
  EXPECT_THAT(FindReasons(cell, circumstances, {}, range),
              ElementsAre("sooner behind another collective: after 10 us, in the calibration after "
                          "100 us or more"));
  cell.pause_ns = 1'000'000;
  circumstances.first_recorded_ns -= int64_t{3} * 3600 * 1'000'000'000;
  circumstances.last_recorded_ns = circumstances.first_recorded_ns;
  EXPECT_THAT(FindReasons(cell, circumstances, {}, range),
              ElementsAre("later behind another collective: after 1000 us, in the calibration "
                          "after 200 us or less",
                          StartsWith("recorded at another time: 3.0 hours")));
}

TEST(CheckReasonsTest, RepeatsMayVaryTooMuchToMeanAnything) {
  EXPECT_THAT(FindReasons(CellOf({100, 100, 200, 200}), {}, {}, std::nullopt),
              ElementsAre("unsteady repeats (time slicing or other work)"));
}

TEST(CheckReasonsTest, WhatLastsASliceWaitedForIt) {
  EXPECT_THAT(FindReasons(CellOf({2250}), {}, {{4, 2240}}, std::nullopt),
              ElementsAre("time slices of the device"));
  EXPECT_THAT(FindReasons(CellOf({9000}), {}, {{4, 2240}}, std::nullopt),
              ElementsAre("time slices of the device"));
  EXPECT_THAT(FindReasons(CellOf({117}), {}, {{4, 2240}}, std::nullopt), IsEmpty());
  EXPECT_THAT(FindReasons(CellOf({2250}), {}, {{2, 2240}}, std::nullopt), IsEmpty());
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
  EXPECT_THAT(FindReasons(CellOf({100}), circumstances, {}, range),
              ElementsAre("size outside the calibration", "on CPU, calibrated on GPU",
                          "met other collectives"));
}

}  // namespace
}  // namespace meridian
