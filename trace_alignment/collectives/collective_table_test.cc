#include "trace_alignment/collectives/collective_table.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/real_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// The instance in short: "op.0: 0[100,200] 1[150,201]", pairs as "0>1", missing as "-1".
std::string Brief(const CollectiveTable& table, const CollectiveInstance& instance) {
  std::string text = table.OpOf(instance).instruction + ":";
  for (const CollectiveMember& member : table.MembersOf(instance)) {
    text += " " + std::to_string(member.rank) + "[" + std::to_string(member.start_ps) + "," +
            std::to_string(member.end_ps) + "]";
  }
  for (const MemberPair& pair : table.PairsOf(instance)) {
    text += " " + std::to_string(table.MembersOf(instance)[pair.source].rank) + ">" +
            std::to_string(table.MembersOf(instance)[pair.target].rank);
  }
  if (instance.missing > 0) text += " -" + std::to_string(instance.missing);
  return text;
}

std::vector<std::string> Brief(const CollectiveTable& table) {
  std::vector<std::string> lines;
  for (const CollectiveInstance& instance : table.instances()) {
    lines.push_back(Brief(table, instance));
  }
  return lines;
}

TEST(CollectiveTableTest, AnInstanceIsAnExecutionByAGroup) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  for (int64_t rank = 0; rank < 4; ++rank) {
    run.Add({op, 7, rank, 100 + 10 * rank, 200});
    run.Add({op, 8, rank, 300 - 10 * rank, 400});
  }
  const CollectiveTable table = run.Build();
  EXPECT_THAT(Brief(table),
              ElementsAre("op.0: 0[100,200] 1[110,200]", "op.0: 2[120,200] 3[130,200]",
                          "op.0: 2[280,400] 3[270,400]", "op.0: 0[300,400] 1[290,400]"));
  EXPECT_EQ(table.unplaced_events(), 0);
  EXPECT_EQ(DescribeInstance(table, table.instances()[1]), "all-reduce op.0 of jit_step {2,3}");
}

TEST(CollectiveTableTest, MembersKnowTheirNodeEventAndCorrelation) {
  RunBuilder run(2, /*devices_per_node=*/2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllGather, {{0, 1, 2, 3}});
  for (int64_t rank = 0; rank < 4; ++rank) run.Add({op, 7, rank, 100 - rank, 200});
  const CollectiveTable table = run.Build();
  std::vector<std::pair<uint32_t, uint32_t>> node_and_event;
  std::vector<uint64_t> correlations;
  for (const CollectiveMember& member : table.members()) {
    node_and_event.emplace_back(table.NodeOf(member), member.event);
    correlations.push_back(member.correlation_id);
  }
  EXPECT_THAT(node_and_event, ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 0), Pair(1, 1)));
  // Profiles are sorted by start: rank 1 before rank 0.
  EXPECT_THAT(correlations, ElementsAre(2, 1, 4, 3));
}

TEST(CollectiveTableTest, APermuteIsOneInstancePerExecution) {
  RunBuilder run(4);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {2, 0}});
  for (int64_t rank = 0; rank < 4; ++rank) run.Add({op, 7, rank, 100, 200});
  // Rank 3 has no part in it, but runs it.
  EXPECT_THAT(Brief(run.Build()),
              ElementsAre("op.0: 0[100,200] 1[100,200] 2[100,200] 3[100,200] 0>1 2>0"));
}

TEST(CollectiveTableTest, TheFirstOfAGroupIsItsRoot) {
  RunBuilder run(3);
  const uint32_t broadcast = run.AddOp(CollectiveKind::kCollectiveBroadcast, {{2, 0, 1}});
  const uint32_t reduce = run.AddOp(CollectiveKind::kCollectiveReduce, {{1, 0, 2}});
  for (int64_t rank = 0; rank < 3; ++rank) {
    run.Add({broadcast, 7, rank, 100, 200});
    run.Add({reduce, 7, rank, 300, 400});
  }
  EXPECT_THAT(Brief(run.Build()), ElementsAre("op.0: 0[100,200] 1[100,200] 2[100,200] 2>0 2>1",
                                              "op.1: 0[300,400] 1[300,400] 2[300,400] 0>1 2>1"));
}

TEST(CollectiveTableTest, ASendAndItsReceiveAreOneInstance) {
  RunBuilder run(3);
  const std::vector<SourceTargetPair> chain = {{0, 1}, {1, 2}};
  const uint32_t send = run.AddPairsOp(CollectiveKind::kSend, chain);
  const uint32_t receive = run.AddPairsOp(CollectiveKind::kRecv, chain);
  run.Add({send, 7, 0, 100, 200});
  run.Add({receive, 7, 1, 110, 210});
  run.Add({send, 7, 1, 120, 220});
  run.Add({receive, 7, 2, 130, 230});
  const CollectiveTable table = run.Build();
  EXPECT_THAT(Brief(table),
              ElementsAre("op.0: 0[100,200] 1[110,210] 1[120,220] 2[130,230] 0>1 1>2"));
  const absl::Span<const MemberPair> pairs = table.PairsOf(table.instances()[0]);
  // Rank 1 receives as member 1 and sends as member 2.
  EXPECT_EQ(pairs[0].target, 1u);
  EXPECT_EQ(pairs[1].source, 2u);
}

TEST(CollectiveTableTest, SendsAndReceivesOfUnequalNumberAreNotJoined) {
  RunBuilder run(2);
  const std::vector<SourceTargetPair> pair = {{0, 1}};
  const uint32_t send = run.AddPairsOp(CollectiveKind::kSend, pair);
  run.AddPairsOp(CollectiveKind::kSend, pair);
  const uint32_t receive = run.AddPairsOp(CollectiveKind::kRecv, pair);
  run.Add({send, 7, 0, 100, 200});
  run.Add({receive, 7, 1, 110, 210});
  EXPECT_THAT(Brief(run.Build()), ElementsAre("op.0: 0[100,200] -1", "op.2: 1[110,210] -1"));
}

TEST(CollectiveTableTest, MissingMembersAreCounted) {
  RunBuilder run(3);
  const uint32_t all = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  const uint32_t permute =
      run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 2}, {2, 0}});
  run.Add({all, 7, 0, 100, 200});
  run.Add({all, 7, 2, 100, 200});
  run.Add({permute, 7, 0, 300, 400});
  run.Add({permute, 7, 2, 300, 400});
  EXPECT_THAT(Brief(run.Build()),
              ElementsAre("op.0: 0[100,200] 2[100,200] -1", "op.1: 0[300,400] 2[300,400] 2>0 -1"));
}

TEST(CollectiveTableTest, WithoutParticipantsAnEventHasNoInstance) {
  RunBuilder run(2);
  const uint32_t no_group = run.AddOp(CollectiveKind::kAllReduce, IdGroups());
  const uint32_t no_pairs = run.AddPairsOp(CollectiveKind::kCollectivePermute, {});
  run.Add({no_group, 7, 0, 100, 200});
  run.Add({no_pairs, 7, 0, 100, 200});
  run.Add({no_pairs, 7, 1, 100, 200});
  const CollectiveTable table = run.Build();
  EXPECT_THAT(Brief(table), IsEmpty());
  EXPECT_EQ(table.unplaced_events(), 3);
}

TEST(CollectiveTableTest, WithoutRunAnEventHasNoInstance) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, kUnknownId, 0, 100, 200});
  run.Add({op, 7, 1, 100, 200});
  const CollectiveTable table = run.Build();
  EXPECT_THAT(Brief(table), ElementsAre("op.0: 1[100,200] -1"));
  EXPECT_EQ(table.unplaced_events(), 1);
}

TEST(CollectiveTableTest, TimesCountFromTheEarliestBase) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 100, 200});
  run.profiles()[0].base_ns = 1794701451406144827;
  run.profiles()[1].base_ns = 1794701451406144825;
  const CollectiveTable table = run.Build();
  EXPECT_EQ(table.base_ns(), 1794701451406144825);
  EXPECT_THAT(Brief(table), ElementsAre("op.0: 0[2100,2200] 1[100,200]"));
}

TEST(CollectiveTableTest, ProfilesTooFarApartAreRefused) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 100, 200});
  run.profiles()[1].base_ns = int64_t{41} * 3600 * 1000000000;
  EXPECT_THAT(run.TryBuild(), StatusIs(absl::StatusCode::kOutOfRange,
                                       HasSubstr("node0 begins more than 40 hours before node1")));
}

// The first event of node 1 has lost its time, so that the profile seems to begin two days earlier.
TEST(CollectiveTableTest, TheProfileWithTheDamagedTimeIsNamed) {
  constexpr int64_t kTwoDaysNs = int64_t{48} * 3600 * 1'000'000'000;
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 100 + kTwoDaysNs * 1000, 200 + kTwoDaysNs * 1000});
  run.profiles()[0].base_ns = kTwoDaysNs;
  run.profiles()[1].base_ns = 0;
  EXPECT_THAT(
      run.TryBuild(),
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("node1: a collective lies more than 40 hours from the profile's")));
}

TEST(CollectiveTableTest, MapTimesReplacesStartsAndEndsByNode) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 150, 250});
  CollectiveTable table = run.Build();
  table.MapTimes([](uint32_t node, int64_t time_ps) { return time_ps + 1000 * node; });
  EXPECT_THAT(Brief(table), ElementsAre("op.0: 0[100,200] 1[1150,1250]"));
}

TEST(CollectiveTableTest, RealRunsAreComplete) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const RealRun& run : RealRuns()) {
    SCOPED_TRACE(run.folder);
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, run));
    EXPECT_EQ(table.instances().size(), run.instances);
    EXPECT_EQ(table.unplaced_events(), 0);
    for (const CollectiveInstance& instance : table.instances()) EXPECT_EQ(instance.missing, 0u);
  }
}

}  // namespace
}  // namespace meridian
