#include "astra_bridge/calibration/holdout.h"

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/size_ranges.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Names(const std::vector<HoldoutFold>& folds) {
  std::vector<std::string> names;
  for (const HoldoutFold& fold : folds) names.push_back(fold.name);
  return names;
}

std::vector<TransferCell> Cells(std::vector<int32_t> ranks) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
  options.sizes = {1024, 4096, 65536, 1 << 20};
  options.noise = 0;
  return MakeSyntheticCells(RingOf(4, 5000, 10), ranks, options);
}

TEST(HoldoutTest, SizesBetweenOthersAreLeftOutForAllKindsAndGroups) {
  const std::vector<TransferCell> cells = Cells({2, 4});
  const std::vector<HoldoutFold> folds = MakeFolds(cells, Holdout::kSize);
  EXPECT_THAT(Names(folds), ElementsAre("size 4096", "size 65536"));
  for (const HoldoutFold& fold : folds) EXPECT_THAT(fold.held, SizeIs(4));
  for (size_t cell : folds[0].held) EXPECT_EQ(cells[cell].bytes, 4096);
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
  const std::vector<HoldoutFold> folds = MakeFolds(cells, Holdout::kSize);
  ASSERT_THAT(folds, SizeIs(kMaxSizeFolds));
  EXPECT_EQ(folds[0].name, "sizes 2 to 5");
  EXPECT_THAT(folds[0].held, ElementsAre(1, 2, 3, 4, 99, 100, 101, 102));
  EXPECT_EQ(folds.back().name, "sizes 94 to 97");
  cells.resize(kMaxSizes);
  EXPECT_THAT(MakeFolds(cells, Holdout::kSize), SizeIs(kMaxSizes - 2));
}

TEST(HoldoutTest, KindsAndGroupsAreLeftOutInTurn) {
  EXPECT_THAT(Names(MakeFolds(Cells({2, 4}), Holdout::kKind)),
              ElementsAre("all-reduce", "all-gather"));
  EXPECT_THAT(Names(MakeFolds(Cells({2, 4}), Holdout::kGroup)), ElementsAre("2 ranks", "4 ranks"));
}

TEST(HoldoutTest, ARunOfOneSizeIsToldApartByItsGroups) {
  std::vector<TransferCell> cells = Cells({4});
  cells[0].participants = {0, 1};
  EXPECT_THAT(Names(MakeFolds(cells, Holdout::kGroup)), ElementsAre("2 ranks", "4 ranks"));
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
  EXPECT_THAT(Names(MakeFolds(cells, Holdout::kGroup)), ElementsAre("2 ranks", "4 ranks"));
}

TEST(HoldoutTest, HeldOutCellsArePredictedFromTheRest) {
  std::vector<TransferCell> cells = Cells({2, 4});
  const std::vector<HoldoutFold> folds = MakeFolds(cells, Holdout::kGroup);
  // A cell that nobody would predict if it were seen.
  const double truth_ns = cells[folds[0].held[0]].median_ns;
  cells[folds[0].held[0]].median_ns *= 100;
  ASSERT_OK_AND_ASSIGN(const std::vector<HeldOutPrediction> predictions,
                       PredictHeldOut(AssumedFabric(4), cells, {folds[0]}, nullptr));
  ASSERT_THAT(predictions, SizeIs(folds[0].held.size()));
  EXPECT_EQ(predictions[0].cell, folds[0].held[0]);
  EXPECT_NEAR(predictions[0].predicted_ns / truth_ns, 1, 0.05);
}

TEST(HoldoutTest, NamesAreThoseOfTheFlag) {
  for (Holdout holdout : {Holdout::kSize, Holdout::kKind, Holdout::kGroup}) {
    EXPECT_EQ(HoldoutFromName(HoldoutName(holdout)), holdout);
  }
  EXPECT_EQ(HoldoutFromName("random"), std::nullopt);
}

}  // namespace
}  // namespace meridian
