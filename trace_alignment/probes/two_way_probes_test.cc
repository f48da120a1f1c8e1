#include "trace_alignment/probes/two_way_probes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/probes/probe_solver.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bound = OffsetCorridor::Bound;
using Interval = OffsetCorridor::Interval;

constexpr int64_t kBaseNs = 1794701452000000000;
constexpr int64_t kSecondNs = 1000000000;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(TwoWayProbesTest, ReadsProbes) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<TwoWayProbe> probes,
      ParseTwoWayProbes("{\"src\":3,\"dst\":1,\"t1\":10,\"t2\":110,\"t3\":120,\"t4\":40}\n", "p"));
  ASSERT_EQ(probes.size(), 1);
  EXPECT_EQ(probes[0].src, 3);
  EXPECT_EQ(probes[0].dst, 1);
  EXPECT_EQ(probes[0].src_sent_ns, 10);
  EXPECT_EQ(probes[0].dst_received_ns, 110);
  EXPECT_EQ(probes[0].dst_sent_ns, 120);
  EXPECT_EQ(probes[0].src_received_ns, 40);
}

TEST(TwoWayProbesTest, NamesTheLineThatCannotBeRead) {
  const std::pair<absl::string_view, absl::string_view> kCases[] = {
      {R"({"src":0,"dst":1,"t1":NaN,"t2":2,"t3":3,"t4":4})", "t1 is NaN, not an integer"},
      {R"({"src":0,"dst":1,"t1":1,"t2":2,"t3":3})", "t4 is missing"},
      {R"({"src":1,"dst":1,"t1":1,"t2":2,"t3":3,"t4":4})", "dst is src itself"},
      {R"({"src":0,"dst":1,"t1":5,"t2":2,"t3":3,"t4":4})", "t4 is before t1"},
      {R"({"src":0,"dst":1,"t1":1,"t2":4,"t3":3,"t4":4})", "t3 is before t2"},
      {R"({"src":0,"dst":1,"t1":-1,"t2":2,"t3":3,"t4":4})", "-1 is no Unix time in ns"},
      {R"({"src":0,"dst":1,"t1":1,"t2":2,"t3":3,"t4":5000000000000000000})", "no Unix time"},
      {"[]", "the line is no JSON object"},
  };
  for (const auto& [row, reason] : kCases) {
    EXPECT_THAT(ParseTwoWayProbes(absl::StrCat("\n", row), "p.jsonl"),
                StatusIs(kInvalid, AllOf(HasSubstr("p.jsonl:2: "), HasSubstr(std::string(reason)),
                                         HasSubstr("expected e.g. {\"src\":0"))))
        << row;
  }
  EXPECT_THAT(ParseTwoWayProbes("", "p.jsonl"), StatusIs(kInvalid, HasSubstr("empty")));
}

TEST(TwoWayProbesTest, DropsIdenticalProbesAndNamesContradictions) {
  const std::string row = "{\"src\":0,\"dst\":1,\"t1\":1,\"t2\":2,\"t3\":3,\"t4\":4}\n";
  ASSERT_OK_AND_ASSIGN(const std::vector<TwoWayProbe> probes,
                       ParseTwoWayProbes(row + row, "p.jsonl"));
  EXPECT_EQ(probes.size(), 1);
  EXPECT_THAT(ParseTwoWayProbes(row + "{\"src\":0,\"dst\":1,\"t1\":1,\"t2\":2,\"t3\":3,\"t4\":5}",
                                "p.jsonl"),
              StatusIs(kInvalid, HasSubstr("p.jsonl:2: contradicts line 1")));
}

TEST(OffsetCorridorTest, OneProbeBoundsTheOffsetByItsRoundTrip) {
  ASSERT_OK_AND_ASSIGN(const OffsetCorridor corridor,
                       OffsetCorridor::Fit({{0, 300}}, {{0, 100}}, /*max_rate=*/1e-4));
  EXPECT_EQ(corridor.At(0).low_ps, 100000);
  EXPECT_EQ(corridor.At(0).high_ps, 300000);
  // Nothing but the prior limits the drift: 1 s away, 100 us on either side.
  EXPECT_EQ(corridor.At(kSecondNs).low_ps, 100000 - 100000000);
  EXPECT_EQ(corridor.At(-kSecondNs).high_ps, 300000 + 100000000);
}

TEST(OffsetCorridorTest, AllLinesBetweenTheHullsMakeTheInterval) {
  // Upper bounds 10 at 0 and 80, lower bounds 0 at 0 and 80: slopes within +-1/8.
  ASSERT_OK_AND_ASSIGN(const OffsetCorridor corridor,
                       OffsetCorridor::Fit({{0, 10}, {40, 40}, {80, 10}},
                                           {{0, 0}, {30, -7}, {80, 0}}, /*max_rate=*/0.5));
  EXPECT_EQ(corridor.min_rate(), -0.125);
  EXPECT_EQ(corridor.max_rate(), 0.125);
  EXPECT_EQ(corridor.At(40).low_ps, 0);
  EXPECT_EQ(corridor.At(40).high_ps, 10000);
  // Beyond: 80 ns after 0 at 80 with slope -1/8, and after 10 with 1/8.
  EXPECT_EQ(corridor.At(160).low_ps, -10000);
  EXPECT_EQ(corridor.At(160).high_ps, 20000);
}

TEST(OffsetCorridorTest, ReportsBoundsThatLeaveNoLine) {
  EXPECT_THAT(OffsetCorridor::Fit({{5, 10}}, {{5, 11}}, 1e-4),
              StatusIs(kInvalid, HasSubstr("contradict each other")));
  // The lower bound is above the chord of two upper bounds.
  EXPECT_THAT(OffsetCorridor::Fit({{0, 10}, {100, 10}}, {{50, 11}}, 1e-4),
              StatusIs(kInvalid, HasSubstr("contradict each other")));
  EXPECT_THAT(OffsetCorridor::Fit({{50, -1}}, {{0, 0}, {100, 0}}, 1e-4),
              StatusIs(kInvalid, HasSubstr("contradict each other")));
  // A step of 1 us within 1 ms would be 1,000 ppm.
  EXPECT_THAT(OffsetCorridor::Fit({{0, 10}}, {{1000000, 1010}}, 1e-4),
              StatusIs(kInvalid, HasSubstr("more than 100 ppm")));
  EXPECT_OK(OffsetCorridor::Fit({{0, 10}}, {{1000000, 110}}, 1.01e-4));
  EXPECT_THAT(OffsetCorridor::Fit({{0, kBaseNs}}, {{0, kBaseNs}}, 1e-4),
              StatusIs(absl::StatusCode::kOutOfRange));
}

// Whether a line leaves all bounds on their side, to 1 ps.
bool IsPossible(double rate, double offset_ns, const std::vector<Bound>& upper,
                const std::vector<Bound>& lower) {
  const auto at = [&](const Bound& bound) {
    return offset_ns + rate * static_cast<double>(bound.time_ns);
  };
  return std::all_of(upper.begin(), upper.end(),
                     [&](const Bound& b) { return at(b) <= b.offset_ns + 1e-3; }) &&
         std::all_of(lower.begin(), lower.end(),
                     [&](const Bound& b) { return at(b) >= b.offset_ns - 1e-3; });
}

// The definition: the best of all lines through two bounds, or through one with an extreme slope.
Interval BruteForce(const std::vector<Bound>& upper, const std::vector<Bound>& lower,
                    double max_rate, int64_t time_ns) {
  std::vector<Bound> all = upper;
  all.insert(all.end(), lower.begin(), lower.end());
  double low_ns = 1e300;
  double high_ns = -1e300;
  const auto consider = [&](const Bound& through, double rate) {
    const double offset_ns = through.offset_ns - rate * static_cast<double>(through.time_ns);
    if (std::abs(rate) > max_rate || !IsPossible(rate, offset_ns, upper, lower)) return;
    low_ns = std::min(low_ns, offset_ns + rate * static_cast<double>(time_ns));
    high_ns = std::max(high_ns, offset_ns + rate * static_cast<double>(time_ns));
  };
  for (const Bound& a : all) {
    consider(a, max_rate);
    consider(a, -max_rate);
    for (const Bound& b : all) {
      if (a.time_ns == b.time_ns) continue;
      consider(a, static_cast<double>(b.offset_ns - a.offset_ns) / (b.time_ns - a.time_ns));
    }
  }
  return {static_cast<int64_t>(std::floor(low_ns * 1e3)),
          static_cast<int64_t>(std::ceil(high_ns * 1e3))};
}

TEST(OffsetCorridorTest, AgreesWithBruteForce) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> any_time_ns(0, 1000000);
  std::uniform_int_distribution<int64_t> any_delay_ns(0, 400);
  std::uniform_real_distribution<double> any_rate(-1e-3, 1e-3);
  for (int trial = 0; trial < 100; ++trial) {
    const double rate = any_rate(random);
    const auto truth_ns = [&](int64_t time_ns) { return 5000 + rate * time_ns; };
    std::vector<Bound> upper;
    std::vector<Bound> lower;
    for (int i = 0; i < 2 + trial % 10; ++i) {
      const int64_t up = any_time_ns(random);
      upper.push_back({up, any_delay_ns(random) + std::llround(std::ceil(truth_ns(up)))});
      const int64_t down = any_time_ns(random);
      lower.push_back({down, std::llround(std::floor(truth_ns(down))) - any_delay_ns(random)});
    }
    ASSERT_OK_AND_ASSIGN(const OffsetCorridor corridor, OffsetCorridor::Fit(upper, lower, 2e-3));
    EXPECT_LE(corridor.min_rate(), rate);
    EXPECT_GE(corridor.max_rate(), rate);
    for (int64_t time_ns : {-500000, 0, 300000, 1000000, 5000000}) {
      const Interval interval = corridor.At(time_ns);
      const Interval expected = BruteForce(upper, lower, 2e-3, time_ns);
      // IsPossible's tolerance of 1 ps, extrapolated.
      EXPECT_NEAR(interval.low_ps, expected.low_ps, 200) << trial;
      EXPECT_NEAR(interval.high_ps, expected.high_ps, 200) << trial;
      EXPECT_LE(interval.low_ps, std::ceil(truth_ns(time_ns) * 1e3));
      EXPECT_GE(interval.high_ps, std::floor(truth_ns(time_ns) * 1e3));
    }
  }
}

// A probe at src time t_ns, with the given one-way delays.
TwoWayProbe Probe(int64_t src, int64_t dst, int64_t t_ns, int64_t ahead_ns, int64_t to_ns,
                  int64_t fro_ns) {
  TwoWayProbe probe;
  probe.src = src;
  probe.dst = dst;
  probe.src_sent_ns = t_ns;
  probe.dst_received_ns = t_ns + to_ns + ahead_ns;
  probe.dst_sent_ns = probe.dst_received_ns + 50;
  probe.src_received_ns = t_ns + to_ns + 50 + fro_ns;
  return probe;
}

TEST(TwoWayProbesTest, EstimatesTheMiddleOfTheCorridor) {
  // Bounds 1000 + 200 at t1 and 1000 - 100 at t4 = t1 + 350: the drift of 100 ppm is nothing here.
  const TwoWayEstimates estimates = EstimateEdges({Probe(0, 1, kBaseNs, 1000, 200, 100)});
  EXPECT_TRUE(estimates.notes.empty());
  ASSERT_EQ(estimates.edges.size(), 1);
  const ProbeEdge& edge = estimates.edges[0];
  EXPECT_EQ(edge.round_id, kBaseNs / (4 * kSecondNs));
  EXPECT_EQ(edge.midpoint_src_ns, kBaseNs + 175);
  EXPECT_NEAR(edge.offset_ps, 1050000, 1);
  // 150 ns, and 175 ns * 100 ppm = 17.5 ps.
  EXPECT_NEAR(edge.bounds->offset_ps, 150018, 1);
  EXPECT_NEAR(edge.rate, 0, 1e-12);
  EXPECT_NEAR(edge.bounds->rate, 1e-4, 1e-12);
}

TEST(TwoWayProbesTest, TakesProbesOfEitherSide) {
  // Node 1, 1000 ns ahead, asks node 0: what is said about node 1 stays the same.
  const TwoWayEstimates estimates = EstimateEdges({Probe(1, 0, kBaseNs + 1000, -1000, 200, 100)});
  ASSERT_EQ(estimates.edges.size(), 1);
  EXPECT_EQ(estimates.edges[0].src, 0);
  EXPECT_EQ(estimates.edges[0].dst, 1);
  // Lower bound 1000 - 200, upper bound 1000 + 100.
  EXPECT_NEAR(estimates.edges[0].offset_ps, 950000, 1);
  const TwoWayEstimates both = EstimateEdges(
      {Probe(1, 0, kBaseNs + 1000, -1000, 200, 100), Probe(0, 1, kBaseNs, 1000, 200, 100)});
  ASSERT_EQ(both.edges.size(), 1);
  EXPECT_NEAR(both.edges[0].offset_ps, 1000000, 30);
}

TEST(TwoWayProbesTest, ReportsEmptyCorridorsAndKeepsTheRest) {
  // The clock of node 1 is set by 1 ms in the first window.
  const TwoWayEstimates estimates = EstimateEdges({
      Probe(0, 1, kBaseNs, 1000, 200, 100),
      Probe(0, 1, kBaseNs + 1000000, 1001000, 200, 100),
      Probe(0, 1, kBaseNs + 4 * kSecondNs, 1001000, 200, 100),
  });
  EXPECT_EQ(estimates.edges.size(), 1);
  ASSERT_EQ(estimates.notes.size(), 1);
  EXPECT_THAT(estimates.notes[0], HasSubstr("probes between nodes 0 and 1 in window"));
  EXPECT_THAT(estimates.notes[0], HasSubstr("more than 100 ppm"));
}

TEST(TwoWayProbesTest, TheTruthIsWithinTheUncertaintyOfTheSolution) {
  // Five nodes in a ring with chords; delays of 5 us and more, longer on the way back.
  std::mt19937_64 random(2);
  std::exponential_distribution<double> queue_ns(1.0 / 20000);
  const int64_t kAheadNs[] = {0, 1500000, -40000, 250000, -900000};
  const double kRate[] = {0, 12e-6, -30e-6, 5e-6, 1e-6};
  const auto ahead_ns = [&](int node, int64_t since_base_ns) {
    return kAheadNs[node] + std::llround(kRate[node] * static_cast<double>(since_base_ns));
  };
  std::vector<TwoWayProbe> probes;
  for (int64_t t = 0; t < 12 * kSecondNs; t += kSecondNs / 100) {
    const std::pair<int, int> kPairs[] = {{0, 1}, {1, 2}, {3, 2}, {3, 4}, {4, 0}, {1, 3}};
    for (const auto& [src, dst] : kPairs) {
      const int64_t at_src = kBaseNs + t + ahead_ns(src, t);
      const auto delay_ns = [&](int64_t least_ns) {
        return least_ns + static_cast<int64_t>(queue_ns(random));
      };
      probes.push_back(Probe(src, dst, at_src, ahead_ns(dst, t) - ahead_ns(src, t), delay_ns(5000),
                             delay_ns(9000)));
    }
  }
  const TwoWayEstimates estimates = EstimateEdges(probes);
  EXPECT_TRUE(estimates.notes.empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(estimates.edges, 0));
  EXPECT_GE(solution.size(), 15);
  for (const OffsetSample& sample : solution) {
    const int64_t truth_ns = ahead_ns(sample.node_id, sample.midpoint_ref_ns - kBaseNs);
    ASSERT_TRUE(sample.uncertainty_ns.has_value());
    // 3 ns: the made-up stamps are whole nanoseconds, and true only as of when t1 was taken.
    EXPECT_LE(std::abs(sample.offset_ps / 1000.0 - truth_ns), *sample.uncertainty_ns + 3)
        << sample.node_id;
    EXPECT_LE(*sample.uncertainty_ns, sample.node_id == 0 ? 0 : 30000);
    EXPECT_NEAR(*sample.drift_ppm, kRate[sample.node_id] * 1e6, 5);
  }
}

}  // namespace
}  // namespace meridian
