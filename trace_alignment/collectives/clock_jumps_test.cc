#include "trace_alignment/collectives/clock_jumps.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
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

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
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
                 const TrueClock& clock, int64_t by_ps) {
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
  ExpectFound(table, found, 2, clocks[2], 20 * kJumpMs);
  EXPECT_LE(found.jumps[0].begin_ps, at_ps);
  EXPECT_GT(found.jumps[0].end_ps, at_ps);
  // In so little time no clock is slewed by so much.
  EXPECT_TRUE(found.jumps[0].may_be_set);
  EXPECT_FALSE(found.jumps[0].may_be_slewed);
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
  ExpectFound(table, *aligned, 1, TrueClock(), 5 * kJumpMs);
  // At one time it cannot have been set by so much, and within that time it did run faster.
  EXPECT_FALSE(aligned->jumps[0].may_be_set);
  EXPECT_TRUE(aligned->jumps[0].may_be_slewed);
  EXPECT_GE(aligned->jumps[0].begin_ps, at_ps);
  EXPECT_LE(aligned->jumps[0].end_ps, at_ps + 105 * kJumpMs);
}

// 3,500 ppm too fast, all the time: all-reduces every 10 ms take 400 us, which that exceeds within 12.
TEST(ClockJumpsTest, AClockThatRunsFastWasNotSet) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  const TrueClock fast = {0, 3'500'000, {}};
  for (int64_t i = 0; i < 400; ++i) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      const int64_t start_ps = 10 * i * kJumpMs, end_ps = start_ps + kJumpMs / 5 * 2;
      run.Add({op, i, rank, rank == 1 ? fast.ShowsPs(start_ps) : start_ps,
               rank == 1 ? fast.ShowsPs(end_ps) : end_ps});
    }
  }
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(run.Build(), {}));
  ASSERT_THAT(found.jumps, SizeIs(1));
  EXPECT_EQ(found.jumps[0].node, 1);
  EXPECT_FALSE(found.jumps[0].may_be_set);
  EXPECT_NEAR(static_cast<double>(found.jumps[0].by_ps()), 3.5e-3 * 4000 * kJumpMs,
              static_cast<double>(found.jumps[0].uncertainty_ps));
  const NodeOffset& node = found.nodes[1];
  EXPECT_LE(std::abs(node.offset_ps - fast.OffsetPs(node.offset_at_ps + node.offset_ps)),
            node.certified_uncertainty_ps);
  EXPECT_LT(node.certified_uncertainty_ps, 2 * kJumpMs);
  EXPECT_FALSE(node.drift_ppm.has_value());
}

// Clocks of random runs are set forth, or back over times that they do not show again: whatever is
// mapped has the truth in what is certain, before the change and after it.
TEST(ClockJumpsTest, TheTruthIsInsideWhatIsCertain) {
  std::mt19937_64 random(17);
  int mapped = 0, back = 0;
  for (int run = 0; run < 60; ++run) {
    SimulatedRunOptions options;
    options.executions = 120;
    options.nodes = 2 + static_cast<uint32_t>(random() % 4);
    const std::vector<TrueClock> clocks = RandomClocks(options.nodes, &random);
    CollectiveTable table = SimulateRun(options, clocks, &random).Build();
    const uint32_t node = static_cast<uint32_t>(random() % options.nodes);
    const int64_t at_ps = MiddleOfNode(table, node);
    // Other events of the node come after the change by some tenths of a millisecond.
    int64_t next_ps = std::numeric_limits<int64_t>::max();
    for (const CollectiveMember& member : table.members()) {
      if (table.NodeOf(member) != node) continue;
      for (const int64_t time_ps : {member.start_ps, member.end_ps}) {
        if (time_ps > at_ps) next_ps = std::min(next_ps, time_ps);
      }
    }
    const bool is_back = run % 2 == 1;
    const int64_t by_ps =
        is_back ? -(next_ps - at_ps) * 9 / 10 : static_cast<int64_t>(random() % 30) * kJumpMs / 10;
    table.MapTimes([&](uint32_t n, int64_t time_ps) {
      return n == node && time_ps > at_ps ? time_ps + by_ps : time_ps;
    });
    const absl::StatusOr<ClockAlignment> aligned = AlignByCollectives(table, {});
    if (!aligned.ok() || aligned->jumps.empty()) continue;
    ++mapped;
    back += is_back ? 1 : 0;
    EXPECT_THAT(CheckAligned(table, *aligned).violations, IsEmpty());
    const ClockJump& jump = aligned->jumps[0];
    if (!jump.or_nodes.empty()) {
      EXPECT_TRUE(jump.node == node || jump.or_nodes[0] == node) << run;
    } else {
      EXPECT_EQ(jump.node, node) << run;
      EXPECT_LE(std::abs(jump.by_ps() - by_ps), jump.uncertainty_ps) << run;
    }
    for (uint32_t n = 1; n < options.nodes; ++n) {
      const NodeOffset& stated = aligned->nodes[n];
      const int64_t shown_ps = stated.offset_at_ps + stated.offset_ps;
      const bool is_after = n == node && shown_ps > at_ps;
      const int64_t true_ps =
          clocks[n].OffsetPs(shown_ps - (is_after ? by_ps : 0)) + (is_after ? by_ps : 0);
      EXPECT_LE(std::abs(stated.offset_ps - true_ps), stated.certified_uncertainty_ps)
          << "run " << run << ", node " << n << ", changed " << node;
    }
  }
  EXPECT_GE(mapped, 25);
  EXPECT_GE(back, 3);
}

// An all-reduce of 0.4 ms every 2 ms. A clock that is set forward by far more than the gap between two
// of them skips it, or the other was set back: the uncertainty holds both.
TEST(ClockJumpsTest, OfTwoNodesEitherWasSetHoweverFar) {
  for (const int64_t by_ps : {7 * kJumpMs, 300 * kJumpMs, 1000 * kJumpMs}) {
    RunBuilder run(2);
    const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
    for (int64_t i = 0; i < 80; ++i) {
      for (int64_t rank = 0; rank < 2; ++rank) {
        const int64_t start_ps = 2 * i * kJumpMs + (rank == 1 && i >= 40 ? by_ps : 0);
        run.Add({op, i, rank, start_ps, start_ps + kJumpMs / 5 * 2});
      }
    }
    ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(run.Build(), {}));
    ASSERT_THAT(found.jumps, SizeIs(1));
    ASSERT_THAT(found.jumps[0].or_nodes, SizeIs(1));
    EXPECT_EQ(found.jumps[0].node + found.jumps[0].or_nodes[0], 1);
    const NodeOffset& node = found.nodes[1];
    const int64_t shown_ps = node.offset_at_ps + node.offset_ps;
    const int64_t true_ps = shown_ps > 79 * kJumpMs ? by_ps : 0;
    EXPECT_LE(std::abs(node.offset_ps - true_ps), node.certified_uncertainty_ps);
  }
}

// Four nodes in pairs {0,1} and {2,3}, from the 30th execution on {1,2} and {0,3}, where node 0 is half
// a millisecond ahead. Any clock may be why: if it was that of node 0, the others agree all the time; if
// it was that of node 1, nodes 2 and 3 are half a millisecond behind all the time, and so is node 1 since
// then; if it was that of node 2, node 2 was until then, and node 3 is all the time.
TEST(ClockJumpsTest, WhereSeveralMayHaveChangedTheUncertaintyHoldsAll) {
  RunBuilder run(4);
  std::vector<uint32_t> ops;
  const std::vector<std::vector<int64_t>> pairs = {{0, 1}, {2, 3}, {1, 2}, {0, 3}};
  for (const auto& pair : pairs) ops.push_back(run.AddOp(CollectiveKind::kAllReduce, {pair}));
  for (int64_t i = 0; i < 60; ++i) {
    for (const size_t p : i < 30 ? std::vector<size_t>{0, 1} : std::vector<size_t>{2, 3}) {
      for (const int64_t rank : pairs[p]) {
        const int64_t start_ps = i * kJumpMs + (rank == 0 && i >= 30 ? kJumpMs / 2 : 0);
        run.Add({ops[p], i, rank, start_ps, start_ps + kJumpMs / 10});
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(run.Build(), {}));
  ASSERT_THAT(found.jumps, SizeIs(1));
  EXPECT_THAT(found.jumps[0].or_nodes, SizeIs(3));
  for (uint32_t n = 1; n < 4; ++n) {
    const NodeOffset& node = found.nodes[n];
    for (const int64_t true_ps : {int64_t{0}, -kJumpMs / 2}) {
      if (n == 1 && true_ps != 0 && node.offset_at_ps < 30 * kJumpMs) continue;
      EXPECT_LE(std::abs(node.offset_ps - true_ps), node.certified_uncertainty_ps) << n;
      EXPECT_LE(std::abs(node.offset_ps - true_ps), node.uncertainty_ps) << n;
    }
    EXPECT_LT(node.certified_uncertainty_ps, 2 * kJumpMs) << n;
  }
}

// A run of four nodes and collectives of all: whose clock it is can be told, the reference's too.
TEST(ClockJumpsTest, TheReferenceMayBeSetForward) {
  std::vector<TrueClock> clocks;
  CollectiveTable table = FourNodes(400, &clocks);
  const int64_t at_ps = MiddleOfNode(table, 0);
  table.MapTimes([&](uint32_t node, int64_t time_ps) {
    return node == 0 && time_ps > at_ps ? time_ps + 20 * kJumpMs : time_ps;
  });
  const absl::StatusOr<ClockAlignment> aligned = AlignByCollectives(table, {});
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_THAT(aligned->jumps, SizeIs(1));
  ExpectFound(table, *aligned, 0, TrueClock(), 20 * kJumpMs);
  // The others are on its clock as it was before.
  const OffsetKnot& last = aligned->nodes[1].knots.back();
  EXPECT_NEAR(static_cast<double>(last.offset_ps),
              static_cast<double>(clocks[1].OffsetPs(last.time_ps)), 0.2 * kJumpMs);
}

// All-reduces of 400 us, every millisecond, within groups of nodes, after one of 10 ms of all. The
// clock of one node is set forward by 7 ms in the middle.
CollectiveTable GroupsWithJump(int64_t nodes, const std::vector<std::vector<int64_t>>& groups,
                               uint32_t jumping, int64_t by_ms = 7) {
  RunBuilder run(nodes);
  std::vector<uint32_t> ops;
  for (const std::vector<int64_t>& group : groups) {
    ops.push_back(run.AddOp(CollectiveKind::kAllReduce, {group}));
  }
  std::vector<int64_t> all(static_cast<size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  const uint32_t first = run.AddOp(CollectiveKind::kAllReduce, {all});
  for (const int64_t rank : all) run.Add({first, 0, rank, 0, 10 * kJumpMs});
  for (int64_t i = 0; i < 100; ++i) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int64_t rank : groups[g]) {
        const int64_t start_ps = (20 + 2 * i + static_cast<int64_t>(g) % 2) * kJumpMs;
        run.Add({ops[g], i, rank, start_ps,
                 start_ps + kJumpMs / 5 * 2 + (i * 7 + rank * 5) % 9 * 1'000'000});
      }
    }
  }
  CollectiveTable table = run.Build();
  table.MapTimes([&](uint32_t node, int64_t time_ps) {
    return node == jumping && time_ps > 119 * kJumpMs + kJumpMs / 2 ? time_ps + by_ms * kJumpMs
                                                                    : time_ps;
  });
  return table;
}

// All-reduces of 4 ms, of 20 ms after the reference was set by 3 s; there node 1 comes 15 ms late, so that
// what is certain of the 3 s, 2980 to 3005 ms, has another middle. If it was the reference, it is in the
// middle of its times that it is so uncertain, which is another middle than that of the true times.
TEST(ClockJumpsTest, AllAnswersAreStatedAtTheSameTime) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t i = 0; i < 40; ++i) {
    const bool is_after = i >= 30;
    const int64_t start_ps = 100 * i * kJumpMs;
    const int64_t end_ps = start_ps + (is_after ? 20 : 4) * kJumpMs;
    const int64_t by_ps = is_after ? 3000 * kJumpMs : 0;
    run.Add({op, i, 0, start_ps + by_ps, end_ps + by_ps});
    run.Add({op, i, 1, start_ps + (is_after ? 15 * kJumpMs : 0), end_ps});
  }
  ProbeFreeOptions options;
  options.end_agreement = false;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(run.Build(), options));
  const NodeOffset& node = found.nodes[0];
  EXPECT_LE(std::abs(node.offset_ps - 3000 * kJumpMs), node.certified_uncertainty_ps);
}

// All-reduces every 10 ms from 0 to 100 ms and from 200 to 300 ms; in between node 1 is at 150 ms in one
// that the others are in from 145 to 155 ms, and at 155.5 ms in one from 150.5 to 160.5 ms. At 152 ms it
// is set back by 7 ms, so that it shows the second of these first: -1.9 ms at most, and then -5.1 ms at
// least, as if it ran slower from 100 to 200 ms.
TEST(ClockJumpsTest, AClockThatMayHaveShownTimesTwiceIsRefused) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  int64_t executions = 0;
  const auto add = [&](int64_t start_ps, int64_t end_ps, int64_t own_ps) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      const int64_t back_ps = own_ps > 152 * kJumpMs ? 7 * kJumpMs : 0;
      run.Add({op, executions, rank, rank == 1 ? own_ps - back_ps - kJumpMs / 10 : start_ps,
               rank == 1 ? own_ps - back_ps + kJumpMs / 10 : end_ps});
    }
    ++executions;
  };
  const auto add_short = [&](int64_t at_ps) {
    add(at_ps - kJumpMs / 10, at_ps + kJumpMs / 10, at_ps);
  };
  for (int64_t i = 0; i <= 10; ++i) add_short(10 * i * kJumpMs);
  add(145 * kJumpMs, 155 * kJumpMs, 150 * kJumpMs);
  add(301 * kJumpMs / 2, 321 * kJumpMs / 2, 311 * kJumpMs / 2);
  for (int64_t i = 20; i <= 30; ++i) add_short(10 * i * kJumpMs);
  EXPECT_THAT(AlignByCollectives(run.Build(), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("The clock of node 1 seems to be changed, but it may have shown "
                                 "times twice")));
}

// Nodes 0 to 2047 in a ring of pairs, which are others after a clock was changed: each of them may be the
// one, and to find out takes too long.
TEST(ClockJumpsTest, OfTooManyNodesNoneIsNamed) {
  constexpr int64_t kNodes = 2048;
  RunBuilder run(kNodes);
  IdGroups even, odd;
  for (int64_t n = 0; n < kNodes; n += 2) {
    even.Add({n, n + 1});
    odd.Add({n + 1, (n + 2) % kNodes});
  }
  const std::vector<uint32_t> ops = {run.AddOp(CollectiveKind::kAllReduce, even),
                                     run.AddOp(CollectiveKind::kAllReduce, odd)};
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t rank = 0; rank < kNodes; ++rank) {
      const int64_t start_ps = i * kJumpMs + (rank == 0 && i == 1 ? kJumpMs / 2 : 0);
      run.Add({ops[static_cast<size_t>(i)], i, rank, start_ps, start_ps + 1});
    }
  }
  EXPECT_THAT(
      AlignByCollectives(run.Build(), {}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("A clock may have been changed, but the collectives are too many to "
                         "find out whose")));
}

TEST(ClockJumpsTest, WithThreeNodesItIsTheOneThatDiffersFromBoth) {
  for (uint32_t node = 0; node < 3; ++node) {
    const std::optional<ClockJump> jump =
        FindClockJump(GroupsWithJump(3, {{0, 1, 2}}, node), /*reference_node=*/0);
    ASSERT_TRUE(jump.has_value()) << node;
    EXPECT_EQ(jump->node, node);
    EXPECT_THAT(jump->or_nodes, IsEmpty());
  }
}

TEST(ClockJumpsTest, SeveralPairsTellWhoseClockItIs) {
  for (uint32_t node = 0; node < 4; ++node) {
    const std::optional<ClockJump> jump = FindClockJump(
        GroupsWithJump(4, {{0, 1}, {0, 2}, {2, 3}, {1, 3}}, node), /*reference_node=*/0);
    ASSERT_TRUE(jump.has_value()) << node;
    EXPECT_EQ(jump->node, node);
    EXPECT_THAT(jump->or_nodes, IsEmpty());
  }
}

// Nodes 2 and 3 are tied to the others by one long collective only.
TEST(ClockJumpsTest, OnePairDoesNotTellWhoseClockItIs) {
  for (uint32_t node = 2; node < 4; ++node) {
    ASSERT_OK_AND_ASSIGN(const ClockAlignment found,
                         AlignByCollectives(GroupsWithJump(4, {{0, 1}, {2, 3}}, node), {}));
    ASSERT_THAT(found.jumps, SizeIs(1));
    ASSERT_THAT(found.jumps[0].or_nodes, SizeIs(1));
    EXPECT_EQ(found.jumps[0].node + found.jumps[0].or_nodes[0], 5);
    EXPECT_LT(found.nodes[1].uncertainty_ps, kJumpMs);
    EXPECT_GE(found.nodes[2].uncertainty_ps, 7 * kJumpMs);
    EXPECT_GE(found.nodes[3].uncertainty_ps, 7 * kJumpMs);
  }
}

// Collectives of 90 us every 100 us; from the 40th on a node ends 300 us after the others, but for
// the first time, and its clock is 7 ms ahead. Between two ends it cannot have gained more than they
// are apart.
TEST(ClockJumpsTest, AChangeIsNoMoreThanTheTimeThatWasSkipped) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2, 3}});
  constexpr int64_t kUs = 1'000'000;
  for (int64_t i = 0; i < 80; ++i) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const int64_t start_ps = i < 40 ? i * 100 * kUs : (4000 + (i - 40) * 500) * kUs;
      const int64_t late_ps = rank == 2 && i > 40 ? 300 * kUs : 0;
      const int64_t ahead_ps = rank == 2 && i >= 40 ? 7 * kJumpMs : 0;
      run.Add({op, i, rank, start_ps + ahead_ps, start_ps + ahead_ps + 90 * kUs + late_ps});
    }
  }
  const std::optional<ClockJump> jump = FindClockJump(run.Build(), /*reference_node=*/0);
  ASSERT_TRUE(jump.has_value());
  EXPECT_EQ(jump->node, 2);
  EXPECT_TRUE(jump->GoesUp());
  EXPECT_NEAR(static_cast<double>(jump->by_ps()), 7.0 * kJumpMs, 0.1 * kJumpMs);
}

TEST(ClockJumpsTest, AClockThatIsSetBackIsNamed) {
  ProbeFreeOptions options;
  options.node_ids = {10, 20, 30, 40};
  EXPECT_THAT(AlignByCollectives(GroupsWithJump(4, {{0, 1, 2, 3}}, 2, -7), options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("The clock of node 30 seems to be changed by -7"),
                             HasSubstr("it shows times twice"))));
  EXPECT_THAT(AlignByCollectives(GroupsWithJump(4, {{0, 1}, {2, 3}}, 2, -20), options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AnyOf(HasSubstr("The clock of node 30 or 40 seems to be changed by -20"),
                             HasSubstr("The clock of node 40 or 30 seems to be changed by 20"),
                             HasSubstr("The clock of node 40 or 30 seems to be changed by 19"),
                             HasSubstr("The clock of node 30 or 40 seems to be changed by -19"))));
}

TEST(ClockJumpsTest, ContradictionsNameNodesByTheirIds) {
  ProbeFreeOptions options;
  options.node_ids = {10, 20, 30};
  options.clocks_may_jump = false;
  EXPECT_THAT(AlignByCollectives(GroupsWithJump(3, {{0, 1, 2}}, 2), options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(",30: ")));
}

TEST(ClockJumpsTest, ClocksThatDoNotJumpHaveNone) {
  std::vector<TrueClock> clocks;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment found, AlignByCollectives(FourNodes(100, &clocks), {}));
  EXPECT_THAT(found.jumps, IsEmpty());
}

TEST(ClockJumpsTest, WhatIsUndoneCanBeRedone) {
  const ClockJump jump = {1, {{1000, 1000}, {3000, 1500}, {5000, 2000}}, {}};
  EXPECT_EQ(jump.by_ps(), 3000);
  EXPECT_EQ(jump.Undo(1000), 1000);
  EXPECT_EQ(jump.Undo(3000), 1500);
  EXPECT_EQ(jump.Undo(6000), 3000);
  for (int64_t time = 0; time < 9000; time += 8) EXPECT_NEAR(jump.Redo(jump.Undo(time)), time, 4);
}

}  // namespace
}  // namespace meridian
