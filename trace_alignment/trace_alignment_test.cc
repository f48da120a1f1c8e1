// What was measured of a node's clocks, in every form, puts every event of its profile where it
// truly was, on every target clock.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "third_party/xplane/snapshot_pairs.pb.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/testing/clock_readings.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/node_inputs.h"
#include "trace_alignment/testing/order_check.h"
#include "trace_alignment/testing/profile_events.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

// Both clocks of a snapshot pair are read to the nanosecond, downward, so their difference is off
// by less than one; an event may go through two maps of pairs.
constexpr int64_t kReadingPs = 1'000;
constexpr int64_t kTolerancePs = 2 * kReadingPs + 10;

ClusterOptions Options() {
  ClusterOptions options;
  options.nodes = 3;
  options.devices_per_node = 2;
  options.rest_ns = 100'000'000;
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  options.max_wander_ppb = 2'000;
  options.max_tracer_drift_ppb = 5'000;
  return options;
}

class TraceAlignmentTest : public ::testing::Test {
 protected:
  // Wander turns every 100 ms, which is when all clocks are read: polylines are exact then.
  explicit TraceAlignmentTest(const ClusterOptions& options = Options()) : cluster_(options) {}

  SnapshotPairs Snapshots(int64_t node, const SnapshotOptions& options = {}) const {
    absl::StatusOr<SnapshotPairs> pairs =
        ParseSnapshotPairs(SnapshotPairsJsonl(cluster_, node, options), "snapshots");
    EXPECT_OK(pairs);
    return *std::move(pairs);
  }

  OffsetSamples Offsets(const OffsetsOptions& options = {}) const {
    absl::StatusOr<OffsetSamples> samples =
        OffsetSamples::Parse(OffsetsJsonl(cluster_, options), "offsets", std::nullopt);
    EXPECT_OK(samples);
    return *std::move(samples);
  }

  NodeInputs Inputs(int64_t node) const {
    NodeInputs inputs;
    inputs.node_id = node;
    inputs.snapshots = Snapshots(node);
    inputs.reference_snapshots = Snapshots(0);
    inputs.offsets = Offsets();
    return inputs;
  }

  absl::StatusOr<std::vector<ProfileEvent>> Align(const XSpaceProto& profile,
                                                  const NodeInputs& inputs,
                                                  ClockTarget target) const {
    ASSIGN_OR_RETURN(const AlignedProfile aligned,
                     AlignProfile(profile.SerializeAsString(), [&](const RunClock& session) {
                       return MakeNodeClock(inputs, target, session);
                     }));
    EXPECT_EQ(aligned.stats.events_clamped_monotonic(), 0);
    EXPECT_EQ(aligned.stats.snapshot_extrapolations(), 0);
    EXPECT_EQ(aligned.stats.offset_extrapolations(), 0);
    return ListProfileEvents(aligned.bytes, cluster_.options().start_ns);
  }

  // Returns how far the farthest start or end is from the truth.
  absl::StatusOr<int64_t> LargestErrorPs(const NodeInputs& inputs, ClockTarget target) const {
    const int64_t node = inputs.node_id;
    ASSIGN_OR_RETURN(const std::vector<ProfileEvent> aligned,
                     Align(RecordedProfile(cluster_, node), inputs, target));
    ASSIGN_OR_RETURN(const std::vector<ProfileEvent> truth,
                     ListProfileEvents(TrueProfile(cluster_, node).SerializeAsString(),
                                       cluster_.options().start_ns));
    EXPECT_EQ(aligned.size(), truth.size());
    int64_t largest_ps = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      for (const auto& [true_ps, aligned_ps] :
           {std::make_pair(truth[i].start_ps, aligned[i].start_ps),
            std::make_pair(truth[i].end_ps, aligned[i].end_ps)}) {
        largest_ps =
            std::max(largest_ps, std::abs(aligned_ps - TargetPs(cluster_, node, target, true_ps)));
      }
    }
    return largest_ps;
  }

  const SyntheticCluster cluster_;
};

TEST_F(TraceAlignmentTest, EveryEventOfEveryNodeIsWhereItWasOnEveryTarget) {
  for (int64_t node = 0; node < 3; ++node) {
    for (ClockTarget target : {ClockTarget::kTracer, ClockTarget::kReference, ClockTarget::kHost}) {
      SCOPED_TRACE(testing::Message() << "node " << node << ", target " << int(target));
      EXPECT_THAT(LargestErrorPs(Inputs(node), target), IsOkAndHolds(::testing::Le(kTolerancePs)));
    }
  }
}

TEST_F(TraceAlignmentTest, WithoutInputsTheProfileStaysAsItWas) {
  const XSpaceProto profile = RecordedProfile(cluster_, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> before,
                       ListProfileEvents(profile.SerializeAsString(), cluster_.options().start_ns));
  ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> after,
                       Align(profile, {}, ClockTarget::kHost));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].start_ps, after[i].start_ps);
    EXPECT_EQ(before[i].end_ps, after[i].end_ps);
  }
}

TEST_F(TraceAlignmentTest, AbsolutePairsSayTheSame) {
  SnapshotOptions options;
  options.absolute = true;
  NodeInputs inputs = Inputs(1);
  inputs.snapshots = Snapshots(1, options);
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(TraceAlignmentTest, AMessageOfPairsSaysTheSame) {
  tensorflow::profiler::SnapshotPairs message;
  const ClusterNode& node = cluster_.node(1);
  for (const SnapshotPair& pair : Snapshots(1).pairs) {
    auto* proto = message.add_pairs();
    proto->set_sys_clock_ns(static_cast<uint64_t>(pair.sys_ns));
    proto->set_tracer_clock_ns(
        static_cast<uint64_t>(pair.tracer_ns - node.start_walltime_ns + node.start_gpu_ns));
  }
  SnapshotPairsOptions options;
  options.offsets_header = Offsets().AnchorsOf(1);
  NodeInputs inputs = Inputs(1);
  ASSERT_OK_AND_ASSIGN(inputs.snapshots,
                       ParseSnapshotPairs(message.SerializeAsString(), "pairs", options));
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(TraceAlignmentTest, ThePlaneOfSnapshotsSaysTheSame) {
  XSpaceProto profile = RecordedProfile(cluster_, 1);
  AddSnapshotsPlane(cluster_, 1, 100'000'000, &profile);
  const std::string bytes = profile.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "profile"));
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, ReadSessionInfo(reader));
  ASSERT_OK_AND_ASSIGN(const SessionClock clock, SessionClock::Create("p", info, std::nullopt));
  ASSERT_OK_AND_ASSIGN(const std::optional<XPlaneVisitor> plane,
                       reader.FindPlane(kSnapshotsPlaneName));
  ASSERT_TRUE(plane.has_value());
  SnapshotPairsOptions options;
  options.offsets_header = Offsets().AnchorsOf(1);
  NodeInputs inputs = Inputs(1);
  ASSERT_OK_AND_ASSIGN(inputs.snapshots, SnapshotPairsFromPlane(*plane, clock, "p", options));
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(TraceAlignmentTest, LegacyOffsetsSayTheSame) {
  OffsetsOptions options;
  options.legacy = true;
  NodeInputs inputs = Inputs(1);
  inputs.offsets = Offsets(options);
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kReference),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(TraceAlignmentTest, BracketsOfPairsBoundTheError) {
  SnapshotOptions options;
  options.max_bracket_ns = 10'000;
  NodeInputs inputs = Inputs(1);
  inputs.snapshots = Snapshots(1, options);
  ASSERT_OK_AND_ASSIGN(const int64_t error_ps, LargestErrorPs(inputs, ClockTarget::kHost));
  EXPECT_LE(error_ps, 5'000'000 + kTolerancePs);
  // Not for nothing: without brackets it is a hundredth of that.
  EXPECT_GT(error_ps, 100 * kTolerancePs);
}

TEST_F(TraceAlignmentTest, OrderAndNestingAreKept) {
  const XSpaceProto profile = RecordedProfile(cluster_, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> before,
                       ListProfileEvents(profile.SerializeAsString(), cluster_.options().start_ns));
  ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> after,
                       Align(profile, Inputs(2), ClockTarget::kReference));
  ASSERT_OK_AND_ASSIGN(const OrderCheck check, CheckOrderAndNesting(before, after));
  // Of each of 2 devices, in each of 8 steps, two launches start with their thunk; they, their
  // thunks and the raw Execute lie in another span.
  EXPECT_EQ(check.equal_starts, 2 * 8 * 2);
  EXPECT_EQ(check.children, 2 * 8 * 5);
}

// Fields that no schema knows yet, at every level of a profile.
TEST_F(TraceAlignmentTest, UnknownFieldsSurvive) {
  static constexpr int kField = 1234;
  const auto mark = [](google::protobuf::Message* message, uint64_t value) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(kField, value);
  };
  XSpaceProto profile = RecordedProfile(cluster_, 1);
  mark(&profile, 1);
  for (XPlaneProto& plane : *profile.mutable_planes()) {
    mark(&plane, 2);
    for (auto& [id, metadata] : *plane.mutable_event_metadata()) mark(&metadata, 3);
    for (XLineProto& line : *plane.mutable_lines()) {
      mark(&line, 4);
      for (XEventProto& event : *line.mutable_events()) {
        mark(&event, 5);
        for (XStatProto& stat : *event.mutable_stats()) mark(&stat, 6);
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(const AlignedProfile aligned,
                       AlignProfile(profile.SerializeAsString(), [&](const RunClock& session) {
                         return MakeNodeClock(Inputs(1), ClockTarget::kReference, session);
                       }));
  XSpaceProto after;
  ASSERT_TRUE(after.ParseFromString(aligned.bytes));
  const auto expect_marked = [](const google::protobuf::Message& message, uint64_t value) {
    const auto& fields = message.GetReflection()->GetUnknownFields(message);
    ASSERT_EQ(fields.field_count(), 1) << message.ShortDebugString();
    EXPECT_EQ(fields.field(0).number(), kField);
    EXPECT_EQ(fields.field(0).varint(), value);
  };
  expect_marked(after, 1);
  ASSERT_EQ(after.planes_size(), profile.planes_size());
  for (int p = 0; p < profile.planes_size(); ++p) {
    const XPlaneProto& plane = after.planes(p);
    expect_marked(plane, 2);
    for (const auto& [id, metadata] : plane.event_metadata()) expect_marked(metadata, 3);
    ASSERT_EQ(plane.lines_size(), profile.planes(p).lines_size());
    for (int l = 0; l < plane.lines_size(); ++l) {
      expect_marked(plane.lines(l), 4);
      ASSERT_EQ(plane.lines(l).events_size(), profile.planes(p).lines(l).events_size());
      for (const XEventProto& event : plane.lines(l).events()) {
        expect_marked(event, 5);
        for (const XStatProto& stat : event.stats()) expect_marked(stat, 6);
      }
    }
  }
}

TEST_F(TraceAlignmentTest, AnAlignedProfileIsKnownAsOne) {
  const std::string recorded = RecordedProfile(cluster_, 1).SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const AlignedProfile aligned,
                       AlignProfile(recorded, [&](const RunClock& session) {
                         return MakeNodeClock(Inputs(1), ClockTarget::kHost, session);
                       }));
  ASSERT_OK_AND_ASSIGN(const XSpaceReader raw, XSpaceReader::FromBytes(recorded, "raw"));
  ASSERT_OK_AND_ASSIGN(const XSpaceReader again, XSpaceReader::FromBytes(aligned.bytes, "again"));
  EXPECT_THAT(IsAligned(raw), IsOkAndHolds(false));
  EXPECT_THAT(IsAligned(again), IsOkAndHolds(true));
}

TEST_F(TraceAlignmentTest, MoreSamplesThanTurnsChangeNothing) {
  OffsetsOptions offsets;
  offsets.period_ns = 10'000'000;
  SnapshotOptions snapshots;
  snapshots.period_ns = 10'000'000;
  NodeInputs inputs = Inputs(2);
  inputs.offsets = Offsets(offsets);
  inputs.snapshots = Snapshots(2, snapshots);
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

// Clocks that only drift, tracers that do not drift against their hosts.
class SteadyAlignmentTest : public TraceAlignmentTest {
 protected:
  SteadyAlignmentTest() : TraceAlignmentTest(SteadyOptions()) {}

  static ClusterOptions SteadyOptions() {
    ClusterOptions options = Options();
    options.max_wander_ppb = 0;
    options.max_tracer_drift_ppb = 0;
    return options;
  }
};

TEST_F(SteadyAlignmentTest, WithoutSnapshotsTheTracerIsTakenForTheHost) {
  NodeInputs inputs = Inputs(1);
  inputs.snapshots.reset();
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(SteadyAlignmentTest, EachSamplesOwnSlopeIsExact) {
  NodeInputs inputs = Inputs(1);
  inputs.slope = OffsetSamples::Slope::kDriftPpm;
  EXPECT_THAT(LargestErrorPs(inputs, ClockTarget::kHost),
              IsOkAndHolds(::testing::Le(kTolerancePs)));
}

TEST_F(SteadyAlignmentTest, OneSampleIsAConstantShiftOrALine) {
  NodeInputs inputs = Inputs(1);
  const OffsetSample sample = inputs.offsets->SamplesOf(1)[4];
  inputs.offsets.emplace("one sample", 0, std::vector<OffsetSample>{sample});
  const auto make_clock = [&](const RunClock& session) {
    return MakeNodeClock(inputs, ClockTarget::kHost, session);
  };
  // Beyond the sample all is extrapolated; it is half a second off at most, so the drift costs up
  // to 25 us.
  const std::string profile = RecordedProfile(cluster_, 1).SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const AlignedProfile shifted, AlignProfile(profile, make_clock));
  EXPECT_EQ(shifted.stats.offset_extrapolations(), shifted.stats.events());
  EXPECT_EQ(shifted.stats.min_correction_ns(), shifted.stats.max_correction_ns());
  inputs.slope = OffsetSamples::Slope::kDriftPpm;
  ASSERT_OK_AND_ASSIGN(const AlignedProfile sloped, AlignProfile(profile, make_clock));
  ASSERT_OK_AND_ASSIGN(const std::vector<ProfileEvent> aligned,
                       ListProfileEvents(sloped.bytes, cluster_.options().start_ns));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<ProfileEvent> truth,
      ListProfileEvents(TrueProfile(cluster_, 1).SerializeAsString(), cluster_.options().start_ns));
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_LE(std::abs(aligned[i].start_ps - truth[i].start_ps), kTolerancePs) << truth[i].name;
  }
}

}  // namespace
}  // namespace meridian
