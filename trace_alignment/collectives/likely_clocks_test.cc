#include "trace_alignment/collectives/likely_clocks.h"

#include <cstdlib>
#include <random>

#include "gtest/gtest.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

constexpr int64_t kLikelyUs = 1'000'000;
// By how much the clock of node 1 is ahead.
constexpr int64_t kAheadPs = 5'000 * kLikelyUs;

// All-reduces of two nodes, every 100 ms. Node 1 is always the last to start.
class TwoNodes {
 public:
  uint32_t AddOp(int64_t bytes) { return run_.AddOp(CollectiveKind::kAllReduce, {{0, 1}}, bytes); }

  // Node 1 ends `lag_us` after node 0.
  void Add(uint32_t op, int64_t duration_us, int64_t lag_us) {
    const int64_t start_ps = 100'000 * kLikelyUs * executions_;
    const int64_t end_ps = start_ps + duration_us * kLikelyUs;
    run_.Add({op, executions_, 0, start_ps, end_ps});
    run_.Add({op, executions_, 1, start_ps + duration_us / 2 * kLikelyUs + kAheadPs,
              end_ps + lag_us * kLikelyUs + kAheadPs});
    ++executions_;
  }

  NodeOffset Find() {
    absl::StatusOr<ClockAlignment> found = AlignByCollectives(run_.Build(), {});
    EXPECT_OK(found);
    return found->nodes[1];
  }

 private:
  RunBuilder run_{2};
  int64_t executions_ = 0;
};

int64_t ErrorUs(const NodeOffset& node) { return std::abs(node.offset_ps - kAheadPs) / kLikelyUs; }

// The certified interval is [-10, +5] ms around the truth or so: its middle is 2.5 ms off.
TEST(LikelyClocksTest, EndsTellWhereCollectivesAreLong) {
  TwoNodes run;
  const uint32_t op = run.AddOp(1 << 20);
  for (int64_t i = 0; i < 12; ++i) run.Add(op, 10'000, i % 3 * 10 - 10);
  const NodeOffset node = run.Find();
  EXPECT_LT(ErrorUs(node), 300);
  EXPECT_LT(node.uncertainty_ps, 3'000 * kLikelyUs);
  EXPECT_GT(node.certified_uncertainty_ps, 4'000 * kLikelyUs);
}

// Node 1 always starts last, by 5 ms: the middle is as far off as above.
TEST(LikelyClocksTest, EndsTellAfterFewExecutions) {
  TwoNodes run;
  const uint32_t op = run.AddOp(1 << 20);
  for (int64_t i = 0; i < 2; ++i) run.Add(op, 10'000, 100);
  EXPECT_LT(ErrorUs(run.Find()), 300);
}

// One small all-reduce leaves [-0.5, +1.5] ms around the truth; the ends of large ones say 2.5 ms.
TEST(LikelyClocksTest, EndsThatContradictWhatIsCertainCountLess) {
  TwoNodes run;
  const uint32_t large = run.AddOp(1 << 24), small = run.AddOp(1 << 10);
  for (int64_t i = 0; i < 12; ++i) run.Add(large, 40'000, 2'500);
  run.Add(small, 1'000, 500);
  EXPECT_LT(ErrorUs(run.Find()), 1'000);
}

TEST(LikelyClocksTest, EndsThatWanderAreHardlyDrift) {
  TwoNodes run;
  const uint32_t op = run.AddOp(1 << 20);
  for (int64_t i = 0; i < 12; ++i) run.Add(op, 10'000, 20 * i);
  const NodeOffset node = run.Find();
  EXPECT_LT(std::abs(*node.drift_ppm), 50);
  EXPECT_GT(*node.drift_uncertainty_ppm, 50);
}

TEST(LikelyClocksTest, AStragglerInSomeExecutionsDoesNotMoveClocks) {
  TwoNodes run, slowed;
  const uint32_t op = run.AddOp(1 << 20);
  slowed.AddOp(1 << 20);
  for (int64_t i = 0; i < 12; ++i) {
    run.Add(op, 10'000, i % 3 * 10 - 10);
    slowed.Add(op, 10'000, i % 6 == 5 ? 4'000 : i % 3 * 10 - 10);
  }
  EXPECT_NEAR(static_cast<double>(run.Find().offset_ps),
              static_cast<double>(slowed.Find().offset_ps), 600.0 * kLikelyUs);
}

TEST(LikelyClocksTest, SmallCollectivesWeighMore) {
  TwoNodes run;
  const uint32_t large = run.AddOp(1 << 24), small = run.AddOp(1 << 10);
  for (int64_t i = 0; i < 12; ++i) {
    run.Add(large, 40'000, 2'000 + i % 4 * 300);
    run.Add(small, 50, i % 2);
  }
  const NodeOffset node = run.Find();
  EXPECT_LT(ErrorUs(node), 20);
  EXPECT_LT(node.uncertainty_ps, 50 * kLikelyUs);
}

// What ranks always do alike cannot be told from an offset: it stays in the range.
TEST(LikelyClocksTest, RepetitionDoesNotMakeARangeVanish) {
  TwoNodes few, many;
  const uint32_t op = few.AddOp(1 << 20);
  many.AddOp(1 << 20);
  for (int64_t i = 0; i < 600; ++i) {
    if (i < 10) few.Add(op, 10'000, i % 5 * 100);
    many.Add(op, 10'000, i % 5 * 100);
  }
  EXPECT_GT(many.Find().uncertainty_ps, few.Find().uncertainty_ps * 3 / 4);
}

TEST(LikelyClocksTest, ClassesThatDisagreeWidenTheRange) {
  TwoNodes agree, disagree;
  for (TwoNodes* run : {&agree, &disagree}) {
    const uint32_t first = run->AddOp(1 << 20), second = run->AddOp(1 << 21);
    for (int64_t i = 0; i < 12; ++i) {
      run->Add(first, 10'000, i % 2);
      run->Add(second, 10'000, i % 2 + (run == &disagree ? 3'000 : 0));
    }
  }
  EXPECT_GT(disagree.Find().uncertainty_ps, agree.Find().uncertainty_ps * 5 / 4);
}

TEST(LikelyClocksTest, RangesHoldWhereTheTruthIsKnown) {
  std::mt19937_64 random(3);
  int ranks = 0, offsets = 0, drifts = 0;
  for (uint32_t trial = 0; trial < 40; ++trial) {
    SimulatedRunOptions options;
    options.nodes = 2 + trial % 7;
    options.executions = 100;
    const std::vector<TrueClock> clocks = RandomClocks(options.nodes, &random);
    ASSERT_OK_AND_ASSIGN(const ClockAlignment found,
                         AlignByCollectives(SimulateRun(options, clocks, &random).Build(), {}));
    for (uint32_t n = 1; n < options.nodes; ++n) {
      const NodeOffset& node = found.nodes[n];
      const int64_t truth_ps = clocks[n].OffsetPs(node.offset_at_ps + node.offset_ps);
      const double truth_ppm = static_cast<double>(clocks[n].drift_ppb) * 1e-3;
      ++ranks;
      offsets += std::abs(truth_ps - node.offset_ps) <= node.uncertainty_ps ? 1 : 0;
      drifts += std::abs(truth_ppm - *node.drift_ppm) <= *node.drift_uncertainty_ppm ? 1 : 0;
      EXPECT_LE(std::abs(truth_ps - node.offset_ps), node.certified_uncertainty_ps);
    }
  }
  EXPECT_GE(offsets, ranks * 9 / 10);
  EXPECT_GE(drifts, ranks * 9 / 10);
}

}  // namespace
}  // namespace meridian
