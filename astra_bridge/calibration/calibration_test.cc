#include "astra_bridge/calibration/calibration.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/holdout.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "astra_bridge/calibration/transfers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

CalibrationRun SyntheticRun(int32_t ranks, const SyntheticOptions& options = {}) {
  CalibrationRun run;
  run.folder = absl::StrCat("ranks", ranks);
  run.transfers = MakeSyntheticTransfers(LinksOf(ranks, 30000, 4), ranks, options);
  run.device_kinds = {"GPU"};
  run.across_nodes = true;
  return run;
}

void ExpectRefused(const std::vector<CalibrationRun>& runs, const CalibrationOptions& options,
                   const std::string& reason) {
  const absl::Status status = Calibrate(runs, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
}

TEST(CalibrationTest, RecoversTheTruthAndPredictsWhatItHasNotSeen) {
  ASSERT_OK_AND_ASSIGN(const Calibration calibration,
                       Calibrate({SyntheticRun(2), SyntheticRun(4)}));
  const CalibrationReport& report = calibration.report;
  ASSERT_THAT(report.parameters(), SizeIs(3));
  EXPECT_EQ(report.parameters(0).name(), "latency_ns[0]");
  EXPECT_NEAR(report.parameters(0).value(), 30000, 1500);
  EXPECT_LE(report.parameters(0).low(), report.parameters(0).value());
  EXPECT_GE(report.parameters(0).high(), report.parameters(0).value());
  EXPECT_EQ(report.parameters(1).name(), "bandwidth_gib_per_s[0]");
  EXPECT_NEAR(report.parameters(1).value(), 4, 0.16);
  EXPECT_EQ(report.parameters(2).name(), "overhead_ns");
  EXPECT_LT(report.parameters(2).value(), 3000);
  // Four kinds, seven sizes, two groups; five sizes lie between others.
  EXPECT_EQ(report.fit().n(), 56);
  EXPECT_EQ(report.holdout().n(), 40);
  EXPECT_LT(report.holdout().mape(), 0.07);
  EXPECT_GT(report.uncalibrated().mape(), 0.5);
  EXPECT_GT(report.noise_floor(), 0.01);
  EXPECT_LT(report.noise_floor(), 0.1);
  EXPECT_EQ(calibration.fabric.network.npus(), 4);
  EXPECT_THAT(FormatCalibration(report),
              AllOf(HasSubstr("latency_ns[0]"), HasSubstr("overhead_ns"),
                    HasSubstr("held out (size)"), HasSubstr("noise floor")));
}

TEST(CalibrationTest, FitsGivenSizesOnlyAndPredictsTheOthers) {
  CalibrationOptions options;
  options.sizes = {1 << 10, 1 << 14, 1 << 18, 1 << 22};
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({SyntheticRun(4)}, options));
  EXPECT_EQ(calibration.report.fit().n(), 16);
  EXPECT_EQ(calibration.report.holdout().n(), 12);
  EXPECT_EQ(calibration.report.holdout_rule(), "sizes not fitted");
  for (const CalibratedCell& cell : calibration.report.cells()) {
    EXPECT_NE(cell.fitted(), cell.has_held_out_ns());
  }
}

// As training runs have them: many sizes, each of them once or twice.
TEST(CalibrationTest, HundredsOfSizesAreTakenTogether) {
  SyntheticOptions many;
  many.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
  many.repeats = 3;
  many.sizes.clear();
  for (int i = 0; i < 300; ++i) {
    many.sizes.push_back(1024 + std::llround(1024 * std::exp2(14.0 * i / 299)));
  }
  CalibrationRun run = SyntheticRun(4, many);
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}));
  const CalibrationReport& report = calibration.report;
  EXPECT_EQ(report.fit().n(), 2 * 300);
  EXPECT_EQ(report.holdout().n(), 2 * 298);
  // A median of three with noise of 10 % is off by 5 % in the mean.
  EXPECT_LT(report.fit().mape(), 0.07);
  EXPECT_LT(report.holdout().mape(), 0.07);
  EXPECT_NEAR(report.parameters(0).value(), 30000, 2000);
  EXPECT_NEAR(report.parameters(1).value(), 4, 0.12);
  EXPECT_THAT(report.notes(), Contains(HasSubstr("there are 300 sizes: they were held out in 24 "
                                                 "ranges")));
}

TEST(CalibrationTest, SaysWhenOtherNumbersOfRanksAreAGuess) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter};
  ASSERT_OK_AND_ASSIGN(const Calibration one, Calibrate({SyntheticRun(4, options)}));
  EXPECT_THAT(one.report.notes(), Contains(HasSubstr("all groups have 4 ranks")));
  EXPECT_THAT(one.report.notes(), Contains(HasSubstr("latency includes what a collective costs")));
  ASSERT_OK_AND_ASSIGN(const Calibration two, Calibrate({SyntheticRun(2), SyntheticRun(4)}));
  EXPECT_THAT(two.report.notes(), Not(Contains(HasSubstr("all groups have"))));
  EXPECT_THAT(two.report.notes(), Not(Contains(HasSubstr("latency includes"))));
}

// Large sizes tell no latency: it keeps what was given.
TEST(CalibrationTest, KeepsALatencyOfNone) {
  SyntheticOptions large;
  large.sizes = {1 << 26, 1 << 27, 1 << 28};
  CalibrationRun run = SyntheticRun(4);
  run.transfers = MakeSyntheticTransfers(LinksOf(4, 500, 10), 4, large);
  CalibrationOptions options;
  options.topology = LinksOf(4, 0, 50);
  ASSERT_OK_AND_ASSIGN(const Calibration kept, Calibrate({run}, options));
  EXPECT_THAT(kept.report.notes(), Contains(HasSubstr("latency_ns[0] is not known")));
  EXPECT_TRUE(kept.report.parameters(1).identifiable());
  EXPECT_THAT(FormatCalibration(kept.report), HasSubstr("not known"));
  ASSERT_OK_AND_ASSIGN(const Calibration fitted, Calibrate({SyntheticRun(4)}, options));
  EXPECT_TRUE(fitted.report.parameters(0).identifiable());
  EXPECT_NEAR(fitted.report.parameters(0).value(), 30000, 2000);
}

// Groups within and across nodes are two levels, which ranks per node tell.
TEST(CalibrationTest, NodesAreALevel) {
  Fabric truth = AssumedFabric({2, 2});
  truth.network.dimensions[0].bytes_per_ns *= 2;
  truth.network.dimensions[1].bytes_per_ns /= 10;
  CalibrationRun run;
  run.folder = "nodes";
  run.device_kinds = {"GPU"};
  run.within_nodes = run.across_nodes = true;
  run.transfers.ranks = 4;
  run.transfers.groups = {{0, 1}, {0, 2}};
  for (const TransferCell& cell : MakeSyntheticCellsOfGroups(truth, run.transfers.groups)) {
    for (const double ns : cell.transfers_ns) {
      TransferSample sample;
      sample.kind = cell.kind;
      sample.bytes = cell.bytes;
      sample.group = cell.participants == run.transfers.groups[0] ? 0 : 1;
      sample.transfer_ns = ns;
      run.transfers.samples.push_back(sample);
    }
  }
  ExpectRefused({run}, {}, "nodes have different numbers of ranks");
  run.ranks_per_node = 2;
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}));
  ASSERT_EQ(calibration.fabric.network.dimensions.size(), 2u);
  EXPECT_NEAR(calibration.report.parameters(1).value(), 100, 10);
  EXPECT_NEAR(calibration.report.parameters(3).value(), 5, 0.5);
}

TEST(CalibrationTest, SaysThatNothingTellsTheNoise) {
  SyntheticOptions once;
  once.repeats = 1;
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({SyntheticRun(4, once)}));
  EXPECT_FALSE(calibration.report.has_noise_floor());
  EXPECT_THAT(calibration.report.notes(), Contains(HasSubstr("the noise floor is not known")));
}

TEST(CalibrationTest, WhatIsNotKnownIsNotZero) {
  CalibrationRun run = SyntheticRun(4);
  run.notes = {"its clocks disagree"};
  CalibrationOptions options;
  options.holdout = Holdout::kGroup;
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}, options));
  EXPECT_FALSE(calibration.report.has_holdout());
  EXPECT_THAT(calibration.report.notes(), Contains("its clocks disagree"));
}

TEST(CalibrationTest, RefusesWhatItCannotUse) {
  ExpectRefused({CalibrationRun()}, {}, "no collective whose transfer can be timed");

  SyntheticOptions one_size;
  one_size.sizes = {4096};
  ExpectRefused({SyntheticRun(4, one_size)}, {}, "a single size");

  CalibrationRun cpu = SyntheticRun(2);
  cpu.device_kinds = {"CPU"};
  ExpectRefused({SyntheticRun(4), cpu}, {}, "different devices (CPU, GPU)");

  CalibrationRun both = SyntheticRun(4);
  both.within_nodes = true;
  CalibrationOptions one_level;
  one_level.topology = LinksOf(4, 500, 50);
  ExpectRefused({both}, one_level, "--topology has a single dimension");

  CalibrationOptions one_of_several;
  one_of_several.sizes = {4096};
  ExpectRefused({SyntheticRun(4)}, one_of_several, "--sizes leaves a single size, 4096 bytes");

  CalibrationOptions options;
  options.sizes = {1024, 1000};
  ExpectRefused({SyntheticRun(4)}, options, "1000 bytes, of which there are no transfers");
}

// Checks the limits of a calibration with the runs of these folders together.
void ExpectWithinLimits(const std::string& folders) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> traces,
                       ExpandPaths(FileSystem::Posix(), folders, {"", {".xplane.pb.gz"}}));
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadCalibrationRuns(FileSystem::Posix(), traces));
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate(runs));
  const CalibrationReport& report = calibration.report;
  EXPECT_LE(report.holdout().mape_large(), 0.12) << folders;
  EXPECT_LE(report.holdout().mape_small(), 0.13) << folders;
  EXPECT_LE(report.holdout().mape(), 0.5 * report.uncalibrated().mape());
  EXPECT_GT(report.noise_floor(), 0.02);
}

TEST(CalibrationTest, TheBundledSweepIsPredictedWithinItsLimits) {
  ExpectWithinLimits("examples/sweep_cpu4");
}

TEST(CalibrationTest, MeasuredSweepsArePredictedWithinTheirLimits) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ExpectWithinLimits(absl::StrCat(*shared, "/traces/sweep_cuda4,", *shared, "/traces/sweep_cuda2"));
  ExpectWithinLimits(absl::StrCat(*shared, "/traces/sweep_cpu4"));
}

std::vector<CorrectionPoint> PointsOf(const CalibratedModel& model, CollectiveKind kind) {
  return model.corrections.points[static_cast<size_t>(kind)];
}

// All-gathers are twice as slow as the network has them; three numbers for all kinds cannot say
// that, and the other kinds need no table.
TEST(CalibratedModelTest, ATableIsForWhatPhysicsGetsWrong) {
  SyntheticOptions options;
  options.noise = 0.02;
  options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                   CollectiveKind::kReduceScatter};
  std::vector<TransferCell> cells = MakeSyntheticCells(LinksOf(4, 30000, 4), {2, 4}, options);
  for (TransferCell& cell : cells) {
    if (cell.kind != CollectiveKind::kAllGather) continue;
    for (double& transfer_ns : cell.transfers_ns) transfer_ns *= 2;
    SummariseCell(&cell);
  }
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model, FitModel(AssumedFabric({4}), cells));
  EXPECT_THAT(PointsOf(model, CollectiveKind::kAllReduce), IsEmpty());
  EXPECT_THAT(PointsOf(model, CollectiveKind::kReduceScatter), IsEmpty());
  ASSERT_THAT(PointsOf(model, CollectiveKind::kAllGather), Not(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.physics.fabric, model.corrections, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    EXPECT_NEAR(predicted_ns[i] / cells[i].median_ns, 1, 0.1) << cells[i].bytes;
  }
}

// Eight, sixteen, ... ranks send by one port what a table of two and four ranks says nothing about.
TEST(CalibratedModelTest, AllToAllOfMoreRanksSharesThePort) {
  SyntheticOptions options;
  options.noise = 0.01;
  const Fabric truth = LinksOf(4, 30000, 4);
  const std::vector<TransferCell> cells = MakeSyntheticCells(truth, {2, 4}, options);
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model,
                       FitModel(AssumedFabric({4}), cells, {false, /*most_ranks=*/8}));
  TransferCell eight = EmptyCell(CollectiveKind::kAllToAll, 1 << 22, {0, 1, 2, 3, 4, 5, 6, 7}, 8);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.physics.fabric, model.corrections, {eight}));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> truth_ns, EngineTimesNs(truth, {eight}));
  EXPECT_NEAR(predicted_ns[0] / (7 * truth_ns[0]), 1, 0.05);
}

// Two of four ranks send half of their bytes to one other, not a quarter to each of three.
TEST(CalibratedModelTest, AllToAllOfFewerRanksSharesThePort) {
  SyntheticOptions options;
  options.noise = 0.01;
  const Fabric truth = LinksOf(4, 30000, 4);
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model,
                       FitModel(AssumedFabric({4}), MakeSyntheticCells(truth, {4}, options)));
  const TransferCell two = EmptyCell(CollectiveKind::kAllToAll, 1 << 22, {0, 1});
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.physics.fabric, model.corrections, {two}));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> truth_ns, EngineTimesNs(truth, {two}));
  EXPECT_NEAR(predicted_ns[0] / truth_ns[0], 1, 0.05);
}

// Small ones grow as trees do, by a step for each doubling; large ones as rings, hardly.
TEST(CalibratedModelTest, MoreRanksGrowAsTheMeasuredOnesDid) {
  std::vector<TransferCell> cells;
  for (const int32_t ranks : {4, 8, 16, 32}) {
    for (int64_t bytes = 1024; bytes <= (1 << 28); bytes *= 2) {
      TransferCell& cell = cells.emplace_back();
      cell.bytes = bytes;
      cell.ranks = ranks;
      for (int32_t i = 0; i < ranks; ++i) cell.participants.push_back(i);
      const double tree_ns = 8000 * std::log2(ranks);
      const double ring_ns = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / 100;
      cell.transfers_ns = {bytes < (1 << 22) ? tree_ns : ring_ns};
      SummariseCell(&cell);
    }
  }
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model,
                       FitModel(AssumedFabric({32}), cells, {false, /*most_ranks=*/256}));
  TransferCell small = cells[0], large = cells.back();
  small.ranks = large.ranks = 256;
  small.participants.resize(256);
  large.participants.resize(256);
  for (int32_t i = 0; i < 256; ++i) small.participants[i] = large.participants[i] = i;
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.physics.fabric, model.corrections, {small, large}));
  EXPECT_NEAR(predicted_ns[0], 8000 * 8, 0.1 * 8000 * 8);
  EXPECT_NEAR(predicted_ns[1], 2.0 * (1 << 28) / 100, 0.1 * 2.0 * (1 << 28) / 100);
}

using Folds = std::vector<std::vector<size_t>>;

std::vector<TransferCell> Cells(std::vector<int32_t> ranks) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
  options.sizes = {1024, 4096, 65536, 1 << 20};
  options.noise = 0;
  return MakeSyntheticCells(LinksOf(4, 5000, 10), ranks, options);
}

TEST(HoldoutTest, SizesBetweenOthersAreLeftOutForAllKindsAndGroups) {
  const std::vector<TransferCell> cells = Cells({2, 4});
  const Folds folds = MakeFolds(cells, Holdout::kSize);
  EXPECT_THAT(folds, ElementsAre(SizeIs(4), SizeIs(4)));
  for (size_t cell : folds[0]) EXPECT_EQ(cells[cell].bytes, 4096);
  for (size_t cell : folds[1]) EXPECT_EQ(cells[cell].bytes, 65536);
}

// Of 98 sizes 96 lie between others: four in each fold.
TEST(HoldoutTest, ManySizesAreLeftOutInRanges) {
  std::vector<TransferCell> cells;
  for (CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
    for (int64_t bytes = 1; bytes <= 98; ++bytes) {
      cells.emplace_back();
      cells.back().kind = kind;
      cells.back().bytes = bytes;
    }
  }
  const Folds folds = MakeFolds(cells, Holdout::kSize);
  ASSERT_THAT(folds, SizeIs(kMaxSizeFolds));
  EXPECT_THAT(folds[0], ElementsAre(1, 2, 3, 4, 99, 100, 101, 102));
  EXPECT_THAT(folds.back(), ElementsAre(93, 94, 95, 96, 191, 192, 193, 194));
  cells.resize(kMaxSizes);
  EXPECT_THAT(MakeFolds(cells, Holdout::kSize), SizeIs(kMaxSizes - 2));
}

TEST(HoldoutTest, KindsAndGroupsAreLeftOutInTurn) {
  const std::vector<TransferCell> cells = Cells({2, 4});
  const Folds kinds = MakeFolds(cells, Holdout::kKind);
  EXPECT_THAT(kinds, ElementsAre(SizeIs(8), SizeIs(8)));
  for (size_t cell : kinds[0]) EXPECT_EQ(cells[cell].kind, CollectiveKind::kAllReduce);
  const Folds groups = MakeFolds(cells, Holdout::kGroup);
  EXPECT_THAT(groups, ElementsAre(SizeIs(8), SizeIs(8)));
  for (size_t cell : groups[0]) EXPECT_EQ(cells[cell].ranks, 2);
}

TEST(HoldoutTest, ARunOfOneSizeIsToldApartByItsGroups) {
  std::vector<TransferCell> cells = Cells({4});
  cells[0].participants = {0, 1};
  EXPECT_THAT(MakeFolds(cells, Holdout::kGroup), ElementsAre(ElementsAre(0), SizeIs(7)));
  EXPECT_THAT(MakeFolds(Cells({4}), Holdout::kGroup), IsEmpty());
}

TEST(HoldoutTest, PermutesOfOneRunAreNoGroup) {
  std::vector<TransferCell> cells = Cells({4});
  for (size_t i = 0; i < 4; ++i) {
    cells[i].kind = CollectiveKind::kPointToPoint;
    cells[i].participants = {0, 1};
  }
  EXPECT_THAT(MakeFolds(cells, Holdout::kGroup), IsEmpty());
  // Of runs of several sizes they are held out with the run.
  cells[0].ranks = 2;
  EXPECT_THAT(MakeFolds(cells, Holdout::kGroup), ElementsAre(ElementsAre(0), SizeIs(7)));
}

TEST(HoldoutTest, HeldOutCellsArePredictedFromTheRest) {
  std::vector<TransferCell> cells = Cells({2, 4});
  const Folds folds = MakeFolds(cells, Holdout::kGroup);
  // A cell that nobody would predict if it were seen.
  const double truth_ns = cells[folds[0][0]].median_ns;
  cells[folds[0][0]].median_ns *= 100;
  ASSERT_OK_AND_ASSIGN(const auto predicted_ns,
                       PredictHeldOut(AssumedFabric({4}), cells, {folds[0]}, nullptr));
  ASSERT_THAT(predicted_ns, SizeIs(folds[0].size()));
  EXPECT_NEAR(predicted_ns.at(folds[0][0]) / truth_ns, 1, 0.05);
}

TEST(HoldoutTest, NamesAreThoseOfTheFlag) {
  for (Holdout holdout : {Holdout::kSize, Holdout::kKind, Holdout::kGroup}) {
    EXPECT_EQ(HoldoutFromName(HoldoutName(holdout)), holdout);
  }
  EXPECT_EQ(HoldoutFromName("random"), std::nullopt);
}

}  // namespace
}  // namespace meridian
