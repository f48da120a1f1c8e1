#include "astra_bridge/calibration/transfers.h"

#include <cmath>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

constexpr int64_t kBytes = 4096;

// RunBuilder's ops move nothing.
void SetBytes(RunBuilder* run, int64_t bytes) {
  for (ProfileCollectives& profile : run->profiles()) {
    for (CollectiveOp& op : profile.ops) op.operand_bytes = bytes;
  }
}

TEST(TransferSamplesTest, WaitingIsNoTransfer) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 9'000'000});
  run.Add({op, 7, 1, 5'000'000, 9'500'000});
  run.Add({op, 7, 2, 6'000'000, 9'200'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_EQ(taken.ranks, 3);
  EXPECT_THAT(taken.groups, ElementsAre(ElementsAre(0, 1, 2)));
  ASSERT_THAT(taken.samples, SizeIs(1));
  const TransferSample& sample = taken.samples[0];
  EXPECT_EQ(sample.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(sample.bytes, kBytes);
  // Last end 9,500 ns, last start 6,000; the last to start lasted 3,200, the first came 5,000
  // before it.
  EXPECT_EQ(sample.start_ns, 6000);
  EXPECT_EQ(sample.transfer_ns, 3500);
  EXPECT_EQ(sample.shortest_duration_ns, 3200);
  EXPECT_EQ(sample.arrival_spread_ns, 5000);
  EXPECT_EQ(sample.pairs, 0);
  EXPECT_FALSE(sample.overlapped);
}

TEST(TransferSamplesTest, APermuteIsTheMedianOfItsPairs) {
  RunBuilder run(3);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 2}, {2, 0}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 4'000'000});
  run.Add({op, 7, 1, 2'000'000, 7'000'000});
  run.Add({op, 7, 2, 1'500'000, 3'000'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_THAT(taken.groups, ElementsAre(ElementsAre(0, 1)));
  ASSERT_THAT(taken.samples, SizeIs(1));
  EXPECT_EQ(taken.samples[0].kind, CollectiveKind::kPointToPoint);
  // 0 to 1: 7,000 - 2,000; 1 to 2: 3,000 - 2,000; 2 to 0: 4,000 - 1,500.
  EXPECT_EQ(taken.samples[0].transfer_ns, 2500);
  EXPECT_EQ(taken.samples[0].shortest_duration_ns, 1500);
  EXPECT_EQ(taken.samples[0].arrival_spread_ns, 1000);
  EXPECT_EQ(taken.samples[0].pairs, 3);
}

TEST(TransferSamplesTest, KernelsNameTheProtocol) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 4'000'000});
  run.Add({op, 7, 1, 2'000'000, 7'000'000});
  for (ProfileCollectives& profile : run.profiles()) {
    profile.protocols.push_back("RING_LL");
    profile.events[0].protocol = 1;
  }
  const TransferSamples taken = TakeTransfers(run.Build());
  ASSERT_THAT(taken.samples, SizeIs(1));
  EXPECT_EQ(taken.protocols[taken.samples[0].protocol], "RING_LL");
}

TEST(TransferSamplesTest, WhatARankSendsToItselfIsNoPair) {
  RunBuilder run(2);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 0}, {0, 1}});
  SetBytes(&run, kBytes);
  run.Add({op, 7, 0, 1'000'000, 4'000'000});
  run.Add({op, 7, 1, 2'000'000, 7'000'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  ASSERT_THAT(taken.samples, SizeIs(1));
  EXPECT_EQ(taken.samples[0].pairs, 1);
  EXPECT_EQ(taken.samples[0].transfer_ns, 5000);
}

TEST(TransferSamplesTest, CollectivesThatShareARankAtATimeAreMarked) {
  RunBuilder run(4);
  const uint32_t pairs = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  const uint32_t other = run.AddOp(CollectiveKind::kAllGather, {{1, 2}});
  SetBytes(&run, kBytes);
  run.Add({pairs, 7, 0, 1'000, 9'000});
  run.Add({pairs, 7, 1, 1'000, 9'000});
  run.Add({pairs, 7, 2, 1'000, 5'000});
  run.Add({pairs, 7, 3, 1'000, 5'000});
  // Begins while rank 1 is in {0,1}, and when rank 2 is done with {2,3}.
  run.Add({other, 7, 1, 8'000, 20'000});
  run.Add({other, 7, 2, 5'000, 20'000});
  const TransferSamples taken = TakeTransfers(run.Build());
  ASSERT_THAT(taken.samples, SizeIs(3));
  for (const TransferSample& sample : taken.samples) {
    const bool is_second_pair = taken.groups[sample.group] == std::vector<int32_t>{2, 3};
    EXPECT_EQ(sample.overlapped, !is_second_pair);
  }
}

TEST(TransferSamplesTest, CountsWhatGivesNoSample) {
  RunBuilder run(2);
  const uint32_t reduce = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t broadcast = run.AddOp(CollectiveKind::kCollectiveBroadcast, {{0, 1}});
  const uint32_t alone = run.AddOp(CollectiveKind::kAllReduce, {{0}, {1}});
  SetBytes(&run, kBytes);
  run.Add({reduce, 7, 0, 100, 200});
  run.Add({broadcast, 7, 0, 300, 400});
  run.Add({broadcast, 7, 1, 300, 400});
  run.Add({alone, 7, 0, 500, 600});
  const TransferSamples taken = TakeTransfers(run.Build());
  EXPECT_THAT(taken.samples, IsEmpty());
  EXPECT_EQ(taken.incomplete, 1);
  EXPECT_EQ(taken.other_kinds, 1);
  EXPECT_EQ(taken.without_transfer, 1);
}

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

TransferCell Summarised(std::vector<double> transfers_ns) {
  TransferCell cell;
  cell.transfers_ns = std::move(transfers_ns);
  SummariseCell(&cell);
  return cell;
}

TEST(TransferCellsTest, TheErrorOfAMedianShrinksWithTheRootOfTheCount) {
  // Quartiles 100 and 140 of 80, 100, 120, 140, 160: 0.93 * 40 / sqrt(5) / 120.
  EXPECT_DOUBLE_EQ(Summarised({80, 100, 120, 140, 160}).relative_error,
                   0.93 * 40 / std::sqrt(5.0) / 120);
}

TEST(TransferCellsTest, ErrorsAreNeitherTooSmallNorTakenFromTooFew) {
  EXPECT_EQ(Summarised({100, 100, 100, 100}).relative_error, 0.02);
  EXPECT_EQ(Summarised({100, 101, 102}).relative_error, 0.3);
}

TEST(TransferCellsTest, OneWildValueMovesNothing) {
  EXPECT_EQ(Summarised({1, 2, 3, 4, 1e9}).median_ns, 3);
  EXPECT_LT(Summarised({99, 100, 100, 100, 101, 1e9}).relative_error, 0.021);
}

}  // namespace
}  // namespace meridian
