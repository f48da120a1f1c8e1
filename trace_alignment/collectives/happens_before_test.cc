#include "trace_alignment/collectives/happens_before.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/real_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ranks and gap of each violation: (ended, started, gap).
std::vector<std::tuple<int, int, int>> Violations(const CollectiveTable& table) {
  std::vector<std::tuple<int, int, int>> found;
  for (const Violation& violation : CheckHappensBefore(table).violations) {
    found.emplace_back(table.members()[violation.ended].rank,
                       table.members()[violation.started].rank, violation.gap_ps);
  }
  return found;
}

// One execution of an op, with these starts and ends by rank.
struct Times {
  int64_t start_ps;
  int64_t end_ps;
};
void AddAll(uint32_t op, const std::vector<Times>& times, RunBuilder* run) {
  for (size_t rank = 0; rank < times.size(); ++rank) {
    run->Add({op, 7, static_cast<int64_t>(rank), times[rank].start_ps, times[rank].end_ps});
  }
}

CollectiveTable GroupTable(CollectiveKind kind, const std::vector<Times>& times) {
  RunBuilder run(static_cast<uint32_t>(times.size()));
  std::vector<int64_t> everybody;
  for (size_t rank = 0; rank < times.size(); ++rank) everybody.push_back(rank);
  AddAll(run.AddOp(kind, {everybody}), times, &run);
  return run.Build();
}

TEST(HappensBeforeTest, SynchronisingKindsEndAfterEveryStart) {
  for (CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kRaggedAllToAll}) {
    EXPECT_THAT(Violations(GroupTable(kind, {{0, 20}, {10, 30}, {20, 30}})), IsEmpty());
    // Rank 0 ends before both others start; rank 2 starts last.
    EXPECT_THAT(Violations(GroupTable(kind, {{0, 5}, {10, 40}, {20, 40}})),
                ElementsAre(std::make_tuple(0, 2, 15)));
  }
}

TEST(HappensBeforeTest, AnEndAtTheLastStartIsNoViolation) {
  EXPECT_THAT(Violations(GroupTable(CollectiveKind::kAllReduce, {{0, 10}, {10, 20}})), IsEmpty());
  EXPECT_THAT(Violations(GroupTable(CollectiveKind::kAllReduce, {{0, 9}, {10, 20}})),
              ElementsAre(std::make_tuple(0, 1, 1)));
}

TEST(HappensBeforeTest, OnlyTargetsWaitForTheirSources) {
  RunBuilder run(3);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 2}});
  // Rank 0 ends before all others start, which is its right; rank 2 before rank 1 does.
  AddAll(op, {{0, 5}, {50, 60}, {10, 40}}, &run);
  EXPECT_THAT(Violations(run.Build()), ElementsAre(std::make_tuple(2, 1, 10)));
}

TEST(HappensBeforeTest, AReceiveWaitsForItsSend) {
  RunBuilder run(2);
  const uint32_t send = run.AddPairsOp(CollectiveKind::kSend, {{0, 1}});
  const uint32_t receive = run.AddPairsOp(CollectiveKind::kRecv, {{0, 1}});
  run.Add({send, 7, 0, 100, 200});
  run.Add({receive, 7, 1, 10, 90});
  // An eager send may end before its receive starts.
  run.Add({send, 8, 0, 300, 310});
  run.Add({receive, 8, 1, 400, 410});
  EXPECT_THAT(Violations(run.Build()), ElementsAre(std::make_tuple(1, 0, 10)));
}

TEST(HappensBeforeTest, NobodyEndsABroadcastBeforeItsRootStarts) {
  // Rank 2 starts after rank 1 has ended: they do not wait for each other.
  EXPECT_THAT(
      Violations(GroupTable(CollectiveKind::kCollectiveBroadcast, {{20, 30}, {0, 25}, {40, 50}})),
      IsEmpty());
  EXPECT_THAT(
      Violations(GroupTable(CollectiveKind::kCollectiveBroadcast, {{20, 30}, {0, 12}, {0, 19}})),
      ElementsAre(std::make_tuple(1, 0, 8)));
}

TEST(HappensBeforeTest, TheRootEndsAReduceAfterEveryStart) {
  EXPECT_THAT(
      Violations(GroupTable(CollectiveKind::kCollectiveReduce, {{20, 50}, {0, 5}, {40, 45}})),
      IsEmpty());
  EXPECT_THAT(
      Violations(GroupTable(CollectiveKind::kCollectiveReduce, {{20, 30}, {0, 5}, {40, 45}})),
      ElementsAre(std::make_tuple(0, 2, 10)));
}

TEST(HappensBeforeTest, CountsWhatIsCheckedAndWhatIsNotMatched) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  AddAll(op, {{0, 5}, {0, 5}, {0, 5}}, &run);
  // Run 8 lacks rank 2, run 9 all but rank 0, and one event has no run.
  run.Add({op, 8, 0, 10, 15});
  run.Add({op, 8, 1, 16, 18});
  run.Add({op, 9, 0, 20, 25});
  run.Add({op, kUnknownId, 0, 30, 35});
  const HappensBefore result = CheckHappensBefore(run.Build());
  EXPECT_EQ(result.instances, 3);
  EXPECT_EQ(result.checked, 2);
  EXPECT_EQ(result.unmatched, 2 + 1 + 1);
  EXPECT_EQ(result.violations.size(), 1u);
}

TEST(HappensBeforeTest, OffsetsAreSubtracted) {
  const CollectiveTable table = GroupTable(CollectiveKind::kAllReduce, {{0, 100}, {510, 610}});
  EXPECT_EQ(CheckHappensBefore(table).violations.size(), 1u);
  const auto ahead = [](uint32_t node, int64_t) -> int64_t { return node == 1 ? 500 : 0; };
  EXPECT_THAT(CheckHappensBefore(table, ahead).violations, IsEmpty());
  const auto negated = [](uint32_t node, int64_t) -> int64_t { return node == 1 ? -500 : 0; };
  EXPECT_EQ(CheckHappensBefore(table, negated).violations.size(), 1u);
}

TEST(HappensBeforeTest, AViolationNamesOpGroupRanksGapAndCorrelations) {
  const CollectiveTable table =
      GroupTable(CollectiveKind::kAllReduce, {{0, 100}, {12500100, 13000000}});
  EXPECT_EQ(DescribeViolation(table, CheckHappensBefore(table).violations[0]),
            "all-reduce op.0 of jit_step {0,1}: rank 0 ended 12.500 us before rank 1 started "
            "(correlation ids 1 and 2)");
}

TEST(HappensBeforeTest, RealRunsOnTrueClocksHaveNone) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const RealRun& run : RealRuns()) {
    SCOPED_TRACE(run.folder);
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, run));
    const HappensBefore result = CheckHappensBefore(table);
    EXPECT_EQ(result.instances, static_cast<int64_t>(run.instances));
    EXPECT_EQ(result.checked, result.instances);
    EXPECT_EQ(result.unmatched, 0);
    EXPECT_THAT(result.violations, IsEmpty());
  }
}

// "Nobody ends before everybody has started", whoever takes part: what not to do.
int64_t NaiveViolations(const CollectiveTable& table) {
  struct Span {
    int64_t last_start_ps = std::numeric_limits<int64_t>::min();
    int64_t first_end_ps = std::numeric_limits<int64_t>::max();
  };
  // The n-th execution of an op on a rank is taken for the same on all ranks.
  std::map<std::pair<uint32_t, int>, Span> executions;
  std::map<std::pair<uint32_t, uint32_t>, int> seen;
  for (const CollectiveInstance& instance : table.instances()) {
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      Span& span = executions[{instance.op, seen[{instance.op, member.rank}]++}];
      span.last_start_ps = std::max(span.last_start_ps, member.start_ps);
      span.first_end_ps = std::min(span.first_end_ps, member.end_ps);
    }
  }
  return std::count_if(executions.begin(), executions.end(), [](const auto& execution) {
    return execution.second.first_end_ps < execution.second.last_start_ps;
  });
}

TEST(HappensBeforeTest, GroupsAndPairsMatter) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const RealRun& run : RealRuns()) {
    if (run.folder != std::string("jax_tp_cuda4")) continue;
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, run));
    EXPECT_GT(NaiveViolations(table), 0);
    EXPECT_THAT(CheckHappensBefore(table).violations, IsEmpty());
  }
}

}  // namespace
}  // namespace meridian
