#include "astra_bridge/calibration/transfer_samples.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
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

}  // namespace
}  // namespace meridian
