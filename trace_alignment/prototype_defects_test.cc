// Earlier prototypes of trace alignment had fifteen defects, numbered D1 to D15 in
// docs/trace_alignment_flow.md. Each has a test here that fails where the defect is.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/probes/probe_solver.h"
#include "trace_alignment/probes/two_way_probes.h"
#include "trace_alignment/testing/clock_readings.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/node_inputs.h"
#include "trace_alignment/testing/order_check.h"
#include "trace_alignment/testing/profile_events.h"
#include "trace_alignment/testing/prototype_validator.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/testing/xplane_utils.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecondPs = 1'000'000'000'000;
// Snapshot pairs are read to the nanosecond; an event may go through two maps of them.
constexpr int64_t kTolerancePs = 2'010;

// Two nodes, eight steps over 0.8 s.
ClusterOptions Options() {
  ClusterOptions options;
  options.rest_ns = 100'000'000;
  return options;
}

std::vector<ProfileEvent> EventsOf(const std::string& bytes, const SyntheticCluster& cluster) {
  absl::StatusOr<std::vector<ProfileEvent>> events =
      ListProfileEvents(bytes, cluster.options().start_ns);
  EXPECT_OK(events);
  return events.ok() ? *std::move(events) : std::vector<ProfileEvent>();
}

NodeInputs InputsOf(const SyntheticCluster& cluster, int64_t node) {
  NodeInputs inputs;
  inputs.node_id = node;
  absl::StatusOr<SnapshotPairs> snapshots =
      ParseSnapshotPairs(SnapshotPairsJsonl(cluster, node), "snapshots");
  EXPECT_OK(snapshots);
  inputs.snapshots = *std::move(snapshots);
  absl::StatusOr<OffsetSamples> offsets =
      OffsetSamples::Parse(OffsetsJsonl(cluster), "offsets", std::nullopt);
  EXPECT_OK(offsets);
  inputs.offsets = *std::move(offsets);
  return inputs;
}

// On the reference's host clock.
std::string Align(const std::string& profile, const NodeInputs& inputs,
                  const AlignOptions& options = {}) {
  absl::StatusOr<AlignedProfile> aligned = AlignProfile(
      profile,
      [&](const RunClock& session) { return MakeNodeClock(inputs, ClockTarget::kHost, session); },
      options);
  EXPECT_OK(aligned);
  return aligned.ok() ? aligned->bytes : "";
}

std::string AlignNode(const SyntheticCluster& cluster, int64_t node) {
  return Align(RecordedProfile(cluster, node).SerializeAsString(), InputsOf(cluster, node));
}

int64_t LargestErrorPs(const SyntheticCluster& cluster, int64_t node, const std::string& aligned) {
  const std::vector<ProfileEvent> events = EventsOf(aligned, cluster);
  const std::vector<ProfileEvent> truth =
      EventsOf(TrueProfile(cluster, node).SerializeAsString(), cluster);
  EXPECT_EQ(events.size(), truth.size());
  int64_t largest_ps = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    largest_ps = std::max({largest_ps, std::abs(events[i].start_ps - truth[i].start_ps),
                           std::abs(events[i].end_ps - truth[i].end_ps)});
  }
  return largest_ps;
}

absl::StatusOr<CollectiveTable> MatchProfiles(const std::vector<XSpaceReader>& readers) {
  std::vector<ProfileCollectives> profiles;
  for (const XSpaceReader& reader : readers) {
    ASSIGN_OR_RETURN(ProfileCollectives profile, ReadXSpaceCollectives(reader));
    profiles.push_back(std::move(profile));
  }
  ASSIGN_OR_RETURN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  return BuildCollectiveTable(profiles, ranks, ResolveRuns(profiles));
}

// Profiles of all nodes that stay in memory.
class Profiles {
 public:
  template <typename MakeProfile>
  Profiles(const SyntheticCluster& cluster, MakeProfile make_profile) {
    bytes_.reserve(cluster.options().nodes);
    for (int64_t n = 0; n < cluster.options().nodes; ++n) {
      bytes_.push_back(make_profile(cluster, n).SerializeAsString());
      absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes_.back(), "node");
      EXPECT_OK(reader);
      readers_.push_back(*std::move(reader));
    }
  }

  const std::vector<XSpaceReader>& readers() const { return readers_; }

 private:
  std::vector<std::string> bytes_;
  std::vector<XSpaceReader> readers_;
};

// The plan added the offset in one section and subtracted it in another.
TEST(PrototypeDefectsTest, D1_OffsetsAreSubtracted) {
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      OffsetSamples::Parse("{\"node_id\":0,\"midpoint_sys_ns\":1000,\"offset_ns\":0}\n"
                           "{\"node_id\":1,\"midpoint_sys_ns\":1000,\"offset_ns\":500}\n",
                           "offsets", std::nullopt));
  ASSERT_OK_AND_ASSIGN(const ClockMap map, offsets.OffsetMap(1, RunClock(0)));
  EXPECT_EQ(map.Forward(7'000'000), 7'000'000 - 500 * kPsPerNs);

  ClusterOptions options = Options();
  options.host_clocks = {{}, {1'000'000'000, 0, {}}};
  const SyntheticCluster cluster(options);
  EXPECT_LE(LargestErrorPs(cluster, 1, AlignNode(cluster, 1)), kTolerancePs);
}

// Doubles step by 256 ns at today's times, so that neighbours became one.
TEST(PrototypeDefectsTest, D2_NanosecondsSurviveAtTodaysEpoch) {
  const SyntheticCluster cluster(Options());
  const int64_t unix_ns = cluster.options().start_ns;
  ASSERT_EQ(static_cast<double>(unix_ns), static_cast<double>(unix_ns + 1));

  // The raw Execute begins one nanosecond after its parent.
  const auto apart_ps = [&](const std::string& bytes) {
    std::vector<int64_t> apart;
    const std::vector<ProfileEvent> events = EventsOf(bytes, cluster);
    for (size_t i = 1; i < events.size(); ++i) {
      if (events[i].name.find("RawLoadedExecutable") != std::string::npos) {
        apart.push_back(events[i].start_ps - events[i - 1].start_ps);
      }
    }
    return apart;
  };
  const std::vector<int64_t> before = apart_ps(RecordedProfile(cluster, 1).SerializeAsString());
  EXPECT_EQ(before, std::vector<int64_t>(8, kPsPerNs));
  EXPECT_EQ(apart_ps(AlignNode(cluster, 1)), before);
}

// The profile with its lines' bases moved by so much, and its events where they were.
std::string WithMovedBases(XSpaceProto profile, int64_t move_ns) {
  for (XPlaneProto& plane : *profile.mutable_planes()) {
    XPlaneBuilder builder(&plane);
    builder.ForEachLine([&](XLineBuilder line) {
      EXPECT_OK(line.SetTimestampNsAndAdjustEventOffsets(line.TimestampNs() + move_ns));
    });
  }
  return profile.SerializeAsString();
}

// Events were taken to begin at the session's start plus their offset, whatever their line's base.
TEST(PrototypeDefectsTest, D3_LineBasesCount) {
  ClusterOptions options = Options();
  options.max_skew_ns = 1'000'000;
  const SyntheticCluster cluster(options);
  const std::string moved = WithMovedBases(RecordedProfile(cluster, 1), -300'000);
  EXPECT_LE(LargestErrorPs(cluster, 1, Align(moved, InputsOf(cluster, 1))), kTolerancePs);
}

// The driver's calls lie in the host's plane, but the tracer stamped them.
TEST(PrototypeDefectsTest, D4_TheClockDomainIsTheLines) {
  ClusterOptions options = Options();
  options.host_clocks = {{}, {0, 0, {0, 20'000'000, 40'000'000, 60'000'000}}};
  const SyntheticCluster cluster(options);
  // A launch and the driver's call for it are one.
  const auto farthest_apart_ps = [&](const std::string& bytes) {
    std::vector<int64_t> launches, calls;
    for (const ProfileEvent& event : EventsOf(bytes, cluster)) {
      if (event.name.find("| cuLaunchKernelEx") != std::string::npos) {
        calls.push_back(event.start_ps);
      } else if (event.name.find("python3 | nccl") != std::string::npos ||
                 event.name.find("python3 | input_reduce_fusion") != std::string::npos) {
        launches.push_back(event.start_ps);
      }
    }
    // Of a fusion, thunk and launch have one name, and start together.
    launches.erase(std::unique(launches.begin(), launches.end()), launches.end());
    EXPECT_EQ(launches.size(), calls.size());
    int64_t farthest_ps = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      farthest_ps = std::max(farthest_ps, std::abs(launches[i] - calls[i]));
    }
    return farthest_ps;
  };
  EXPECT_GT(farthest_apart_ps(RecordedProfile(cluster, 1).SerializeAsString()), 50'000'000);
  EXPECT_LE(farthest_apart_ps(AlignNode(cluster, 1)), kTolerancePs);
}

// Times below 10^15 were taken for relative ones, which a tracer's are for its first 11 days; and
// what counted from the session's start was moved by the collector's once more.
TEST(PrototypeDefectsTest, D5_TheHeaderSaysWhetherPairsAreRelative) {
  const SyntheticCluster cluster(Options());
  const ClusterNode& node = cluster.node(1);
  ASSERT_LT(node.start_gpu_ns, 1'000'000'000'000'000);
  ASSERT_NE(node.tracer_start_ps, node.session_start_ps);
  SnapshotOptions absolute;
  absolute.absolute = true;
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs of_absolute,
                       ParseSnapshotPairs(SnapshotPairsJsonl(cluster, 1, absolute), "a"));
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs of_relative,
                       ParseSnapshotPairs(SnapshotPairsJsonl(cluster, 1), "r"));
  ASSERT_EQ(of_absolute.pairs.size(), of_relative.pairs.size());
  for (size_t i = 0; i < of_absolute.pairs.size(); ++i) {
    EXPECT_EQ(of_absolute.pairs[i].sys_ns, of_relative.pairs[i].sys_ns);
    EXPECT_EQ(of_absolute.pairs[i].tracer_ns, of_relative.pairs[i].tracer_ns);
    // True clocks: both show the same, not the collector's delay more.
    EXPECT_LE(std::abs(of_absolute.pairs[i].sys_ns - of_absolute.pairs[i].tracer_ns), 1);
  }
}

// A node's windows are on its own clock, but were taken for the reference's time.
TEST(PrototypeDefectsTest, D6_RoundsAreTimedByTheReference) {
  ClusterOptions options = Options();
  // 30 s ahead and drifting by 50 ppm: wrong by 1.5 ms otherwise.
  options.host_clocks = {{}, {30 * kSecondPs, 50'000, {}}};
  const SyntheticCluster cluster(options);
  EXPECT_LE(LargestErrorPs(cluster, 1, AlignNode(cluster, 1)), kTolerancePs);
}

// A node that the header lacks began at 0, and rows of nodes that were not reached were used.
TEST(PrototypeDefectsTest, D7_WhatIsUnknownIsNotZero) {
  EXPECT_THAT(ParseSnapshotPairs("{\"meta\":true,\"absolute\":true,\"start_walltime_ns\":0,"
                                 "\"start_gpu_ns\":0}\n{\"sys_ns\":5,\"tracer_ns\":6}\n",
                                 "pairs"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start_walltime_ns")));

  const std::string row =
      "{\"round_id\":%,\"window_start_ns\":1000,\"window_end_ns\":3000,\"node_id\":1,"
      "\"offset_ns\":#}\n";
  const std::string reference =
      "{\"round_id\":1,\"window_start_ns\":1000,\"window_end_ns\":3000,\"node_id\":0,"
      "\"offset_ns\":0}\n"
      "{\"round_id\":2,\"window_start_ns\":5000,\"window_end_ns\":7000,\"node_id\":0,"
      "\"offset_ns\":0}\n"
      "{\"round_id\":3,\"window_start_ns\":9000,\"window_end_ns\":9500,\"node_id\":0,"
      "\"offset_ns\":0}\n";
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples samples,
      OffsetSamples::Parse(
          reference + absl::StrReplaceAll(row, {{"%", "1"}, {"#", "500"}}) +
              absl::StrReplaceAll(row, {{"%", "2"}, {"#", "0,\"reachable\":false"}}) +
              absl::StrReplaceAll(row, {{"%", "3"}, {"#", "9,\"converged\":false"}}),
          "offsets", 0));
  ASSERT_EQ(samples.SamplesOf(1).size(), 1u);
  EXPECT_EQ(samples.SamplesOf(1)[0].offset_ps, 500 * kPsPerNs);
  EXPECT_EQ(samples.rows_not_used().unreachable, 1);
  EXPECT_EQ(samples.rows_not_used().not_converged, 1);
  EXPECT_THAT(samples.OffsetMap(7, RunClock(0)), StatusIs(absl::StatusCode::kNotFound));
}

ProbeEdge Edge(int64_t src, int64_t dst, int64_t offset_ps, double rate = 0) {
  ProbeEdge edge;
  edge.src = src;
  edge.dst = dst;
  edge.midpoint_src_ns = 1'000'000'000;
  edge.offset_ps = offset_ps;
  edge.rate = rate;
  return edge;
}

OffsetSample SampleOf(const std::vector<OffsetSample>& solution, int64_t node_id) {
  for (const OffsetSample& sample : solution) {
    if (sample.node_id == node_id) return sample;
  }
  ADD_FAILURE() << "node " << node_id << " has no sample";
  return {};
}

// Edges were followed in their direction only: whoever only asked was not reached.
TEST(PrototypeDefectsTest, D8_EdgesLeadBothWays) {
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> solution,
                       SolveProbes({Edge(1, 0, -700'000), Edge(2, 1, 300'000)}, 0));
  EXPECT_EQ(SampleOf(solution, 1).offset_ps, 700'000);
  EXPECT_EQ(SampleOf(solution, 2).offset_ps, 400'000);
}

// Drift was that of the last hop, and all edges weighed the same.
TEST(PrototypeDefectsTest, D9_DriftAddsUpAlongThePathAndEdgesHaveWeights) {
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> path,
                       SolveProbes({Edge(0, 1, 0, 10e-6), Edge(1, 2, 0, 5e-6)}, 0));
  EXPECT_NEAR(*SampleOf(path, 2).drift_ppm, 15, 1e-3);

  // Two measurements of one pair, one of which is three times as good: 0 * 3/4 + 400 * 1/4.
  std::vector<ProbeEdge> twice = {Edge(0, 1, 0), Edge(0, 1, 400'000)};
  twice[0].weight = 3;
  ASSERT_OK_AND_ASSIGN(const std::vector<OffsetSample> weighted, SolveProbes(twice, 0));
  EXPECT_EQ(SampleOf(weighted, 1).offset_ps, 100'000);
}

// Starts had to increase strictly, which pushes children out of their parents.
TEST(PrototypeDefectsTest, D10_EqualStartsStayEqualAndChildrenInside) {
  ClusterOptions options = Options();
  options.max_skew_ns = 1'000'000;
  options.max_drift_ppb = 50'000;
  const SyntheticCluster cluster(options);
  const std::string recorded = RecordedProfile(cluster, 1).SerializeAsString();
  const std::vector<ProfileEvent> before = EventsOf(recorded, cluster);
  ASSERT_OK_AND_ASSIGN(const OrderCheck kept,
                       CheckOrderAndNesting(before, EventsOf(AlignNode(cluster, 1), cluster)));
  EXPECT_EQ(kept.equal_starts, 16);
  EXPECT_GT(kept.children, 16);

  AlignOptions strict;
  strict.lines.strict_monotonic = true;
  EXPECT_THAT(CheckOrderAndNesting(
                  before, EventsOf(Align(recorded, InputsOf(cluster, 1), strict), cluster)),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("starts no longer with")));
}

// Durations were left as they were, so that ends crossed.
TEST(PrototypeDefectsTest, D11_EndsAreMappedToo) {
  ClusterOptions options = Options();
  options.host_clocks = {{}, {0, 50'000, {}}};
  const SyntheticCluster cluster(options);
  // A parent of 0.5 s and a child that ends with it.
  XSpaceProto profile = RecordedProfile(cluster, 1);
  XPlaneBuilder host(FindMutablePlaneWithName(&profile, kHostThreadsPlaneName));
  XLineBuilder line = host.GetOrCreateLine(1);
  line.SetTimestampNs(1);
  const int64_t half_ps = kSecondPs / 2;
  line.AddEvent(*host.GetOrCreateEventMetadata("parent")).SetTimespan(Timespan(0, half_ps));
  line.AddEvent(*host.GetOrCreateEventMetadata("child"))
      .SetTimespan(Timespan(half_ps - 3'000, 3'000));
  const std::vector<ProfileEvent> events =
      EventsOf(Align(profile.SerializeAsString(), InputsOf(cluster, 1)), cluster);
  ASSERT_GE(events.size(), 2u);
  const ProfileEvent& parent = *std::find_if(events.begin(), events.end(), [](const auto& event) {
    return event.name.find("| parent") != std::string::npos;
  });
  const ProfileEvent& child = *(&parent + 1);
  // The node gains 50 us in a second.
  EXPECT_NEAR(parent.end_ps - parent.start_ps, half_ps / 1.00005, 2);
  EXPECT_EQ(child.end_ps, parent.end_ps);
}

// The first probe of a window was the last one, planes of programs and sessions were renamed, and
// merged planes referred to ids of other planes.
TEST(PrototypeDefectsTest, D12_NeitherOrderNorNamesNorIdsGetLost) {
  ClusterOptions options = Options();
  options.max_skew_ns = 1'000'000;
  const SyntheticCluster cluster(options);
  ASSERT_OK_AND_ASSIGN(std::vector<TwoWayProbe> probes,
                       ParseTwoWayProbes(TwoWayProbesJsonl(cluster), "p"));
  const std::vector<ProbeEdge> in_order = EstimateEdges(probes).edges;
  std::shuffle(probes.begin(), probes.end(), std::mt19937_64(1));
  const std::vector<ProbeEdge> shuffled = EstimateEdges(probes).edges;
  ASSERT_EQ(in_order.size(), shuffled.size());
  for (size_t i = 0; i < in_order.size(); ++i) {
    EXPECT_EQ(in_order[i].midpoint_src_ns, shuffled[i].midpoint_src_ns);
    EXPECT_NEAR(in_order[i].offset_ps, shuffled[i].offset_ps, 1);
  }

  // Programs and sessions are found in the aligned profile, so its collectives are understood.
  const std::string aligned = AlignNode(cluster, 1);
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(aligned, "aligned"));
  ASSERT_OK_AND_ASSIGN(const ProfileCollectives collectives, ReadXSpaceCollectives(reader));
  EXPECT_EQ(collectives.events.size(), 8u);
  EXPECT_THAT(collectives.unresolved.entries(), IsEmpty());

  // Negative offsets, as of events before their line's base, are times like others.
  const std::string negative = WithMovedBases(RecordedProfile(cluster, 1), 300'000);
  EXPECT_LE(LargestErrorPs(cluster, 1, Align(negative, InputsOf(cluster, 1))), kTolerancePs);

  // References are translated when planes are merged: both ids are 1, but mean different things.
  XPlaneProto first, second;
  XPlaneBuilder(&first).GetOrCreateStatMetadata("psum.1");
  XPlaneBuilder(&second).GetOrCreateStatMetadata("ppermute.2");
  const MetadataIds ids = PlaneMetadataMerger(&first).Merge(second);
  EXPECT_EQ(first.stat_metadata().at(1).name(), "psum.1");
  EXPECT_EQ(first.stat_metadata().at(*ids.stats.Find(1)).name(), "ppermute.2");
}

// Several devices of a node were one queue, groups were ignored, fusions called "reduce" counted as
// collectives, and a profile that began mid-step was compared with the wrong executions throughout.
TEST(PrototypeDefectsTest, D13_ExecutionsAreMatchedByProgramRunAndGroup) {
  ClusterOptions options = Options();
  options.devices_per_node = 2;
  options.collectives = {{CollectiveKind::kAllReduce, 2, false},
                         {CollectiveKind::kAllGather, 2, true}};
  options.compute_jitter_ns = 400'000;
  const SyntheticCluster cluster(options);
  const Profiles profiles(cluster, TrueProfile);
  ASSERT_OK_AND_ASSIGN(const PrototypeVerdict prototype, JudgeAsPrototype(profiles.readers()));
  EXPECT_GT(prototype.violations, 0);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, MatchProfiles(profiles.readers()));
  const HappensBefore result = CheckHappensBefore(table);
  EXPECT_EQ(result.checked, 8 * 2 * 2);
  EXPECT_EQ(result.unmatched, 0);
  EXPECT_THAT(result.violations, IsEmpty());

  // Node 1 begins after two of its eight steps.
  ClusterOptions late_options = Options();
  late_options.session_spread_ns = 150'000'000;
  const SyntheticCluster late(late_options);
  const Profiles late_profiles(late, TrueProfile);
  ASSERT_OK_AND_ASSIGN(const PrototypeVerdict shifted, JudgeAsPrototype(late_profiles.readers()));
  EXPECT_EQ(shifted.violations, shifted.compared);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable late_table, MatchProfiles(late_profiles.readers()));
  const HappensBefore late_result = CheckHappensBefore(late_table);
  EXPECT_EQ(late_result.checked, 6);
  EXPECT_EQ(late_result.unmatched, 2);
  EXPECT_THAT(late_result.violations, IsEmpty());
}

// All kinds were judged alike, by the host's spans where a collective is asynchronous.
TEST(PrototypeDefectsTest, D14_KindsDecideWhoWaitsAndKernelsWhen) {
  ClusterOptions options = Options();
  options.nodes = 4;
  // Who sends, roots a broadcast or leaves a reduce waits for nobody.
  options.collectives = {{CollectiveKind::kCollectivePermute, 0, false},
                         {CollectiveKind::kCollectiveBroadcast, 0, false},
                         {CollectiveKind::kCollectiveReduce, 0, false}};
  options.stragglers = {{1, 3'000'000, 1}};
  const SyntheticCluster cluster(options);
  const Profiles profiles(cluster, TrueProfile);
  ASSERT_OK_AND_ASSIGN(const PrototypeVerdict prototype, JudgeAsPrototype(profiles.readers()));
  EXPECT_GE(prototype.violations, 8);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, MatchProfiles(profiles.readers()));
  EXPECT_EQ(CheckHappensBefore(table).checked, 8 * 3);
  EXPECT_THAT(CheckHappensBefore(table).violations, IsEmpty());

  // Times are the kernels', not those of the launches before them.
  for (const CollectiveInstance& instance : table.instances()) {
    for (const CollectiveMember& member : table.MembersOf(instance)) {
      const int64_t base_ps = (table.base_ns() - options.start_ns) * kPsPerNs;
      bool found = false;
      for (int64_t step = 0; step < options.steps && !found; ++step) {
        for (size_t c = 0; c < options.collectives.size(); ++c) {
          const ClusterWork& work = cluster.Work(step, c, member.rank);
          found = found || (base_ps + member.start_ps == work.start_ps &&
                            base_ps + member.end_ps == work.end_ps);
        }
      }
      EXPECT_TRUE(found);
    }
  }
}

// The same rule on a recorded run with groups along both axes of a mesh, on true clocks.
TEST(PrototypeDefectsTest, D13_D14_ARecordedMeshRunHasNoViolation) {
  std::vector<XSpaceReader> readers;
  for (const char* rank : {"0", "1", "2", "3"}) {
    ASSERT_OK_AND_ASSIGN(
        XSpaceReader reader,
        XSpaceReader::Open(FileSystem::Posix(),
                           std::string("examples/jax_tp_cuda4/rank") + rank + ".xplane.pb.gz"));
    readers.push_back(std::move(reader));
  }
  ASSERT_OK_AND_ASSIGN(const PrototypeVerdict prototype, JudgeAsPrototype(readers));
  EXPECT_EQ(prototype.compared, 324);
  EXPECT_EQ(prototype.violations, 262);
  ASSERT_OK_AND_ASSIGN(const CollectiveTable table, MatchProfiles(readers));
  EXPECT_EQ(CheckHappensBefore(table).checked, 528);
  EXPECT_THAT(CheckHappensBefore(table).violations, IsEmpty());
}

// A soft margin on scaled data is not the line between the bounds, and says nothing of its error.
TEST(PrototypeDefectsTest, D15_TheCorridorIsExactAndKnowsItsWidth) {
  ClusterOptions options = Options();
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  const SyntheticCluster cluster(options);
  ProbeOptions links;
  links.max_asymmetry_ns = 8'000;
  ASSERT_OK_AND_ASSIGN(const std::vector<TwoWayProbe> probes,
                       ParseTwoWayProbes(TwoWayProbesJsonl(cluster, links), "probes"));
  const TwoWayEstimates estimates = EstimateEdges(probes);
  EXPECT_THAT(estimates.notes, IsEmpty());
  ASSERT_FALSE(estimates.edges.empty());
  for (const ProbeEdge& edge : estimates.edges) {
    const int64_t shown_ps = (edge.midpoint_src_ns - options.start_ns) * kPsPerNs;
    const int64_t true_ps = cluster.node(edge.src).host.TruePs(shown_ps);
    const int64_t truth_ps = cluster.HostPs(edge.dst, true_ps) - cluster.HostPs(edge.src, true_ps);
    ASSERT_TRUE(edge.bounds.has_value());
    EXPECT_LE(std::abs(edge.offset_ps - truth_ps), edge.bounds->offset_ps);
    // Half of the two shortest ways; what no probing can see is half of their difference.
    EXPECT_LE(edge.bounds->offset_ps, (10'000 + 8'000 / 2 + 1'000) * kPsPerNs);
    EXPECT_NEAR(edge.rate * 1e9,
                static_cast<double>(cluster.node(1).host.drift_ppb) /
                    (1 + static_cast<double>(cluster.node(0).host.drift_ppb) * 1e-9),
                edge.bounds->rate * 1e9);
  }
}

}  // namespace
}  // namespace meridian
