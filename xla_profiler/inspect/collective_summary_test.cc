#include "xla_profiler/inspect/collective_summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<XSpaceReport> Summarize(const XSpaceProto& space) {
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "a.pb");
  if (!reader.ok()) return reader.status();
  XSpaceReport report;
  const absl::Status status = AddCollectives(*reader, &report);
  if (!status.ok()) return status;
  return report;
}

TEST(CollectiveSummaryTest, AlikeCollectivesAreOneRow) {
  SyntheticRunOptions options;
  options.ranks = 3;
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Summarize(SyntheticRun(options)[1]));
  ASSERT_EQ(report.collectives_size(), 1);
  const CollectiveReport& row = report.collectives(0);
  EXPECT_EQ(row.kind(), "all-reduce");
  EXPECT_EQ(row.operand_bytes(), 4096);
  EXPECT_EQ(row.groups(), "{0,1,2}");
  EXPECT_EQ(row.instructions(), 1);
  EXPECT_EQ(row.events(), 3);
  // Rank 1 waits 10 us for rank 2, then 50 us of transfer; three steps.
  EXPECT_EQ(row.shortest_duration_ps(), 60000000);
  EXPECT_EQ(row.total_duration_ps(), 180000000);
  ASSERT_EQ(report.devices_size(), 1);
  EXPECT_EQ(report.devices(0).rank(), 1);
  EXPECT_EQ(report.devices(0).source(), "replica and partition");
  EXPECT_EQ(report.unresolved_size(), 0);
}

TEST(CollectiveSummaryTest, WhatIsNotResolvedIsShownWithItsReason) {
  XSpaceProto space = SyntheticRun({})[0];
  space.mutable_planes(0)->clear_event_metadata();
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Summarize(space));
  EXPECT_EQ(report.collectives_size(), 0);
  EXPECT_THAT(FormatCollectives(report),
              HasSubstr("communication kernel without HLO or annotation      3  ncclDevKernel"));
}

TEST(CollectiveSummaryTest, AProfileWithoutAStartIsSummedUpAllTheSame) {
  XSpaceProto space = SyntheticRun({})[0];
  space.mutable_planes(3)->clear_stats();
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Summarize(space));
  EXPECT_EQ(report.collectives_size(), 1);
}

}  // namespace
}  // namespace meridian
