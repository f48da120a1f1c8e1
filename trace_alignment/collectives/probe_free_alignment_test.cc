#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/difference_constraints.h"
#include "trace_alignment/collectives/testing/aligned_check.h"
#include "trace_alignment/collectives/testing/real_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What is certain alone.
ProbeFreeOptions Certified() {
  ProbeFreeOptions options;
  options.end_agreement = false;
  return options;
}

ProbeFreeOptions WithoutDrift() {
  ProbeFreeOptions options = Certified();
  options.max_drift_ppm = 0;
  return options;
}

// Node 1 is ahead by 1000 or so: at most 1190 - 100, at least 1120 - 200.
CollectiveTable OneAllReduce() {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 1120, 1190});
  return run.Build();
}

TEST(ProbeFreeAlignmentTest, TheLargestUncertaintyIsThatOfTheWholeProfile) {
  ProbeFreeOptions options = WithoutDrift();
  options.max_drift_ppm = 100'000;
  // Node 1: in [920, 1090] around its start at 1120 and its end at 1190, widened by the drift of
  // 7 ps from one to the other.
  ASSERT_OK_AND_ASSIGN(const ClockAlignment collectives,
                       AlignByCollectives(OneAllReduce(), options));
  const int64_t within_ps = collectives.nodes[1].uncertainty_max_ps;
  EXPECT_GE(within_ps, collectives.nodes[1].uncertainty_ps);
  EXPECT_LE(within_ps, 85 + 7 + 4);
  // 1,000 ps before the start and 2,000 after the end: at worst a tenth there, twice.
  options.spans = {{0, 300}, {120, 3190}};
  ASSERT_OK_AND_ASSIGN(const ClockAlignment whole, AlignByCollectives(OneAllReduce(), options));
  EXPECT_GE(whole.nodes[1].uncertainty_max_ps, 85 + 400);
  EXPECT_LE(whole.nodes[1].uncertainty_max_ps, within_ps + 400);
  EXPECT_EQ(whole.nodes[1].uncertainty_ps, collectives.nodes[1].uncertainty_ps);
  EXPECT_EQ(whole.nodes[0].uncertainty_max_ps, 0);
}

TEST(ProbeFreeAlignmentTest, TakesTheMiddleOfTheInterval) {
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignByCollectives(OneAllReduce(), WithoutDrift()));
  const NodeOffset& node = alignment.nodes[1];
  EXPECT_TRUE(node.reachable);
  EXPECT_EQ(node.offset_ps, 1005);
  EXPECT_EQ(node.uncertainty_ps, 85);
  EXPECT_EQ(node.uncertainty_max_ps, 85);
  // The end is next to the middle of 1120 and 1190.
  EXPECT_EQ(node.offset_at_ps, 1190 - 1005);
  EXPECT_EQ(node.drift_ppm, 0);
  EXPECT_EQ(node.drift_uncertainty_ppm, 0);
  EXPECT_THAT(CheckAligned(OneAllReduce(), alignment).violations, IsEmpty());
}

TEST(ProbeFreeAlignmentTest, TheReferenceIsExact) {
  ProbeFreeOptions options = WithoutDrift();
  options.reference_node = 1;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(OneAllReduce(), options));
  EXPECT_EQ(alignment.nodes[1].offset_ps, 0);
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 0);
  EXPECT_EQ(alignment.nodes[1].drift_uncertainty_ppm, 0);
  EXPECT_EQ(alignment.nodes[0].offset_ps, -1005);
}

TEST(ProbeFreeAlignmentTest, AMinimalTransferNarrowsTheInterval) {
  ProbeFreeOptions options = WithoutDrift();
  options.min_transfer_ps = 30;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(OneAllReduce(), options));
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 55);
}

TEST(ProbeFreeAlignmentTest, TheCertifiedUncertaintyIsAboutTheStatedOffset) {
  // Node 1 always ends 100 later: by its ends it is ahead by 100. Certain is [0 - 10, 110 - 0].
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t execution = 0; execution < 4; ++execution) {
    const int64_t start_ps = 1000 * execution;
    run.Add({op, execution, 0, start_ps, start_ps + 10});
    run.Add({op, execution, 1, start_ps, start_ps + 110});
  }
  ProbeFreeOptions options = WithoutDrift();
  options.end_agreement = true;
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.Build(), options));
  EXPECT_TRUE(alignment.is_estimated);
  const NodeOffset& node = alignment.nodes[1];
  EXPECT_EQ(node.offset_ps, 100);
  EXPECT_LT(node.uncertainty_ps, 60);
  EXPECT_EQ(node.certified_uncertainty_ps, node.offset_ps + 10);
}

TEST(ProbeFreeAlignmentTest, ReachesANodeThroughAnother) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t other = run.AddOp(CollectiveKind::kAllReduce, {{1, 2}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 1120, 1190});
  run.Add({other, 7, 1, 2000, 2100});
  run.Add({other, 7, 2, 5030, 5060});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignByCollectives(run.Build(), WithoutDrift()));
  // [920 + 5030 - 2100, 1090 + 5060 - 2000]
  EXPECT_EQ(alignment.nodes[2].offset_ps, 4000);
  EXPECT_EQ(alignment.nodes[2].uncertainty_ps, 150);
}

TEST(ProbeFreeAlignmentTest, APermuteBindsTargetsToSourcesOnly) {
  RunBuilder run(2);
  const uint32_t to_1 = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}});
  const uint32_t to_0 = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{1, 0}});
  run.Add({to_1, 7, 0, 100, 150});
  run.Add({to_1, 7, 1, 1090, 1200});
  run.Add({to_0, 7, 0, 480, 560});
  run.Add({to_0, 7, 1, 1500, 1510});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignByCollectives(run.Build(), WithoutDrift()));
  // [1500 - 560, 1200 - 100]; by all members it would be [1090 - 150, 1510 - 480].
  EXPECT_EQ(alignment.nodes[1].offset_ps, 1020);
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 80);
}

TEST(ProbeFreeAlignmentTest, BroadcastAndReduceBindLeavesToTheRoot) {
  RunBuilder run(3);
  const uint32_t broadcast = run.AddOp(CollectiveKind::kCollectiveBroadcast, {{0, 1, 2}});
  const uint32_t reduce = run.AddOp(CollectiveKind::kCollectiveReduce, {{0, 1, 2}});
  run.Add({broadcast, 7, 0, 100, 110});
  run.Add({broadcast, 7, 1, 1000, 1150});
  run.Add({broadcast, 7, 2, 2000, 2170});
  run.Add({reduce, 7, 0, 300, 400});
  run.Add({reduce, 7, 1, 1350, 1360});
  run.Add({reduce, 7, 2, 2350, 2360});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignByCollectives(run.Build(), WithoutDrift()));
  // [1350 - 400, 1150 - 100] and [2350 - 400, 2170 - 100]
  EXPECT_EQ(alignment.nodes[1].offset_ps, 1000);
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 50);
  EXPECT_EQ(alignment.nodes[2].offset_ps, 2010);
  EXPECT_EQ(alignment.nodes[2].uncertainty_ps, 60);
}

TEST(ProbeFreeAlignmentTest, DriftIsStatedWithItsUncertainty) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  // Exact meetings: node 1 gains 50 in a million.
  run.Add({op, 7, 0, 0, 0});
  run.Add({op, 7, 1, 7, 7});
  run.Add({op, 8, 0, 999950, 999950});
  run.Add({op, 8, 1, 1000007, 1000007});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.Build(), {}));
  EXPECT_DOUBLE_EQ(*alignment.nodes[1].drift_ppm, 50);
  EXPECT_DOUBLE_EQ(*alignment.nodes[1].drift_uncertainty_ppm, 0);
  // On the line between, and constant outside.
  EXPECT_EQ(OffsetPs(alignment.nodes[1], 500007), 32);
  EXPECT_EQ(OffsetPs(alignment.nodes[1], 500006), 31);
  EXPECT_EQ(OffsetPs(alignment.nodes[1], -100), 7);
  EXPECT_EQ(OffsetPs(alignment.nodes[1], 2000000), 57);
}

TEST(ProbeFreeAlignmentTest, WithoutElapsedTimeDriftIsUnknown) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 0, 10});
  run.Add({op, 7, 1, 7, 7});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.Build(), {}));
  EXPECT_EQ(alignment.nodes[1].drift_ppm, std::nullopt);
  EXPECT_EQ(alignment.nodes[1].drift_uncertainty_ppm, std::nullopt);
}

TEST(ProbeFreeAlignmentTest, ANodeWithoutSharedCollectivesKeepsItsClock) {
  RunBuilder run(3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 1120, 1190});
  run.Add({op, 7, 2, 5000, 6000});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.Build(), {}));
  EXPECT_TRUE(alignment.nodes[1].reachable);
  EXPECT_FALSE(alignment.nodes[2].reachable);
  EXPECT_THAT(alignment.nodes[2].knots, IsEmpty());
  EXPECT_EQ(OffsetPs(alignment.nodes[2], 5000), 0);
}

TEST(ProbeFreeAlignmentTest, AContradictionNamesInstancesAndNodes) {
  constexpr int64_t kUs = 1'000'000;
  RunBuilder run(3);
  const uint32_t good = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  const uint32_t one = run.AddOp(CollectiveKind::kAllGather, {{1, 2}});
  const uint32_t two = run.AddOp(CollectiveKind::kReduceScatter, {{1, 2}});
  for (int64_t rank = 0; rank < 3; ++rank) run.Add({good, 7, rank, 0, 10000 * kUs});
  // Node 2 ahead of node 1 by at most 1100 us, and by at least 2900 us.
  run.Add({one, 7, 1, 20100 * kUs, 20200 * kUs});
  run.Add({one, 7, 2, 21100 * kUs, 21200 * kUs});
  run.Add({two, 7, 1, 20300 * kUs, 20400 * kUs});
  run.Add({two, 7, 2, 23300 * kUs, 23400 * kUs});
  const absl::StatusOr<ClockAlignment> alignment = AlignByCollectives(run.Build(), WithoutDrift());
  EXPECT_THAT(alignment, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  AllOf(HasSubstr("contradict each other by 1800.000 us on nodes "
                                                  "1,2: "),
                                        HasSubstr("all-gather op.1 of jit_step {1,2}"),
                                        HasSubstr("reduce-scatter op.2 of jit_step {1,2}"),
                                        HasSubstr("matched with another execution"))));
  EXPECT_EQ(std::string(alignment.status().message()).find("op.0"), std::string::npos);
}

TEST(ProbeFreeAlignmentTest, OptionsThatMakeNoSenseAreRefused) {
  ProbeFreeOptions options;
  options.reference_node = 2;
  EXPECT_THAT(KeepClocks(OneAllReduce(), options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = {};
  options.max_drift_ppm = -1;
  EXPECT_THAT(KeepClocks(OneAllReduce(), options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = {};
  options.min_transfer_ps = -1;
  EXPECT_THAT(KeepClocks(OneAllReduce(), options), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ProbeFreeAlignmentTest, KeptClocksAreStatedWithTheirInterval) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  run.Add({op, 7, 0, 100, 200});
  run.Add({op, 7, 1, 120, 190});
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, KeepClocks(run.Build(), WithoutDrift()));
  // [120 - 200, 190 - 100]
  EXPECT_EQ(alignment.nodes[1].offset_ps, 0);
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 90);
  EXPECT_EQ(OffsetPs(alignment.nodes[1], 150), 0);
}

TEST(ProbeFreeAlignmentTest, AnEstimateThatHoldsIsKept) {
  ASSERT_OK_AND_ASSIGN(
      const ClockAlignment alignment,
      AlignNearEstimate(OneAllReduce(), WithoutDrift(),
                        [](uint32_t node, int64_t) -> int64_t { return node == 1 ? 1050 : 0; }));
  EXPECT_EQ(alignment.nodes[1].offset_ps, 1050);
  EXPECT_EQ(alignment.nodes[1].uncertainty_ps, 1050 - 920);
}

TEST(ProbeFreeAlignmentTest, AnEstimateOutsideTheIntervalMovesToItsEnd) {
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignNearEstimate(OneAllReduce(), WithoutDrift(),
                                         [](uint32_t, int64_t) -> int64_t { return 5000; }));
  EXPECT_EQ(alignment.nodes[0].offset_ps, 0);
  EXPECT_EQ(alignment.nodes[1].offset_ps, 1090);
}

// Checks all that an alignment promises, against the clocks that made the table.
void ExpectAligned(const CollectiveTable& table, const std::vector<TrueClock>& clocks,
                   const ProbeFreeOptions& options, const ClockAlignment& alignment) {
  // Clocks show whole picoseconds.
  constexpr int64_t kRoundingPs = 2;
  const DriftBound drift(options.max_drift_ppm);
  EXPECT_THAT(CheckAligned(table, alignment).violations, IsEmpty());
  for (uint32_t n = 0; n < alignment.nodes.size(); ++n) {
    const NodeOffset& node = alignment.nodes[n];
    ASSERT_TRUE(node.reachable);
    const int64_t shown_ps = node.offset_at_ps + node.offset_ps;
    EXPECT_LE(std::abs(clocks[n].OffsetPs(shown_ps) - node.offset_ps),
              node.uncertainty_ps + kRoundingPs);
    EXPECT_LE(std::abs(*node.drift_ppm - static_cast<double>(clocks[n].drift_ppb) * 1e-3),
              *node.drift_uncertainty_ppm + 1e-3);
    EXPECT_LE(node.uncertainty_ps, node.uncertainty_max_ps);
    for (size_t k = 0; k < node.knots.size(); ++k) {
      const OffsetKnot& knot = node.knots[k];
      EXPECT_LE(std::abs(clocks[n].OffsetPs(knot.time_ps) - knot.offset_ps),
                node.uncertainty_max_ps + kRoundingPs);
      if (k == 0) continue;
      EXPECT_LE(std::abs(knot.offset_ps - node.knots[k - 1].offset_ps),
                drift.AllowancePs(knot.time_ps - node.knots[k - 1].time_ps));
    }
  }
}

TEST(ProbeFreeAlignmentTest, SimulatedRunsAreAlignedWithinTheirIntervals) {
  std::mt19937_64 random(7);
  for (uint32_t trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    SimulatedRunOptions run;
    run.nodes = 2 + trial % 15;
    run.devices_per_node = 1 + trial % 3;
    run.executions = 5 + 10 * (trial % 7);
    const std::vector<TrueClock> clocks = RandomClocks(run.nodes, &random);
    const CollectiveTable table = SimulateRun(run, clocks, &random).Build();
    EXPECT_GT(CheckHappensBefore(table).violations.size(), 0u);

    ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(table, Certified()));
    ExpectAligned(table, clocks, {}, alignment);

    // An estimate that is 1 ms off here and there.
    ASSERT_OK_AND_ASSIGN(const ClockAlignment moved,
                         AlignNearEstimate(table, {}, [&](uint32_t node, int64_t time_ps) {
                           return clocks[node].OffsetPs(time_ps) +
                                  (time_ps / 1'000'000'000 % 2) * 1'000'000'000;
                         }));
    ExpectAligned(table, clocks, {}, moved);
  }
}

TEST(ProbeFreeAlignmentTest, TheTruthAsEstimateIsKept) {
  std::mt19937_64 random(8);
  SimulatedRunOptions run;
  const std::vector<TrueClock> clocks = RandomClocks(run.nodes, &random);
  const CollectiveTable table = SimulateRun(run, clocks, &random).Build();
  ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment,
                       AlignNearEstimate(table, {}, [&](uint32_t node, int64_t time_ps) {
                         return clocks[node].OffsetPs(time_ps);
                       }));
  for (uint32_t n = 0; n < run.nodes; ++n) {
    for (const OffsetKnot& knot : alignment.nodes[n].knots) {
      EXPECT_NEAR(knot.offset_ps, clocks[n].OffsetPs(knot.time_ps), 2);
    }
  }
}

// Real runs share one true clock; here each rank's is put off by +-50 ms and +-50 ppm, exactly.
class RealRunAlignmentTest : public ::testing::Test {
 protected:
  struct Errors {
    std::vector<int64_t> error_ps;
    int64_t max_uncertainty_ps = 0;
  };

  // Aligns the run in several ways of being off, and checks that the truth is always inside.
  static Errors Measure(const CollectiveTable& true_table) {
    constexpr int kTrials = 10;
    Errors errors;
    std::mt19937_64 random(9);
    for (int trial = 0; trial < kTrials; ++trial) {
      SCOPED_TRACE(trial);
      const std::vector<TrueClock> clocks = RandomClocks(true_table.node_count(), &random);
      CollectiveTable table = true_table;
      table.MapTimes([&](uint32_t node, int64_t time_ps) { return clocks[node].ShowsPs(time_ps); });
      EXPECT_GT(CheckHappensBefore(table).violations.size(), 0u);
      const absl::StatusOr<ClockAlignment> certain = AlignByCollectives(table, Certified());
      const absl::StatusOr<ClockAlignment> alignment = AlignByCollectives(table, {});
      EXPECT_OK(certain);
      EXPECT_OK(alignment);
      if (!certain.ok() || !alignment.ok()) return errors;
      ExpectAligned(table, clocks, {}, *certain);
      EXPECT_THAT(CheckAligned(table, *alignment).violations, IsEmpty());
      for (uint32_t n = 1; n < alignment->nodes.size(); ++n) {
        const NodeOffset& node = alignment->nodes[n];
        errors.error_ps.push_back(
            std::abs(clocks[n].OffsetPs(node.offset_at_ps + node.offset_ps) - node.offset_ps));
        errors.max_uncertainty_ps = std::max(errors.max_uncertainty_ps, node.uncertainty_ps);
      }
    }
    return errors;
  }
};

TEST_F(RealRunAlignmentTest, ErrorsAndUncertaintiesStayWithinWhatIsKnown) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  constexpr int64_t kUs = 1'000'000;
  struct Limit {
    const char* folder;
    int64_t median_error_ps;
    int64_t uncertainty_ps;
  };
  // In the mesh run no collective between nodes 0 and 2, or 1 and 3, takes less than 8 ms: there
  // only the ends, which agree, say more.
  const std::vector<Limit> limits = {
      {"jax_cuda2", 50 * kUs, 300 * kUs},   {"jax_tp_cuda4", 100 * kUs, 600 * kUs},
      {"jax_cpu4", 100 * kUs, 300 * kUs},   {"sweep_cuda2", 20 * kUs, 300 * kUs},
      {"sweep_cuda4", 20 * kUs, 300 * kUs}, {"sweep_cpu4", 30 * kUs, 300 * kUs}};
  const std::vector<RealRun> runs = RealRuns();
  ASSERT_THAT(runs, SizeIs(limits.size()));
  for (size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(runs[i].folder);
    ASSERT_STREQ(runs[i].folder, limits[i].folder);
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, runs[i]));
    Errors errors = Measure(table);
    ASSERT_FALSE(errors.error_ps.empty());
    std::sort(errors.error_ps.begin(), errors.error_ps.end());
    const int64_t median_ps = errors.error_ps[errors.error_ps.size() / 2];
    RecordProperty(std::string(runs[i].folder) + "_median_error_ns", median_ps / 1000);
    RecordProperty(std::string(runs[i].folder) + "_max_uncertainty_ns",
                   errors.max_uncertainty_ps / 1000);
    EXPECT_LE(median_ps, limits[i].median_error_ps);
    EXPECT_LE(errors.max_uncertainty_ps, limits[i].uncertainty_ps);
  }
}

TEST_F(RealRunAlignmentTest, TrueClocksAreInsideTheirIntervals) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const RealRun& run : RealRuns()) {
    SCOPED_TRACE(run.folder);
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, run));
    ASSERT_OK_AND_ASSIGN(const ClockAlignment kept, KeepClocks(table, Certified()));
    ASSERT_OK_AND_ASSIGN(const ClockAlignment aligned, AlignByCollectives(table, Certified()));
    for (size_t n = 0; n < kept.nodes.size(); ++n) {
      // 0 is inside the interval; from there it is half its width, and the way to the middle more.
      EXPECT_LE(std::abs(aligned.nodes[n].offset_ps), aligned.nodes[n].uncertainty_ps);
      EXPECT_NEAR(kept.nodes[n].uncertainty_ps,
                  aligned.nodes[n].uncertainty_ps + std::abs(aligned.nodes[n].offset_ps), 1);
    }
  }
}

}  // namespace
}  // namespace meridian
