#include "trace_alignment/collectives/collective_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"

namespace meridian {
namespace {

TEST(SkewTest, SkewIsUntilTheLastStartAndTransferFromThereToTheLastEnd) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  run.Add({op, 7, 0, 0, 52});
  run.Add({op, 7, 1, 30, 50});
  run.Add({op, 7, 2, 10, 51});
  const CollectiveTable table = run.Build();
  const CollectiveInstance& instance = table.instances()[0];
  const std::optional<GroupTiming> timing = TimingOf(table, instance);
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->last_member, 1u);
  EXPECT_EQ(timing->transfer_ps, 22);
  EXPECT_EQ(timing->SkewPs(table.MembersOf(instance)[0]), 30);
  EXPECT_EQ(timing->SkewPs(table.MembersOf(instance)[1]), 0);
  EXPECT_EQ(timing->SkewPs(table.MembersOf(instance)[2]), 20);
}

TEST(SkewTest, APairTransfersOnceBothHaveStarted) {
  RunBuilder run(2);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 0}});
  run.Add({op, 7, 0, 0, 52});
  run.Add({op, 7, 1, 30, 50});
  const CollectiveTable table = run.Build();
  const CollectiveInstance& instance = table.instances()[0];
  EXPECT_EQ(PairTransferPs(table, instance, table.PairsOf(instance)[0]), 20);
  EXPECT_EQ(PairTransferPs(table, instance, table.PairsOf(instance)[1]), 22);
  EXPECT_EQ(TimingOf(table, instance), std::nullopt);
}

TEST(SkewTest, ALeafOfABroadcastWaitsForTheRootOnly) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kCollectiveBroadcast, {{0, 1, 2}});
  run.Add({op, 7, 0, 10, 20});
  run.Add({op, 7, 1, 0, 25});
  run.Add({op, 7, 2, 40, 50});
  const CollectiveTable table = run.Build();
  const CollectiveInstance& instance = table.instances()[0];
  EXPECT_EQ(PairTransferPs(table, instance, table.PairsOf(instance)[0]), 15);
  EXPECT_EQ(PairTransferPs(table, instance, table.PairsOf(instance)[1]), 10);
}

TEST(SkewTest, WithAMemberMissingTheLastIsNotKnown) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  run.Add({op, 7, 0, 0, 52});
  run.Add({op, 7, 1, 30, 50});
  const CollectiveTable table = run.Build();
  EXPECT_EQ(TimingOf(table, table.instances()[0]), std::nullopt);
}

}  // namespace
}  // namespace meridian
