#include "trace_alignment/collectives/collective_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"

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

// Bounds of three instances; the first two were seen to have ended at once. Rank 0 ran 30 and 20,
// rank 1 25 and 20, so it came 5 late to the first. How long the third took is not known.
TEST(SkewTest, WhereTimesAreBoundsDurationsTellSkewAndTransfer) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 0, 100});
  run.Add({op, 8, 0, 1, 100});
  run.Add({op, 9, 0, 2, 200});
  run.Add({op, 7, 1, 10, 110});
  run.Add({op, 8, 1, 11, 110});
  run.Add({op, 9, 1, 12, 210});
  const int64_t ran_ps[2][3] = {{30, 20, 0}, {25, 20, 0}};
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 3; ++i) run.profiles()[rank].events[i].ran_ps = ran_ps[rank][i];
  }
  const ResolvedRun resolved = run.Resolve();
  ASSERT_OK_AND_ASSIGN(CollectiveTable table,
                       BuildCollectiveTable(resolved.profiles, resolved.ranks, resolved.runs));
  table.PlaceByDurations(resolved.profiles);
  const std::optional<GroupTiming> first = TimingOf(table, table.instances()[0]);
  EXPECT_EQ(first->transfer_ps, 25);
  EXPECT_EQ(first->SkewPs(table.MembersOf(table.instances()[0])[0]), 5);
  EXPECT_EQ(table.MembersOf(table.instances()[0])[0].end_ps, 80);
  EXPECT_EQ(TimingOf(table, table.instances()[1])->transfer_ps, 20);
  const std::optional<GroupTiming> unknown = TimingOf(table, table.instances()[2]);
  EXPECT_EQ(unknown->transfer_ps, 0);
  EXPECT_EQ(unknown->SkewPs(table.MembersOf(table.instances()[2])[0]), 10);
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
