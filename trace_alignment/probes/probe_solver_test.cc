#include "trace_alignment/probes/probe_solver.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kBaseNs = 1794701451000000000;
constexpr int64_t kSecondNs = 1000000000;

ProbeEdge Edge(int64_t src, int64_t dst, int64_t offset_ns, double weight = 1) {
  ProbeEdge edge;
  edge.src = src;
  edge.dst = dst;
  edge.midpoint_src_ns = kBaseNs;
  edge.offset_ps = offset_ns * 1000;
  edge.weight = weight;
  return edge;
}

// The sample of a node in a solution of one round.
std::optional<OffsetSample> SampleOf(const std::vector<OffsetSample>& solution, int64_t node_id) {
  for (const OffsetSample& sample : solution) {
    if (sample.node_id == node_id) return sample;
  }
  return std::nullopt;
}

TEST(ProbeSolverTest, DistributesWhatALoopIsMissing) {
  // 0 -> 1 -> 2 says 200 ns, 0 -> 2 says 230 ns: 10 ns for each of three equal edges.
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({Edge(0, 1, 100), Edge(1, 2, 100), Edge(0, 2, 230)}, 0));
  EXPECT_EQ(SampleOf(solution, 0)->offset_ps, 0);
  EXPECT_EQ(SampleOf(solution, 1)->offset_ps, 110000);
  EXPECT_EQ(SampleOf(solution, 2)->offset_ps, 220000);
  EXPECT_EQ(SampleOf(solution, 1)->midpoint_ref_ns, kBaseNs);
  // No edge is bounded.
  EXPECT_EQ(SampleOf(solution, 1)->uncertainty_ns, std::nullopt);
}

TEST(ProbeSolverTest, TrustsHeavyEdgesMore) {
  // The missing 30 ns go as 1/weight: 12, 12 and 6 ns.
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({Edge(0, 1, 100), Edge(1, 2, 100), Edge(0, 2, 230, 2)}, 0));
  EXPECT_EQ(SampleOf(solution, 1)->offset_ps, 112000);
  EXPECT_EQ(SampleOf(solution, 2)->offset_ps, 224000);
}

TEST(ProbeSolverTest, TakesEdgesInEitherDirection) {
  // D8: node 1 is only reached by its own probe of the reference, node 2 by its probe of node 1.
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({Edge(1, 0, -100), Edge(2, 1, 40)}, 0));
  EXPECT_EQ(SampleOf(solution, 1)->offset_ps, 100000);
  EXPECT_EQ(SampleOf(solution, 2)->offset_ps, 60000);
  // M is node 1's midpoint on the reference's clock.
  EXPECT_EQ(SampleOf(solution, 2)->midpoint_ref_ns, kBaseNs - 100);
}

TEST(ProbeSolverTest, AccumulatesDriftAlongPaths) {
  // D9: not the last hop's drift only.
  ProbeEdge first = Edge(0, 1, 100);
  first.rate = 10e-6;
  ProbeEdge second = Edge(2, 1, 40);
  second.rate = -20e-6;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes({first, second}, 0));
  EXPECT_NEAR(*SampleOf(solution, 1)->drift_ppm, 10, 1e-9);
  // (1 + 10e-6) / (1 - 20e-6) = 1 + 30.0006e-6.
  EXPECT_NEAR(*SampleOf(solution, 2)->drift_ppm, 30.0006, 1e-6);
}

TEST(ProbeSolverTest, TakesAllEdgesToOneInstant) {
  // Node 1 is 10 s ahead and 100 ppm fast. Its edge was measured at 10 s on its own clock, which is
  // base + 0 on the reference's; node 2 was measured 4 s later.
  ProbeEdge first = Edge(0, 1, 10 * kSecondNs);
  first.rate = 100e-6;
  ProbeEdge second = Edge(1, 2, 7);
  second.midpoint_src_ns = kBaseNs + 14 * kSecondNs;
  second.rate = 1e-6;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes({first, second}, 0));
  EXPECT_EQ(SampleOf(solution, 1)->offset_ps, 10 * kSecondNs * 1000);
  // 4 s earlier than measured: 7 ns - 4 s * 1e-6 = 7 ns - 4 us.
  EXPECT_EQ(SampleOf(solution, 2)->offset_ps, 10 * kSecondNs * 1000 + 7000 - 4000000);
}

TEST(ProbeSolverTest, NodesThatNothingConnectsHaveNoSample) {
  ProbeEdge later = Edge(0, 3, 5);
  later.round_id = 1;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({Edge(0, 1, 100), Edge(2, 3, 40), later}, 0));
  EXPECT_EQ(solution.size(), 4);
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> without, SolveProbes({Edge(2, 3, 40)}, 0));
  EXPECT_TRUE(without.empty());
}

// Once a list of rounds times nodes: 50,000 rounds of one edge each made it 2.5 billion long.
TEST(ProbeSolverTest, RoundsOfOneEdgeEachCostWhatTheirEdgesCost) {
  std::vector<ProbeEdge> edges;
  for (int i = 1; i <= 50'000; ++i) {
    edges.push_back(Edge(0, i, i));
    edges.back().round_id = i;
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(edges, 0));
  EXPECT_EQ(solution.size(), 100'000);
}

// A matrix of the nodes, once: 50,000 of them took 20 GB and their cube of steps.
TEST(ProbeSolverTest, ManyNodesCostWhatTheirEdgesCost) {
  constexpr int kNodes = 50'000;
  std::vector<ProbeEdge> edges;
  for (int i = 1; i < kNodes; ++i) {
    edges.push_back(Edge(i - 1, i, 10));
    edges.push_back(Edge(i, i / 2, 10 * (i / 2 - i)));
  }
  edges.push_back(Edge(kNodes - 1, 0, -10 * (kNodes - 1)));
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(edges, 0));
  ASSERT_EQ(solution.size(), kNodes);
  EXPECT_EQ(SampleOf(solution, kNodes / 3)->offset_ps, kNodes / 3 * int64_t{10'000});
}

TEST(ProbeSolverTest, AddsUpTheBoundsAlongTheBestPath) {
  const auto bounded = [](ProbeEdge edge, int64_t bound_ns) {
    edge.bounds = ProbeEdge::Bounds{bound_ns * 1000, 0};
    return edge;
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> chain,
                       SolveProbes({bounded(Edge(0, 1, 100), 20), bounded(Edge(1, 2, 100), 5)}, 0));
  EXPECT_NEAR(*SampleOf(chain, 0)->uncertainty_ns, 0, 1e-9);
  EXPECT_NEAR(*SampleOf(chain, 1)->uncertainty_ns, 20, 1e-6);
  EXPECT_NEAR(*SampleOf(chain, 2)->uncertainty_ns, 25, 1e-6);
  // The direct edge is 10 ns from the solution 220 and good to 6 ns: truth in [224, 236].
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> loop,
                       SolveProbes({bounded(Edge(0, 1, 100), 50), bounded(Edge(1, 2, 100), 50),
                                    bounded(Edge(0, 2, 230), 6)},
                                   0));
  EXPECT_NEAR(*SampleOf(loop, 2)->uncertainty_ns, 16, 1e-6);
  // Corridors that no truth fits: the bounds are worth nothing.
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> broken,
                       SolveProbes({bounded(Edge(0, 1, 100), 5), bounded(Edge(0, 1, 200), 5)}, 0));
  EXPECT_EQ(SampleOf(broken, 1)->uncertainty_ns, std::nullopt);
}

// Each pass over the edges went one node further where ids descend along the chain.
TEST(ProbeSolverTest, BoundsOfALongChainAreFoundInOnePass) {
  constexpr int kNodes = 200'000;
  std::vector<ProbeEdge> edges;
  for (int i = 1; i < kNodes; ++i) {
    edges.push_back(Edge(kNodes - i, i == 1 ? 0 : kNodes - i + 1, 10));
    edges.back().bounds = ProbeEdge::Bounds{2000, 0};
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(edges, 0));
  ASSERT_EQ(solution.size(), kNodes);
  EXPECT_NEAR(*SampleOf(solution, kNodes - 100)->uncertainty_ns, 200, 1e-3);
  EXPECT_NEAR(*SampleOf(solution, 1)->uncertainty_ns, 2.0 * (kNodes - 1), 1e-3);
}

// The best way to each node leads over the last one, against the order of the links.
TEST(ProbeSolverTest, BoundsOfAChainAgainstTheOrderTakeFewPasses) {
  constexpr int kNodes = 20'000;
  std::vector<ProbeEdge> edges;
  for (int i = 1; i < kNodes; ++i) {
    edges.push_back(Edge(0, i, 10));
    edges.back().bounds = ProbeEdge::Bounds{i == kNodes - 1 ? 2000 : int64_t{1} << 50, 0};
    if (i == 1) continue;
    edges.push_back(Edge(i, i - 1, 0));
    edges.back().bounds = ProbeEdge::Bounds{2000, 0};
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(edges, 0));
  ASSERT_TRUE(SampleOf(solution, 1)->uncertainty_ns.has_value());
  EXPECT_NEAR(*SampleOf(solution, 1)->uncertainty_ns, 2.0 * (kNodes - 1), 1e-3);
}

TEST(ProbeSolverTest, BoundsWidenAwayFromTheMeasurement) {
  ProbeEdge first = Edge(0, 1, 0);
  first.bounds = ProbeEdge::Bounds{1000, 1e-6};
  ProbeEdge second = Edge(0, 2, 0);
  second.bounds = ProbeEdge::Bounds{1000, 1e-6};
  second.midpoint_src_ns += kSecondNs;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes({first, second}, 0));
  EXPECT_NEAR(*SampleOf(solution, 1)->uncertainty_ns, 1, 1e-6);
  EXPECT_NEAR(*SampleOf(solution, 2)->uncertainty_ns, 1001, 1e-6);
}

TEST(ProbeSolverTest, RefusesClocksThatAreYearsApart) {
  ProbeEdge edge = Edge(1, 2, 5);
  edge.midpoint_src_ns = 0;
  EXPECT_THAT(SolveProbes({Edge(0, 1, 5), edge}, 0),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("probes of round 0")));
}

TEST(ProbeSolverTest, RefusesOffsetsWhoseDifferenceNoNumberHolds) {
  constexpr int64_t kFarNs = 9'000'000'000'000'000;
  EXPECT_THAT(SolveProbes({Edge(0, 1, -kFarNs, 1), Edge(0, 1, kFarNs, 1e6)}, 0),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("106 days apart")));
}

TEST(ProbeSolverTest, FindsTheTruthBehindConsistentProbes) {
  // Clock i shows base + shift_i + (1 + rate_i) * t at true time t; node 0 is the reference.
  std::mt19937_64 random(1);
  constexpr int kNodes = 40;
  std::uniform_real_distribution<double> any_rate(-50e-6, 50e-6);
  std::uniform_int_distribution<int64_t> any_shift_ns(-kSecondNs, kSecondNs);
  std::uniform_int_distribution<int> any_node(0, kNodes - 1);
  std::vector<double> rate = {0};
  std::vector<int64_t> shift_ns = {0};
  while (rate.size() < kNodes) {
    rate.push_back(any_rate(random));
    shift_ns.push_back(any_shift_ns(random));
  }
  std::vector<ProbeEdge> edges;
  const auto measure = [&](int src, int dst, double t_ns) {
    ProbeEdge edge = Edge(src, dst, 0, 1 + src);
    // To a whole nanosecond of src time, where the true time is then taken.
    edge.midpoint_src_ns = kBaseNs + shift_ns[src] + std::llround(t_ns * (1 + rate[src]));
    const double at_ns =
        static_cast<double>(edge.midpoint_src_ns - kBaseNs - shift_ns[src]) / (1 + rate[src]);
    edge.offset_ps = (shift_ns[dst] - shift_ns[src]) * 1000 +
                     std::llround((rate[dst] - rate[src]) * at_ns * 1000);
    edge.rate = (1 + rate[dst]) / (1 + rate[src]) - 1;
    edges.push_back(edge);
  };
  measure(0, 1, 0);
  for (int i = 2; i < kNodes; ++i) measure(i, any_node(random) % i, 1e8 * (i % 7));
  for (int i = 0; i < 100; ++i) {
    const int src = any_node(random);
    const int dst = any_node(random);
    if (src != dst) measure(src, dst, 1e8 * (i % 5) + 1);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(edges, 0));
  ASSERT_EQ(solution.size(), kNodes);
  for (const OffsetSample& sample : solution) {
    const double m_ns = static_cast<double>(sample.midpoint_ref_ns - kBaseNs);
    const int64_t truth_ps =
        shift_ns[sample.node_id] * 1000 + std::llround(rate[sample.node_id] * m_ns * 1000);
    EXPECT_NEAR(static_cast<double>(sample.offset_ps - truth_ps), 0, 3) << sample.node_id;
    EXPECT_NEAR(*sample.drift_ppm, rate[sample.node_id] * 1e6, 1e-6);
  }
}

TEST(ProbeSolverTest, FeedsTheOffsetMaps) {
  ProbeEdge later = Edge(0, 1, 300);
  later.round_id = 1;
  later.midpoint_src_ns += kSecondNs;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({later, Edge(0, 1, 100)}, 0));
  const OffsetSamples offsets("probes", 0, solution);
  ASSERT_OK_AND_ASSIGN(const ClockMap map, offsets.OffsetMap(1, RunClock(kBaseNs)));
  EXPECT_EQ(map.Forward(500 * kSecondNs + 200000), 500 * kSecondNs);
}

}  // namespace
}  // namespace meridian
