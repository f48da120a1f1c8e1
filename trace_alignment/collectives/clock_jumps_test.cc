#include "trace_alignment/collectives/clock_jumps.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kJumpMs = 1'000'000'000;

// Transfers take up to 100 us, executions are 200 us apart or so.
CollectiveTable FourNodes(int64_t executions, std::vector<TrueClock>* clocks) {
  std::mt19937_64 random(5);
  SimulatedRunOptions options;
  options.executions = executions;
  *clocks = RandomClocks(options.nodes, &random);
  return SimulateRun(options, *clocks, &random).Build();
}

// Returns the time in the middle of the node's ends.
int64_t MiddleOfNode(const CollectiveTable& table, uint32_t node) {
  std::vector<int64_t> ends_ps;
  for (const CollectiveMember& member : table.members()) {
    if (table.NodeOf(member) == node) ends_ps.push_back(member.end_ps);
  }
  std::sort(ends_ps.begin(), ends_ps.end());
  return ends_ps[ends_ps.size() / 2];
}

// The truth before the change and after it, half a millisecond being more than is certain here.
void ExpectFound(const CollectiveTable& table, const ClockAlignment& found, uint32_t node,
                 const TrueClock& clock, int64_t begin_ps, int64_t by_ps) {
  EXPECT_THAT(CheckAligned(table, found).violations, IsEmpty());
  const std::vector<OffsetKnot>& knots = found.nodes[node].knots;
  EXPECT_NEAR(static_cast<double>(knots.front().offset_ps),
              static_cast<double>(clock.OffsetPs(knots.front().time_ps)), 0.2 * kJumpMs);
  EXPECT_NEAR(static_cast<double>(knots.back().offset_ps),
              static_cast<double>(clock.OffsetPs(knots.back().time_ps - by_ps) + by_ps),
              0.2 * kJumpMs);
  ASSERT_FALSE(found.jumps.empty());
  EXPECT_EQ(found.jumps[0].node, node);
  EXPECT_NEAR(static_cast<double>(found.jumps[0].by_ps()), static_cast<double>(by_ps),
              0.2 * kJumpMs);
  EXPECT_NEAR(static_cast<double>(found.jumps[0].knots[0].shown_ps), static_cast<double>(begin_ps),
              10.0 * kJumpMs);
}

TEST(ClockJumpsTest, AClockThatIsSetForwardIsMappedApart) {
  std::vector<TrueClock> clocks;
  CollectiveTable table = FourNodes(400, &clocks);
  const int64_t at_ps = MiddleOfNode(table, 2);
  table.MapTimes([&](uint32_t node, int64_t time_ps) {
    return node == 2 && time_ps > at_ps ? time_ps + 20 * kJumpMs : time_ps;
  });
  const absl::StatusOr<ClockAlignment> aligned = AlignByCollectives(table, {});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  const ClockAlignment& found = *aligned;
  EXPECT_THAT(found.jumps, SizeIs(1));
  ExpectFound(table, found, 2, clocks[2], at_ps, 20 * kJumpMs);
}

// By 5 ms within 100 ms: 50,000 ppm. All-reduces every millisecond take 400 us and end within 9 us.
TEST(ClockJumpsTest, AClockThatIsSlewedIsMappedApart) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  for (int64_t i = 0; i < 400; ++i) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      run.Add({op, i, rank, i * kJumpMs,
               i * kJumpMs + kJumpMs / 5 * 2 + (i * 7 + rank * 5) % 9 * 1'000'000});
    }
  }
  CollectiveTable table = run.Build();
  const int64_t at_ps = 150 * kJumpMs;
  table.MapTimes([&](uint32_t node, int64_t time_ps) {
    if (node != 1) return time_ps;
    return time_ps + std::clamp<int64_t>((time_ps - at_ps) / 20, 0, 5 * kJumpMs);
  });
  ProbeFreeOptions no_jumps;
  no_jumps.clocks_may_jump = false;
  EXPECT_FALSE(AlignByCollectives(table, no_jumps).ok());
  const absl::StatusOr<ClockAlignment> aligned = AlignByCollectives(table, {});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_THAT(aligned->jumps, SizeIs(1));
  ExpectFound(table, *aligned, 1, TrueClock(), at_ps, 5 * kJumpMs);
}

TEST(ClockJumpsTest, ClocksThatDoNotJumpHaveNone) {
  std::vector<TrueClock> clocks;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(FourNodes(100, &clocks), {}));
  EXPECT_THAT(found.jumps, IsEmpty());
}

TEST(ClockJumpsTest, WhatIsUndoneCanBeRedone) {
  const ClockJump jump = {1, {{1000, 1000}, {3000, 1500}, {5000, 2000}}};
  EXPECT_EQ(jump.by_ps(), 3000);
  EXPECT_EQ(jump.Undo(1000), 1000);
  EXPECT_EQ(jump.Undo(3000), 1500);
  EXPECT_EQ(jump.Undo(6000), 3000);
  for (int64_t time = 0; time < 9000; time += 8) EXPECT_NEAR(jump.Redo(jump.Undo(time)), time, 4);
}

}  // namespace
}  // namespace meridian
