#include "pipeline/path_stage.h"

#include <string>

#include "critical_path/what_if/testing/all_reduce_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Rank 1 comes 100 us later: it computes 90 us longer, and its host has 10 us more of a gap.
class PathStageTest : public testing::Test {
 protected:
  void SetUp() override {
    PathStageOptions options;
    CombinedLink& slow = options.slow_links.emplace_back();
    slow.set_rank(1);
    slow.set_times_slower(2);
    ASSERT_OK(
        DescribeGraph(AllReduceJob({{10, 50, 5}, {20, 140, 5}}), GraphSource(), options, &report_));
  }

  RunReport report_;
};

TEST_F(PathStageTest, ThePathIsTheWholeRun) {
  double path_ms = 0;
  for (const PathPart& part : report_.path()) path_ms += part.ms();
  EXPECT_NEAR(path_ms, report_.run().wall_ms(), 1e-9);
  EXPECT_NEAR(report_.run().wall_ms(), (20 + 140 + 5 + kTransferUs) * 1e-3, 1e-9);
  // There are no steps in it.
  EXPECT_EQ(report_.run().steps(), 0);
  EXPECT_FALSE(report_.run().has_step_ms());
}

TEST_F(PathStageTest, CommunicationHasTheRoleOfATransfer) {
  int transfers = 0;
  for (const PathKind& kind : report_.path_kinds()) {
    const bool is_transfer = kind.role() == PathKind::TRANSFER;
    EXPECT_EQ(is_transfer, kind.label() == "communication") << kind.label();
    transfers += is_transfer ? 1 : 0;
  }
  EXPECT_EQ(transfers, 1);
}

TEST_F(PathStageTest, WhoWasLateIsBlamedForWhatTookLonger) {
  ASSERT_GT(report_.blame_size(), 0);
  EXPECT_EQ(report_.blame(0).rank(), 1);
  EXPECT_NEAR(report_.blame(0).caused_ms(), 0.1, 1e-6);
  EXPECT_NEAR(report_.blame(0).share(), 0.1 / report_.run().wall_ms(), 1e-6);
  EXPECT_THAT(report_.blame(0).reason(), HasSubstr("90.0 µs longer"));
}

TEST_F(PathStageTest, WhatWouldHelpIsTheScheduleRunAgain) {
  bool levelled = false;
  for (const WhatIfPart& part : report_.what_if()) {
    EXPECT_NEAR(part.step_ms() + part.saved_ms(), report_.run().wall_ms(), 1e-9) << part.what();
    if (part.change() == WhatIfPart::LINK_AS_FAST_AS_OTHERS) {
      EXPECT_EQ(part.rank(), 1);
      EXPECT_EQ(part.what(), "the link of rank 1 is as fast as the others'");
      EXPECT_NEAR(part.saved_ms(), kTransferUs / 2 * 1e-3, 1e-6);
    }
    if (part.change() != WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
    EXPECT_EQ(part.rank(), 1);
    EXPECT_EQ(part.what(), "rank 1 is as fast as the others");
    levelled = true;
    EXPECT_NEAR(part.saved_ms(), 0.1, 1e-3);
  }
  EXPECT_TRUE(levelled);
}

TEST_F(PathStageTest, OperationsAreSummedWithoutWaiting) {
  // Calls of hosts are none.
  ASSERT_THAT(report_.operations(), SizeIs(1));
  const Operation& row = report_.operations(0);
  EXPECT_EQ(row.role(), PathKind::TRANSFER);
  EXPECT_EQ(row.count(), 2);
  EXPECT_NEAR(row.total_ms(), 2 * kTransferUs * 1e-3, 1e-9);
  EXPECT_NEAR(row.path_ms(), kTransferUs * 1e-3, 1e-9);
  EXPECT_FALSE(row.has_step_ms()) << "there are no steps";
}

TEST(OperationsTest, SaysWhichRankSpendsMost) {
  PathGraph graph = AllReduceJob({{10, 50, 5}, {20, 140, 5}});
  for (Lane& lane : graph.lanes) lane.kind = TrackKind::kDevice;
  for (GraphEvent& event : graph.events) event.step = 7;
  for (GraphEdge& edge : graph.edges) {
    if (edge.bound_by == BoundBy::kCpu) edge.bound_by = BoundBy::kGpuCompute;
  }
  RunReport report;
  ASSERT_OK(DescribeGraph(graph, GraphSource(), PathStageOptions(), &report));
  ASSERT_THAT(report.operations(), SizeIs(2));
  const int at = report.operations(0).name() == "op" ? 0 : 1;
  const Operation& row = report.operations(at);
  EXPECT_EQ(row.role(), PathKind::COMPUTATION);
  EXPECT_NEAR(row.total_ms(), (50 + 140) * 1e-3, 1e-6);
  EXPECT_NEAR(row.mean_of_ranks_ms(), 95e-3, 1e-6);
  EXPECT_NEAR(row.step_ms(), 95e-3, 1e-6);
  EXPECT_EQ(row.spread_of(), 2);
  EXPECT_EQ(row.most_rank(), 1);
  EXPECT_NEAR(row.most_ms(), 140e-3, 1e-6);
  EXPECT_NEAR(row.path_ms(), 140e-3, 1e-6);
}

TEST_F(PathStageTest, TheTimelineTellsWaitingFromTransfer) {
  const Timeline& timeline = report_.timeline();
  EXPECT_FALSE(timeline.truncated());
  ASSERT_THAT(timeline.collectives(), SizeIs(1));
  const TimelineCollective& members = timeline.collectives(0);
  ASSERT_THAT(members.events(), SizeIs(2));
  // Rank 0 comes first and waits, right before its transfer.
  ASSERT_THAT(members.waits(), SizeIs(2));
  EXPECT_EQ(members.waits(0), members.events(0) - 1);
  EXPECT_EQ(timeline.kinds(timeline.events().kind(members.waits(0))), "wait");
  EXPECT_EQ(members.waits(1), -1);
  double waited_us = 0, transfer_us = 0;
  for (int i = 0; i < timeline.events().lane_size(); ++i) {
    const std::string& kind = timeline.kinds(timeline.events().kind(i));
    if (kind == "wait") waited_us += timeline.events().duration_us(i);
    if (kind == "transfer") transfer_us += timeline.events().duration_us(i);
  }
  EXPECT_NEAR(waited_us, 100, 1e-6);
  EXPECT_NEAR(transfer_us, 2 * kTransferUs, 1e-6);
}

}  // namespace
}  // namespace meridian
