#include "astra_bridge/calibration/calibrated_model.h"

#include <cmath>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// All-gathers are twice as slow as the engine has them; one number for all kinds cannot say that.
TEST(CalibratedModelTest, PredictsWhatTheParametersAloneCannot) {
  SyntheticOptions options;
  options.noise = 0.02;
  std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 30000, 4), {4}, options);
  for (TransferCell& cell : cells) {
    if (cell.kind != CollectiveKind::kAllGather) continue;
    for (double& transfer_ns : cell.transfers_ns) transfer_ns *= 2;
    SummariseCell(&cell);
  }
  ASSERT_OK_AND_ASSIGN(const CalibratedModel model, FitModel(AssumedFabric(4), cells));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> engine_ns,
                       EngineTimesNs(model.parameters.fabric, cells));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> predicted_ns,
                       PredictCellsNs(model.parameters.fabric, model.corrections, cells));
  double worst_engine = 0, worst = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    worst_engine = std::max(worst_engine, std::abs(engine_ns[i] / cells[i].median_ns - 1));
    worst = std::max(worst, std::abs(predicted_ns[i] / cells[i].median_ns - 1));
  }
  EXPECT_GT(worst_engine, 0.3);
  EXPECT_LT(worst, 0.1);
}

// A ring all-gather of 1 MiB in four takes 60,133 ns on the assumed fabric: see engine_model_test.
TEST(CalibratedModelTest, CorrectionsAreOfKindAndBytes) {
  TransferCell cell;
  cell.kind = CollectiveKind::kAllGather;
  cell.bytes = 1 << 20;
  cell.ranks = 4;
  cell.participants = {0, 1, 2, 3};
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllGather)] = {{1 << 10, 5},
                                                                         {1 << 20, 2}};
  EXPECT_THAT(PredictCellsNs(AssumedFabric(4), corrections, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(2 * 60133, 1e-6))));
  EXPECT_THAT(PredictCellsNs(AssumedFabric(4), {}, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(60133, 1e-6))));
}

TransferCell CellOf(CollectiveKind kind, int64_t bytes, double measured_ns) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.median_ns = measured_ns;
  return cell;
}

TEST(FitCorrectionsTest, EverySizeIsAPoint) {
  const Corrections corrections = FitCorrections(
      {CellOf(CollectiveKind::kAllReduce, 4096, 300), CellOf(CollectiveKind::kAllReduce, 1024, 200),
       CellOf(CollectiveKind::kPointToPoint, 1024, 50)},
      {200, 100, 100});
  const auto& reduce = corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)];
  ASSERT_THAT(reduce, SizeIs(2));
  EXPECT_EQ(reduce[0].bytes, 1024);
  EXPECT_DOUBLE_EQ(reduce[0].ratio, 2);
  EXPECT_EQ(reduce[1].bytes, 4096);
  EXPECT_DOUBLE_EQ(reduce[1].ratio, 1.5);
  const auto& p2p = corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)];
  ASSERT_THAT(p2p, SizeIs(1));
  EXPECT_DOUBLE_EQ(p2p[0].ratio, 0.5);
  EXPECT_FALSE(corrections.Has(CollectiveKind::kAllGather));
}

// Of two groups one takes twice, the other half the engine's time.
TEST(FitCorrectionsTest, GroupsThatDisagreeHaveTheirGeometricMean) {
  const Corrections corrections = FitCorrections({CellOf(CollectiveKind::kAllReduce, 1024, 200),
                                                  CellOf(CollectiveKind::kAllReduce, 1024, 150)},
                                                 {100, 300});
  const auto& points = corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)];
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_DOUBLE_EQ(points[0].ratio, 1);
}

// 1000 and 1210 are less than a factor of 1.25 apart, 1300 is not: 1100 is the mean of the first
// two by their ratio.
TEST(FitCorrectionsTest, NeighbouringSizesShareAPoint) {
  const Corrections corrections = FitCorrections(
      {CellOf(CollectiveKind::kAllReduce, 1000, 200), CellOf(CollectiveKind::kAllReduce, 1210, 50),
       CellOf(CollectiveKind::kAllReduce, 1300, 100)},
      {100, 100, 100});
  const auto& points = corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)];
  ASSERT_THAT(points, SizeIs(2));
  EXPECT_EQ(points[0].bytes, 1100);
  EXPECT_DOUBLE_EQ(points[0].ratio, 1);
  EXPECT_EQ(points[1].bytes, 1300);
}

using Folds = std::vector<std::vector<size_t>>;

std::vector<TransferCell> Cells(std::vector<int32_t> ranks) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
  options.sizes = {1024, 4096, 65536, 1 << 20};
  options.noise = 0;
  return MakeSyntheticCells(RingOf(4, 5000, 10), ranks, options);
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
  ASSERT_OK_AND_ASSIGN(const std::vector<HeldOutPrediction> predictions,
                       PredictHeldOut(AssumedFabric(4), cells, {folds[0]}, nullptr));
  ASSERT_THAT(predictions, SizeIs(folds[0].size()));
  EXPECT_EQ(predictions[0].cell, folds[0][0]);
  EXPECT_NEAR(predictions[0].predicted_ns / truth_ns, 1, 0.05);
}

TEST(HoldoutTest, NamesAreThoseOfTheFlag) {
  for (Holdout holdout : {Holdout::kSize, Holdout::kKind, Holdout::kGroup}) {
    EXPECT_EQ(HoldoutFromName(HoldoutName(holdout)), holdout);
  }
  EXPECT_EQ(HoldoutFromName("random"), std::nullopt);
}

TEST(ErrorSummaryTest, ErrorsAreRelativeToWhatWasMeasured) {
  const ErrorSummary summary =
      SummariseErrors({{1024, 100, 110}, {1 << 20, 200, 140}, {1 << 21, 100, 100}});
  EXPECT_EQ(summary.n(), 3);
  EXPECT_NEAR(summary.mape(), (0.1 + 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mean_signed_error(), (0.1 - 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mape_small(), 0.1, 1e-12);
  EXPECT_NEAR(summary.mape_large(), 0.15, 1e-12);
  // Between 0.1 and 0.3, a tenth of the way from the top.
  EXPECT_NEAR(summary.p95(), 0.28, 1e-12);
}

TEST(ErrorSummaryTest, PartsWithoutCellsAreAbsent) {
  EXPECT_FALSE(SummariseErrors({{1024, 100, 110}}).has_mape_large());
  EXPECT_FALSE(SummariseErrors({{1 << 20, 100, 110}}).has_mape_small());
  EXPECT_EQ(SummariseErrors({}).n(), 0);
}

}  // namespace
}  // namespace meridian
