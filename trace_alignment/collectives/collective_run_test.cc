#include "trace_alignment/collectives/collective_run.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

CollectiveRun Build(RunBuilder builder) {
  ResolvedRun resolved = builder.Resolve();
  CollectiveRun run;
  absl::StatusOr<CollectiveTable> table =
      BuildCollectiveTable(resolved.profiles, resolved.ranks, resolved.runs);
  EXPECT_OK(table);
  run.table = *std::move(table);
  run.profiles = std::move(resolved.profiles);
  for (size_t p = 0; p < run.profiles.size(); ++p) run.profiles[p].trace = p == 0 ? "a" : "b";
  return run;
}

// Ranks 0 and 1 are on node 0, 2 and 3 on node 1.
TEST(CheckOneRunTest, DevicesThatFindOnlyEachOtherAreOfAnotherRun) {
  RunBuilder builder(2, /*devices_per_node=*/2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2, 3}});
  for (int64_t rank : {0, 1}) builder.Add({op, /*run=*/1, rank, 0, 10});
  for (int64_t rank : {2, 3}) builder.Add({op, /*run=*/2, rank, 0, 10});
  EXPECT_THAT(CheckOneRun(Build(std::move(builder))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a: none of its 2")));
}

TEST(CheckOneRunTest, GroupsWithinANodeNeedNoOthers) {
  RunBuilder builder(2, /*devices_per_node=*/2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  for (int64_t rank : {0, 1, 2, 3}) builder.Add({op, /*run=*/1, rank, 0, 10});
  EXPECT_OK(CheckOneRun(Build(std::move(builder))));
}

TEST(CheckOneRunTest, GroupsOfOneNeedNoOthers) {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0}, {1}});
  for (int64_t rank : {0, 1}) builder.Add({op, /*run=*/1, rank, 0, 10});
  EXPECT_OK(CheckOneRun(Build(std::move(builder))));
}

TEST(CheckOneRunTest, OneSharedExecutionIsEnough) {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  builder.Add({op, /*run=*/1, 0, 0, 10});
  for (int64_t rank : {0, 1}) builder.Add({op, /*run=*/2, rank, 20, 30});
  EXPECT_OK(CheckOneRun(Build(std::move(builder))));
}

CollectiveRun TwoProfiles() {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t rank : {0, 1}) builder.Add({op, /*run=*/1, rank, 20, 30});
  return Build(std::move(builder));
}

TEST(CheckOneRunTest, WhatWasRecordedHoursApartIsOfTwoRuns) {
  CollectiveRun run = TwoProfiles();
  run.profiles[1].base_ns = run.profiles[0].base_ns + int64_t{15 * 3600} * 1'000'000'000;
  EXPECT_THAT(CheckOneRun(run), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("b: recorded over 15 hours after a")));
  EXPECT_OK(CheckOneRun(run, /*clocks_are_measured=*/true));
  run.profiles[1].base_ns = run.profiles[0].base_ns + int64_t{600} * 1'000'000'000;
  EXPECT_OK(CheckOneRun(run));
}

TEST(CheckOneRunTest, ProfilesThatSpeakOfDifferentJobsAreOfTwoRuns) {
  CollectiveRun run = TwoProfiles();
  run.profiles[0].stated_ranks = 2;
  EXPECT_OK(CheckOneRun(run));
  run.profiles[1].stated_ranks = 8;
  EXPECT_THAT(CheckOneRun(run), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("b: its job has 8 ranks, that of a has 2")));
}

}  // namespace
}  // namespace meridian
