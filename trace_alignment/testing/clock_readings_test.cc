#include "trace_alignment/testing/clock_readings.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/probes/probe_windows.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

class ClockReadingsTest : public ::testing::Test {
 protected:
  static ClusterOptions Options() {
    ClusterOptions options;
    options.nodes = 5;
    options.rest_ns = 100'000'000;
    options.max_skew_ns = 50'000'000;
    options.max_drift_ppb = 50'000;
    options.max_wander_ppb = 1'000;
    options.max_tracer_drift_ppb = 5'000;
    return options;
  }

  // Picoseconds from the cluster's start.
  int64_t RunPs(int64_t unix_ns) const {
    return (unix_ns - cluster_.options().start_ns) * kPsPerNs;
  }

  // Checks that host and tracer showed this at one instant, up to the nanosecond.
  void ExpectTruePair(int64_t node, const SnapshotPair& pair) const {
    const int64_t true_ps = cluster_.node(node).host.TruePs(RunPs(pair.sys_ns));
    EXPECT_LE(std::abs(cluster_.FilePs(node, true_ps) - RunPs(pair.tracer_ns)), 2 * kPsPerNs);
  }

  const SyntheticCluster cluster_{Options()};
};

TEST_F(ClockReadingsTest, SnapshotPairsAreTrueInEveryForm) {
  SnapshotOptions relative, absolute;
  absolute.absolute = true;
  for (const SnapshotOptions& options : {relative, absolute}) {
    ASSERT_OK_AND_ASSIGN(const SnapshotPairs pairs,
                         ParseSnapshotPairs(SnapshotPairsJsonl(cluster_, 3, options), "pairs"));
    EXPECT_EQ(pairs.node_id, 3);
    EXPECT_GT(pairs.pairs.size(), 8u);
    for (const SnapshotPair& pair : pairs.pairs) ExpectTruePair(3, pair);
  }
}

TEST_F(ClockReadingsTest, BracketsHoldTheTruth) {
  SnapshotOptions options;
  options.max_bracket_ns = 10'000;
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs pairs,
                       ParseSnapshotPairs(SnapshotPairsJsonl(cluster_, 2, options), "pairs"));
  for (const SnapshotPair& pair : pairs.pairs) {
    ASSERT_TRUE(pair.bracket.has_value());
    EXPECT_LE(pair.bracket->sys_after_ns - pair.bracket->sys_before_ns, 10'002);
    const TrueClock& host = cluster_.node(2).host;
    const int64_t before_ps = cluster_.FilePs(2, host.TruePs(RunPs(pair.bracket->sys_before_ns)));
    const int64_t after_ps = cluster_.FilePs(2, host.TruePs(RunPs(pair.bracket->sys_after_ns)));
    EXPECT_LE(before_ps, RunPs(pair.tracer_ns) + 2 * kPsPerNs);
    EXPECT_GE(after_ps, RunPs(pair.tracer_ns) - 2 * kPsPerNs);
  }
}

TEST_F(ClockReadingsTest, ThePlaneHoldsTheSamePairs) {
  XSpaceProto profile = RecordedProfile(cluster_, 1);
  AddSnapshotsPlane(cluster_, 1, 50'000'000, &profile);
  const std::string bytes = profile.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "profile"));
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, ReadSessionInfo(reader));
  ASSERT_OK_AND_ASSIGN(const SessionClock clock, SessionClock::Create("p", info, std::nullopt));
  ASSERT_OK_AND_ASSIGN(const std::optional<XPlaneVisitor> plane,
                       reader.FindPlane(kSnapshotsPlaneName));
  ASSERT_TRUE(plane.has_value());
  SnapshotPairsOptions options;
  options.flags = {cluster_.node(1).start_walltime_ns, cluster_.node(1).start_gpu_ns};
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs pairs,
                       SnapshotPairsFromPlane(*plane, clock, "profile", options));
  EXPECT_GT(pairs.pairs.size(), 16u);
  for (const SnapshotPair& pair : pairs.pairs) ExpectTruePair(1, pair);
}

TEST_F(ClockReadingsTest, OffsetsAreTrueInBothForms) {
  OffsetsOptions graph_calc, legacy;
  legacy.legacy = true;
  for (const OffsetsOptions& options : {graph_calc, legacy}) {
    ASSERT_OK_AND_ASSIGN(
        const OffsetSamples samples,
        OffsetSamples::Parse(OffsetsJsonl(cluster_, options), "offsets", std::nullopt));
    EXPECT_EQ(samples.reference_node(), 0);
    for (int64_t n = 1; n < 5; ++n) {
      EXPECT_GT(samples.SamplesOf(n).size(), 8u);
      for (const OffsetSample& sample : samples.SamplesOf(n)) {
        EXPECT_EQ(sample.offset_ps, cluster_.OffsetPs(n, RunPs(sample.midpoint_ref_ns)));
        EXPECT_EQ(sample.drift_ppm.has_value(), !options.legacy);
        if (options.legacy) continue;
        const double steady_ppm = static_cast<double>(cluster_.node(n).host.drift_ppb) * 1e-3;
        EXPECT_NEAR(*sample.drift_ppm, steady_ppm, 1.01);
      }
    }
  }
}

TEST_F(ClockReadingsTest, EachPairOfNeighboursIsMeasuredOnce) {
  std::vector<std::pair<int64_t, int64_t>> links;
  for (int64_t n = 0; n < 5; ++n) {
    ASSERT_OK_AND_ASSIGN(const std::vector<ProbeWindowEdge> windows,
                         ParseProbeWindows(ProbeWindowsJsonl(cluster_, n), "windows"));
    for (const ProbeWindowEdge& edge : windows) {
      if (edge.round_id == 0) links.emplace_back(edge.src, edge.dst);
    }
  }
  // Each asks the next and the one after it.
  const std::vector<std::pair<int64_t, int64_t>> wanted = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3},
                                                           {2, 4}, {3, 4}, {3, 0}, {4, 0}, {4, 1}};
  EXPECT_EQ(links, wanted);
}

TEST_F(ClockReadingsTest, WindowsAreWrongByHalfTheAsymmetry) {
  for (const int64_t asymmetry_ns : {int64_t{0}, int64_t{6'000}}) {
    ProbeOptions options;
    options.max_asymmetry_ns = asymmetry_ns;
    ASSERT_OK_AND_ASSIGN(const std::vector<ProbeWindowEdge> windows,
                         ParseProbeWindows(ProbeWindowsJsonl(cluster_, 1, options), "windows"));
    int64_t largest_ps = 0;
    for (const ProbeWindowEdge& edge : windows) {
      const int64_t true_ps = cluster_.node(edge.src).host.TruePs(RunPs(edge.window_start_ns));
      const int64_t wanted_ps =
          cluster_.HostPs(edge.dst, true_ps) - cluster_.HostPs(edge.src, true_ps);
      largest_ps = std::max(largest_ps, std::abs(edge.beta_ps - wanted_ps));
    }
    EXPECT_LE(largest_ps, (asymmetry_ns / 2 + 1) * kPsPerNs);
    EXPECT_GE(largest_ps, asymmetry_ns / 8 * kPsPerNs);
  }
}

TEST_F(ClockReadingsTest, NoProbeArrivesBeforeItWasSent) {
  ProbeOptions options;
  options.max_asymmetry_ns = 6'000;
  ASSERT_OK_AND_ASSIGN(const std::vector<TwoWayProbe> probes,
                       ParseTwoWayProbes(TwoWayProbesJsonl(cluster_, options), "probes"));
  EXPECT_GT(probes.size(), 1000u);
  for (const TwoWayProbe& probe : probes) {
    const auto true_ps = [&](int64_t node, int64_t unix_ns) {
      return cluster_.node(node).host.TruePs(RunPs(unix_ns));
    };
    const int64_t forth_ps =
        true_ps(probe.dst, probe.dst_received_ns) - true_ps(probe.src, probe.src_sent_ns);
    const int64_t back_ps =
        true_ps(probe.src, probe.src_received_ns) - true_ps(probe.dst, probe.dst_sent_ns);
    for (const int64_t travel_ps : {forth_ps, back_ps}) {
      EXPECT_GE(travel_ps, (options.min_delay_ns - 2) * kPsPerNs);
      EXPECT_LE(travel_ps, (options.min_delay_ns + 26'002) * kPsPerNs);
    }
  }
}

}  // namespace
}  // namespace meridian
