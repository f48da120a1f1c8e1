// Two nodes from files to files: profiles and what was measured of their clocks go in, aligned
// profiles come out, happens-before holds among them, and the truth is as near as was said.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/probes/probe_offsets.h"
#include "trace_alignment/probes/probe_solver.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/node_inputs.h"
#include "trace_alignment/testing/profile_events.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "trace_alignment/testing/trace_verdict.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

// See trace_alignment_test.cc.
constexpr int64_t kTolerancePs = 2'010;

ClusterOptions TwoNodes() {
  ClusterOptions options;
  options.seed = 5;
  options.collectives = OneOfEach(2);
  options.rest_ns = 100'000'000;
  options.stragglers = {{1, 3'000'000, 3}};
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  options.max_wander_ppb = 1'000;
  options.max_tracer_drift_ppb = 5'000;
  return options;
}

class TraceAlignmentIntegrationTest : public ::testing::Test {
 protected:
  using MakeClock = std::function<absl::StatusOr<NodeClock>(int64_t node, const RunClock& session)>;

  // Writes the run; on its own clocks it violates happens-before.
  void Write(const ClusterOptions& options, const ClusterFilesOptions& files) {
    cluster_.emplace(options);
    ASSERT_OK(WriteCluster(FileSystem::Posix(), *cluster_, files, Folder()));
    ASSERT_OK_AND_ASSIGN(const TraceVerdict raw,
                         CheckTraces(ClusterTracePaths(*cluster_, Folder())));
    EXPECT_FALSE(raw.holds) << raw.report;
  }

  std::string Folder() const { return directory_.path(); }

  SnapshotPairs Snapshots(int64_t node) const {
    absl::StatusOr<SnapshotPairs> pairs =
        LoadSnapshotPairs(FileSystem::Posix(), SnapshotsPath(Folder(), node));
    EXPECT_OK(pairs);
    return *std::move(pairs);
  }

  // Clocks from each node's snapshot pairs and these offsets.
  MakeClock FromOffsets(const OffsetSamples& offsets, ClockTarget target) const {
    return [this, offsets, target](int64_t node, const RunClock& session) {
      NodeInputs inputs;
      inputs.node_id = node;
      inputs.snapshots = Snapshots(node);
      inputs.reference_snapshots = Snapshots(0);
      inputs.offsets = offsets;
      return MakeNodeClock(inputs, target, session);
    };
  }

  // Aligns all profiles into new files and returns the verdict on these.
  absl::StatusOr<TraceVerdict> AlignAll(const MakeClock& make_clock) {
    std::vector<std::string> paths;
    for (int64_t node = 0; node < cluster_->options().nodes; ++node) {
      const std::string profile = directory_.Read("node" + std::to_string(node) + ".xplane.pb");
      ASSIGN_OR_RETURN(const AlignedProfile aligned,
                       AlignProfile(profile, [&](const RunClock& session) {
                         return make_clock(node, session);
                       }));
      paths.push_back(
          directory_.Write("aligned" + std::to_string(node) + ".xplane.pb", aligned.bytes));
    }
    return CheckTraces(paths);
  }

  // Returns how far the farthest collective of a node's aligned file is from the truth.
  int64_t LargestErrorPs(int64_t node, ClockTarget target) const {
    const auto events = [&](const std::string& bytes) {
      absl::StatusOr<std::vector<ProfileEvent>> list =
          ListProfileEvents(bytes, cluster_->options().start_ns);
      EXPECT_OK(list);
      return *std::move(list);
    };
    const std::vector<ProfileEvent> aligned =
        events(directory_.Read("aligned" + std::to_string(node) + ".xplane.pb"));
    const std::vector<ProfileEvent> truth =
        events(TrueProfile(*cluster_, node).SerializeAsString());
    EXPECT_EQ(aligned.size(), truth.size());
    int64_t largest_ps = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i].name.find("ncclDevKernel") == std::string::npos ||
          truth[i].domain != ClockDomain::kTracer) {
        continue;
      }
      largest_ps = std::max(
          {largest_ps,
           std::abs(aligned[i].start_ps - TargetPs(*cluster_, node, target, truth[i].start_ps)),
           std::abs(aligned[i].end_ps - TargetPs(*cluster_, node, target, truth[i].end_ps))});
    }
    EXPECT_FALSE(truth.empty());
    return largest_ps;
  }

  TemporaryDirectory directory_;
  std::optional<SyntheticCluster> cluster_;
};

ClusterFilesOptions SnapshotsAnd() {
  ClusterFilesOptions files;
  files.snapshots.emplace();
  return files;
}

TEST_F(TraceAlignmentIntegrationTest, BySnapshotsAndOffsets) {
  ClusterFilesOptions files = SnapshotsAnd();
  files.offsets.emplace();
  Write(TwoNodes(), files);
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      OffsetSamples::Load(FileSystem::Posix(), OffsetsPath(Folder()), std::nullopt));
  for (ClockTarget target : {ClockTarget::kReference, ClockTarget::kHost}) {
    ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, AlignAll(FromOffsets(offsets, target)));
    EXPECT_TRUE(verdict.holds) << verdict.report;
    EXPECT_LE(LargestErrorPs(0, target), kTolerancePs);
    EXPECT_LE(LargestErrorPs(1, target), kTolerancePs);
  }
}

TEST_F(TraceAlignmentIntegrationTest, OffsetsOfTheWrongSignMakeItWorseAndAreKnownByIt) {
  ClusterFilesOptions files = SnapshotsAnd();
  files.offsets.emplace();
  Write(TwoNodes(), files);
  const int64_t offset_ps = cluster_->OffsetPs(1, 0);
  ASSERT_GT(offset_ps, 0);
  const std::string negated = absl::StrReplaceAll(directory_.Read("offsets.jsonl"),
                                                  {{"\"offset_ns\":", "\"offset_ns\":-"}});
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       OffsetSamples::Parse(negated, "offsets", std::nullopt));
  ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict,
                       AlignAll(FromOffsets(offsets, ClockTarget::kHost)));
  EXPECT_FALSE(verdict.holds);
  ASSERT_OK_AND_ASSIGN(
      const CollectiveRun run,
      ReadCollectiveRun(FileSystem::Posix(), ClusterTracePaths(*cluster_, Folder())));
  const auto violations = [&](int64_t sign) {
    const auto offset = [&](uint32_t node, int64_t) {
      return node == 0 ? int64_t{0} : sign * offset_ps;
    };
    return CheckHappensBefore(run.table, offset).violations.size();
  };
  EXPECT_GT(violations(-1), 0u);
  EXPECT_EQ(violations(1), 0u);
}

TEST_F(TraceAlignmentIntegrationTest, ByProbeWindows) {
  ClusterFilesOptions files = SnapshotsAnd();
  files.probe_windows.emplace();
  files.probe_windows->max_asymmetry_ns = 6'000;
  ClusterOptions options = TwoNodes();
  options.max_wander_ppb = 0;
  Write(options, files);
  ASSERT_OK_AND_ASSIGN(
      const ProbeOffsets probes,
      LoadProbeOffsets(FileSystem::Posix(),
                       {ProbeWindowsPath(Folder(), 0), ProbeWindowsPath(Folder(), 1)},
                       /*reference_node=*/0, /*max_drift_ppm=*/100));
  // No window is rejected, and no node unreachable in any round.
  EXPECT_THAT(probes.notes, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict,
                       AlignAll(FromOffsets(probes.samples, ClockTarget::kHost)));
  EXPECT_TRUE(verdict.holds) << verdict.report;
  // Half of what the link is slower in one direction, and what rounding costs.
  EXPECT_LE(LargestErrorPs(1, ClockTarget::kHost), 3'000 * kPsPerNs + 2 * kTolerancePs);
}

TEST_F(TraceAlignmentIntegrationTest, ByProbesWithinTheirUncertainty) {
  ClusterFilesOptions files = SnapshotsAnd();
  files.probes.emplace();
  files.probes->max_asymmetry_ns = 6'000;
  Write(TwoNodes(), files);
  ASSERT_OK_AND_ASSIGN(const std::vector<TwoWayProbe> probes,
                       ParseTwoWayProbes(directory_.Read("probes.jsonl"), "probes.jsonl"));
  TwoWayOptions two_way;
  two_way.window_ns = 200'000'000;
  const TwoWayEstimates estimates = EstimateEdges(probes, two_way);
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution, SolveProbes(estimates.edges, 0));
  double largest_uncertainty_ns = 0;
  for (const OffsetSample& sample : solution) {
    ASSERT_TRUE(sample.uncertainty_ns.has_value());
    largest_uncertainty_ns = std::max(largest_uncertainty_ns, *sample.uncertainty_ns);
    const int64_t true_ps = (sample.midpoint_ref_ns - cluster_->options().start_ns) * kPsPerNs;
    const int64_t error_ps =
        std::abs(cluster_->OffsetPs(sample.node_id, true_ps) - sample.offset_ps);
    // Clocks wander within the window, which no line follows.
    const double wander_ps = 0.2e12 * 1e-6;
    EXPECT_LE(error_ps, *sample.uncertainty_ns * kPsPerNs + wander_ps);
  }
  // Half of the shortest ways there and back: these take 10 us each, one up to 6 us longer, and a
  // probe of forty that does not queue at all is rare.
  EXPECT_LE(largest_uncertainty_ns, 15'000);
  ASSERT_OK_AND_ASSIGN(
      const TraceVerdict verdict,
      AlignAll(FromOffsets(OffsetSamples("probes", 0, solution), ClockTarget::kHost)));
  EXPECT_TRUE(verdict.holds) << verdict.report;
  EXPECT_LE(LargestErrorPs(1, ClockTarget::kHost),
            static_cast<int64_t>(largest_uncertainty_ns) * kPsPerNs + 300 * kPsPerNs);
}

// By collectives, everything on the tracer's clock counts, so it should be the host's.
ClusterOptions TwoNodesWithGoodTracers() {
  ClusterOptions options = TwoNodes();
  options.max_tracer_drift_ppb = 0;
  return options;
}

TEST_F(TraceAlignmentIntegrationTest, ByCollectivesAloneWithinTheirUncertainty) {
  Write(TwoNodesWithGoodTracers(), {});
  ASSERT_OK_AND_ASSIGN(
      const CollectiveRun run,
      ReadCollectiveRun(FileSystem::Posix(), ClusterTracePaths(*cluster_, Folder())));
  for (const bool end_agreement : {false, true}) {
    SCOPED_TRACE(end_agreement);
    ProbeFreeOptions options;
    options.end_agreement = end_agreement;
    ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.table, options));
    ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, AlignAll([&](int64_t node, const RunClock&) {
                           return MakeNodeClock(alignment.nodes[node],
                                                RunClock(run.table.base_ns()));
                         }));
    EXPECT_TRUE(verdict.holds) << verdict.report;
    const NodeOffset& node = alignment.nodes[1];
    EXPECT_LE(LargestErrorPs(1, ClockTarget::kHost), node.uncertainty_max_ps + kTolerancePs);
    // A transfer takes 40 us, so that no interval is wider; 8 rests of 100 ms at 100 ppm add some.
    EXPECT_LE(node.uncertainty_ps, 60'000 * kPsPerNs);
    const int64_t true_ps =
        (run.table.base_ns() - cluster_->options().start_ns) * kPsPerNs + node.offset_at_ps;
    EXPECT_LE(std::abs(cluster_->OffsetPs(1, true_ps) - node.offset_ps),
              node.uncertainty_ps + kTolerancePs);
  }
}

TEST_F(TraceAlignmentIntegrationTest, CertifiedIntervalsHoldThoughRanksAlwaysEndApart) {
  int fooled = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ClusterOptions options = TwoNodesWithGoodTracers();
    options.seed = seed;
    options.max_end_bias_ns = 30'000;
    options.end_jitter_ns = 100;
    options.transfer_ns = 5'000;
    Write(options, {});
    ASSERT_OK_AND_ASSIGN(
        const CollectiveRun run,
        ReadCollectiveRun(FileSystem::Posix(), ClusterTracePaths(*cluster_, Folder())));
    const auto error_ps = [&](const NodeOffset& node) {
      const int64_t true_ps =
          (run.table.base_ns() - cluster_->options().start_ns) * kPsPerNs + node.offset_at_ps;
      return std::abs(cluster_->OffsetPs(1, true_ps) - node.offset_ps);
    };
    ProbeFreeOptions certified;
    certified.end_agreement = false;
    ASSERT_OK_AND_ASSIGN(const ClockAlignment alone, AlignByCollectives(run.table, certified));
    EXPECT_LE(error_ps(alone.nodes[1]), alone.nodes[1].uncertainty_ps + kTolerancePs);
    EXPECT_EQ(alone.nodes[1].certified_uncertainty_ps, alone.nodes[1].uncertainty_ps);
    // That they end together is not true here, and the uncertainty that rests on it neither; the
    // certified one is about the same offset and must hold.
    ASSERT_OK_AND_ASSIGN(const ClockAlignment agreed, AlignByCollectives(run.table, {}));
    EXPECT_LE(error_ps(agreed.nodes[1]), agreed.nodes[1].certified_uncertainty_ps + kTolerancePs);
    fooled += error_ps(agreed.nodes[1]) > agreed.nodes[1].uncertainty_ps + kTolerancePs;
  }
  EXPECT_GT(fooled, 0);
}

TEST_F(TraceAlignmentIntegrationTest, AProfileThatBeginsMidStepKeepsAllItsPairs) {
  // Node 1's session begins in the middle of the third or the seventh of eight steps, which come
  // every 102 ms or so.
  for (const int64_t missed : {3, 7}) {
    SCOPED_TRACE(missed);
    ClusterOptions options = TwoNodesWithGoodTracers();
    options.session_spread_ns = (missed - 1) * 104'000'000;
    Write(options, {});
    ASSERT_OK_AND_ASSIGN(
        const CollectiveRun run,
        ReadCollectiveRun(FileSystem::Posix(), ClusterTracePaths(*cluster_, Folder())));
    EXPECT_EQ(run.runs.method, RunMethod::kRunId);
    const HappensBefore result = CheckHappensBefore(run.table);
    // Seven collectives in each of the steps that follow, at least.
    EXPECT_GE(result.checked, (8 - missed) * 7);
    EXPECT_GT(result.unmatched, 0);
    ASSERT_OK_AND_ASSIGN(const ClockAlignment alignment, AlignByCollectives(run.table, {}));
    ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, AlignAll([&](int64_t node, const RunClock&) {
                           return MakeNodeClock(alignment.nodes[node],
                                                RunClock(run.table.base_ns()));
                         }));
    EXPECT_TRUE(verdict.holds) << verdict.report;
    EXPECT_LE(LargestErrorPs(1, ClockTarget::kHost),
              alignment.nodes[1].uncertainty_max_ps + kTolerancePs);
  }
}

}  // namespace
}  // namespace meridian
