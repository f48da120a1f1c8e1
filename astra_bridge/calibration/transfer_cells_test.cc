#include "astra_bridge/calibration/transfer_cells.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::SizeIs;

TransferSample Sample(CollectiveKind kind, int64_t bytes, uint32_t group, double transfer_ns) {
  TransferSample sample;
  sample.kind = kind;
  sample.bytes = bytes;
  sample.group = group;
  sample.transfer_ns = transfer_ns;
  return sample;
}

TransferSamples RunOf(std::vector<TransferSample> samples) {
  TransferSamples run;
  run.ranks = 4;
  run.groups = {{0, 1, 2, 3}, {0, 1}};
  run.samples = std::move(samples);
  return run;
}

TEST(TransferCellsTest, OneCellPerKindBytesAndGroup) {
  const std::vector<TransferCell> cells = MakeTransferCells({RunOf({
      Sample(CollectiveKind::kAllGather, 64, 0, 9),
      Sample(CollectiveKind::kAllReduce, 64, 0, 9),
      Sample(CollectiveKind::kAllReduce, 32, 0, 9),
      Sample(CollectiveKind::kAllReduce, 64, 1, 9),
  })});
  ASSERT_THAT(cells, SizeIs(4));
  EXPECT_EQ(cells[0].bytes, 32);
  EXPECT_EQ(GroupText(cells[1]), "{0,1} of 4");
  EXPECT_EQ(GroupText(cells[2]), "{0,1,2,3} of 4");
  EXPECT_EQ(cells[3].kind, CollectiveKind::kAllGather);
}

TEST(TransferCellsTest, PermutesOfOtherNumbersOfPairsAreOtherCells) {
  TransferSample one = Sample(CollectiveKind::kPointToPoint, 64, 1, 9);
  one.pairs = 1;
  TransferSample four = one;
  four.pairs = 4;
  const std::vector<TransferCell> cells = MakeTransferCells({RunOf({four, one})});
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_EQ(GroupText(cells[0]), "{0,1} of 4");
  EXPECT_EQ(GroupText(cells[1]), "4 pairs from {0,1} of 4");
}

TEST(TransferCellsTest, EachRunWarmsUpAnew) {
  const auto repeats = [](double first_ns) {
    return RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, first_ns),
                  Sample(CollectiveKind::kAllReduce, 64, 0, 10),
                  Sample(CollectiveKind::kAllReduce, 64, 0, 12)});
  };
  const std::vector<TransferCell> cells = MakeTransferCells({repeats(900), repeats(700)});
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_THAT(cells[0].transfers_ns, ElementsAre(10, 12, 10, 12));
  EXPECT_EQ(cells[0].median_ns, 11);
}

TEST(TransferCellsTest, MostTransfersSayTheProtocol) {
  TransferSamples run = RunOf({});
  run.protocols = {"", "RING_LL", "TREE_LL"};
  // The first is dropped with its time.
  for (uint32_t protocol : {2, 2, 1, 1}) {
    run.samples.push_back(Sample(CollectiveKind::kAllReduce, 64, 0, 9));
    run.samples.back().protocol = protocol;
  }
  // Runs number the names on their own.
  TransferSamples other = RunOf({Sample(CollectiveKind::kAllGather, 64, 0, 9)});
  other.protocols = {"", "TREE_LL"};
  const std::vector<TransferCell> cells = MakeTransferCells({run, other});
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_EQ(cells[0].protocol, "RING_LL");
  EXPECT_EQ(cells[1].protocol, "");
}

TEST(TransferCellsTest, RunsOfOtherSizesHaveCellsOfTheirOwn) {
  TransferSamples larger = RunOf({Sample(CollectiveKind::kAllReduce, 64, 1, 9)});
  larger.ranks = 8;
  EXPECT_THAT(MakeTransferCells({RunOf({Sample(CollectiveKind::kAllReduce, 64, 1, 9)}), larger}),
              SizeIs(2));
}

TEST(TransferCellsTest, WhatRanOnceIsKept) {
  const std::vector<TransferCell> cells =
      MakeTransferCells({RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, 900)})});
  ASSERT_THAT(cells, SizeIs(1));
  EXPECT_EQ(cells[0].median_ns, 900);
}

TEST(TransferCellsTest, TransfersThatMetOthersAreLeftOutUnlessAskedFor) {
  TransferSamples run = RunOf({Sample(CollectiveKind::kAllReduce, 64, 0, 900)});
  run.samples[0].overlapped = true;
  EXPECT_THAT(MakeTransferCells({run}), SizeIs(0));
  CellOptions options;
  options.keep_overlapped = true;
  EXPECT_THAT(MakeTransferCells({run}, options), SizeIs(1));
}

TEST(TransferCellsTest, HopsGoTheShorterWayAroundTheRun) {
  const auto hop = [](std::vector<int32_t> participants, int32_t ranks) {
    TransferCell cell;
    cell.participants = std::move(participants);
    cell.ranks = ranks;
    return LargestHop(cell);
  };
  EXPECT_EQ(hop({0, 1, 2, 3}, 4), 1);
  EXPECT_EQ(hop({0, 1}, 4), 1);
  EXPECT_EQ(hop({0, 2}, 4), 2);
  EXPECT_EQ(hop({3, 0}, 4), 1);
  EXPECT_EQ(hop({0, 1, 3}, 4), 2);
  EXPECT_EQ(hop({0, 1, 2, 3}, 8), 3);
  EXPECT_EQ(hop({0, 4, 1, 5}, 8), 4);
}

TEST(TransferCellsTest, TheNoiseFloorIsTheMeanOverCells) {
  TransferCell steady, noisy;
  steady.transfers_ns = {10, 10, 10, 10};
  noisy.transfers_ns = {10, 12, 10, 12};
  EXPECT_THAT(NoiseFloor({steady, noisy}), Optional(DoubleEq(0.1)));
  TransferCell once;
  once.transfers_ns = {10};
  EXPECT_THAT(NoiseFloor({once, steady, noisy, once}), Optional(DoubleEq(0.1)));
  EXPECT_EQ(NoiseFloor({once}), std::nullopt);
}

}  // namespace
}  // namespace meridian
