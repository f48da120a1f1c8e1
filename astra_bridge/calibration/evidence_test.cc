#include "astra_bridge/calibration/evidence.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

TransferCell Cell(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = 4;
  cell.participants = std::move(participants);
  return cell;
}

TEST(EvidenceTest, GroupsThatAreAlikeAreOnePoint) {
  EXPECT_THAT(EvidencePoints({Cell(CollectiveKind::kAllReduce, 64, {0, 1}),
                              Cell(CollectiveKind::kAllReduce, 64, {2, 3}),
                              Cell(CollectiveKind::kAllReduce, 64, {0, 2}),
                              Cell(CollectiveKind::kAllGather, 64, {0, 1})},
                             {100, 100, 200, 100}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
}

// Variance 1; all three pairs of neighbours are unlike, or all but one are alike.
TEST(EvidenceTest, NeighboursAreThoseOfTheNextSize) {
  const std::vector<TransferCell> cells = {
      Cell(CollectiveKind::kAllReduce, 400, {0, 1}), Cell(CollectiveKind::kAllReduce, 100, {0, 1}),
      Cell(CollectiveKind::kAllReduce, 300, {0, 1}), Cell(CollectiveKind::kAllReduce, 200, {0, 1})};
  EXPECT_EQ(NeighbourCorrelation(cells, {-1, 1, 1, -1}, 0), 0);
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, {-1, 1, -1, 1}, 0), 1.0 / 3);
}

TEST(EvidenceTest, WhatAFitTakesIsAddedAgain) {
  const std::vector<TransferCell> cells = {
      Cell(CollectiveKind::kAllReduce, 100, {0, 1}), Cell(CollectiveKind::kAllReduce, 200, {0, 1}),
      Cell(CollectiveKind::kAllReduce, 300, {0, 1}), Cell(CollectiveKind::kAllReduce, 400, {0, 1})};
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, {1, 1, -1, -1}, 1), 1.0 / 3 + 1.0 / 4);
}

TEST(EvidenceTest, TheMeanOfAKindIsNoCorrelation) {
  const std::vector<TransferCell> cells = {
      Cell(CollectiveKind::kAllReduce, 100, {0, 1}), Cell(CollectiveKind::kAllReduce, 200, {0, 1}),
      Cell(CollectiveKind::kAllGather, 100, {0, 1}), Cell(CollectiveKind::kAllGather, 200, {0, 1})};
  EXPECT_EQ(NeighbourCorrelation(cells, {1, 1, -1, -1}, 0), 0);
}

TEST(EvidenceTest, CorrelationHasAnEnd) {
  std::vector<TransferCell> cells;
  std::vector<double> residuals;
  for (int i = 0; i < 100; ++i) {
    cells.push_back(Cell(CollectiveKind::kAllReduce, 8 + i, {0, 1}));
    residuals.push_back(i < 50 ? -1 : 1);
  }
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, residuals, 0), 0.9);
}

TEST(EvidenceTest, WidensByFreedom) {
  // sqrt(4 / 2) * 4.303 / 1.96.
  EXPECT_NEAR(Widening(4, 2, 0), 3.105, 0.005);
  EXPECT_NEAR(Widening(3, 2, 0), std::sqrt(3.0) * 12.706 / 1.96, 0.02);
  EXPECT_NEAR(Widening(10000, 2, 0), 1, 0.001);
}

// (1 + 0.5) / (1 - 0.5) = 3: of 30 degrees of freedom 10 are left.
TEST(EvidenceTest, WidensByCorrelation) {
  EXPECT_NEAR(Widening(32, 2, 0.5), std::sqrt(32.0 / 30 * 3) * 2.228 / 1.96, 0.005);
}

TEST(EvidenceTest, NoFreedomNoEnd) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Widening(2, 2, 0), kInfinity);
  EXPECT_EQ(Widening(1, 2, 0), kInfinity);
  EXPECT_EQ(Widening(4, 2, 0.5), kInfinity);
}

// As printed in tables.
TEST(StudentTest, IsTheTables) {
  EXPECT_NEAR(StudentQuantile95(1), 12.706, 0.013);
  EXPECT_NEAR(StudentQuantile95(2), 4.303, 0.004);
  EXPECT_NEAR(StudentQuantile95(3), 3.182, 0.003);
  EXPECT_NEAR(StudentQuantile95(10), 2.228, 0.002);
  EXPECT_NEAR(StudentQuantile95(30), 2.042, 0.002);
  EXPECT_NEAR(StudentQuantile95(120), 1.980, 0.002);
  EXPECT_NEAR(StudentQuantile95(1e6), 1.960, 0.001);
}

TEST(StudentTest, MoreFreedomIsNeverWorse) {
  double last = StudentQuantile95(1);
  for (double freedom = 1.5; freedom < 2000; freedom *= 1.5) {
    const double next = StudentQuantile95(freedom);
    EXPECT_LT(next, last) << freedom;
    last = next;
  }
}

}  // namespace
}  // namespace meridian
