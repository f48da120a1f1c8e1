#include "astra_bridge/calibration/check_reasons.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TransferCell Cell(std::vector<double> transfers_ns) {
  TransferCell cell;
  cell.bytes = 4096;
  cell.ranks = 4;
  cell.participants = {0, 1, 2, 3};
  cell.transfers_ns = std::move(transfers_ns);
  SummariseCell(&cell);
  return cell;
}

TEST(CheckReasonsTest, AFairTestHasNone) {
  EXPECT_THAT(FindReasons(Cell({100, 110, 120}), {}, {}, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, MostTransfersMetOthers) {
  CellCircumstances circumstances;
  circumstances.overlapped = 2;
  EXPECT_THAT(FindReasons(Cell({100, 110, 120}), circumstances, {}, std::nullopt),
              ElementsAre("met other collectives"));
  EXPECT_THAT(FindReasons(Cell({100, 110, 120, 130}), circumstances, {}, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, ComputationBesideCountsFromATenth) {
  CellCircumstances circumstances;
  circumstances.compute_share = 0.09;
  EXPECT_THAT(FindReasons(Cell({100}), circumstances, {}, std::nullopt), IsEmpty());
  circumstances.compute_share = 0.11;
  EXPECT_THAT(FindReasons(Cell({100}), circumstances, {}, std::nullopt),
              ElementsAre("computing beside"));
}

TEST(CheckReasonsTest, RepeatsMayVaryTooMuchToMeanAnything) {
  EXPECT_THAT(FindReasons(Cell({100, 100, 200, 200}), {}, {}, std::nullopt),
              ElementsAre("unsteady repeats (time slicing or other work)"));
}

TEST(CheckReasonsTest, WhatLastsASliceWaitedForIt) {
  EXPECT_THAT(FindReasons(Cell({2250}), {}, {{4, 2240}}, std::nullopt),
              ElementsAre("time slices of the device"));
  EXPECT_THAT(FindReasons(Cell({9000}), {}, {{4, 2240}}, std::nullopt),
              ElementsAre("time slices of the device"));
  EXPECT_THAT(FindReasons(Cell({117}), {}, {{4, 2240}}, std::nullopt), IsEmpty());
  EXPECT_THAT(FindReasons(Cell({2250}), {}, {{2, 2240}}, std::nullopt), IsEmpty());
}

TEST(CheckReasonsTest, WhatWasNotCalibratedComesFirst) {
  CalibratedRange range;
  range.sizes[CollectiveKind::kAllReduce] = {1024, 2048};
  range.group_sizes = {4};
  range.largest_hop = 1;
  range.device_kinds = {"GPU"};
  CellCircumstances circumstances;
  circumstances.overlapped = 1;
  circumstances.device_kinds = {"CPU"};
  EXPECT_THAT(FindReasons(Cell({100}), circumstances, {}, range),
              ElementsAre("size outside the calibration", "on CPU, calibrated on GPU",
                          "met other collectives"));
}

}  // namespace
}  // namespace meridian
