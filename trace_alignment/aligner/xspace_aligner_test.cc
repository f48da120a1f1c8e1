#include "trace_alignment/aligner/xspace_aligner.h"

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kSecondPs = 1000000000000;

// A map through knots given in seconds from the session's start, the second shifted by shift_ps.
ClockMap Shift(int64_t shift_ps, int64_t until_s = 100) {
  absl::StatusOr<ClockMap> map = ClockMap::Create(
      {{-kSecondPs, -kSecondPs + shift_ps}, {until_s * kSecondPs, until_s * kSecondPs + shift_ps}});
  EXPECT_OK(map);
  return *std::move(map);
}

class XSpaceAlignerTest : public ::testing::Test {
 protected:
  XSpaceAlignerTest() : before_(SyntheticRun({})[0]) {}

  // The clock of the run's first node, whose session starts at the run base.
  static NodeClock Clock() { return NodeClock(RunClock(SyntheticRunOptions().start_ns)); }

  // Aligns before_ into after_.
  absl::StatusOr<AlignmentStats> Align(const NodeClock& node, const AlignOptions& options = {}) {
    const std::string bytes = before_.SerializeAsString();
    absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "a.pb");
    if (!reader.ok()) return reader.status();
    absl::StatusOr<SessionInfo> info = ReadSessionInfo(*reader);
    if (!info.ok()) return info.status();
    absl::StatusOr<SessionClock> clock = SessionClock::Create("a.pb", *info, std::nullopt);
    if (!clock.ok()) return clock.status();
    out_.clear();
    StringSink sink(&out_);
    absl::StatusOr<AlignmentStats> stats = AlignXSpace(*reader, *clock, node, options, sink);
    EXPECT_TRUE(!stats.ok() || after_.ParseFromString(out_));
    return stats;
  }

  static int64_t SessionStart(const XSpaceProto& space) {
    return static_cast<int64_t>(
        FindPlaneWithName(space, kTaskEnvPlaneName)->stats(0).uint64_value());
  }

  // Picoseconds of an event from the original session's start.
  int64_t StartPs(const XSpaceProto& space, absl::string_view plane, int event) const {
    const XLineProto& line = FindPlaneWithName(space, plane)->lines(0);
    return (SessionStart(space) - SessionStart(before_) + line.timestamp_ns()) * 1000 +
           line.events(event).offset_ps();
  }

  XSpaceProto before_;
  XSpaceProto after_;
  std::string out_;
};

TEST_F(XSpaceAlignerTest, TracerAndHostLinesGoTheirOwnWays) {
  NodeClock node = Clock();
  node.tracer_to_host = Shift(3000);
  node.host_to_reference = Shift(-5000500);
  ASSERT_OK_AND_ASSIGN(const AlignmentStats stats, Align(node));
  const int64_t tracer_move = 3000 - 5000500;
  for (int event : {0, 1, 5}) {
    EXPECT_EQ(StartPs(after_, "/device:GPU:0", event),
              StartPs(before_, "/device:GPU:0", event) + tracer_move);
    EXPECT_EQ(StartPs(after_, "/host:CPU", event), StartPs(before_, "/host:CPU", event) - 5000500);
  }
  // -5000.5 ns, rounded down.
  EXPECT_EQ(SessionStart(after_), SessionStart(before_) - 5001);
  EXPECT_EQ(stats.events_corrected(), stats.events());
  EXPECT_EQ(stats.events_clamped_monotonic(), 0);
  EXPECT_EQ(stats.min_correction_ns(), -5001);
  EXPECT_EQ(stats.max_correction_ns(), -4998);
  EXPECT_EQ(stats.snapshot_extrapolations(), 0);
  EXPECT_EQ(stats.offset_extrapolations(), 0);
}

TEST_F(XSpaceAlignerTest, DurationsAreMappedWithTheirEnds) {
  // The reference runs half as fast.
  NodeClock node = Clock();
  ASSERT_OK_AND_ASSIGN(node.host_to_reference,
                       ClockMap::Create({{0, 0}, {100 * kSecondPs, 50 * kSecondPs}}));
  ASSERT_OK(Align(node));
  const auto& old_event = FindPlaneWithName(before_, "/device:GPU:0")->lines(0).events(0);
  const auto& new_event = FindPlaneWithName(after_, "/device:GPU:0")->lines(0).events(0);
  EXPECT_EQ(new_event.duration_ps(), old_event.duration_ps() / 2);
}

TEST_F(XSpaceAlignerTest, AnIdentityMovesNothingButSaysThatItWasThere) {
  AlignOptions options;
  options.record.node_id = 7;
  options.record.method = "none";
  ASSERT_OK_AND_ASSIGN(const AlignmentStats stats, Align(Clock(), options));
  EXPECT_EQ(stats.events_corrected(), 0);
  EXPECT_EQ(StartPs(after_, "/device:GPU:0", 3), StartPs(before_, "/device:GPU:0", 3));
  ASSERT_OK_AND_ASSIGN(const XSpaceReader original, XSpaceReader::FromBytes(out_, "aligned"));
  ASSERT_OK_AND_ASSIGN(const bool aligned, IsAligned(original));
  EXPECT_TRUE(aligned);
  const std::string bytes = before_.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "raw"));
  ASSERT_OK_AND_ASSIGN(const bool raw_aligned, IsAligned(reader));
  EXPECT_FALSE(raw_aligned);
}

TEST_F(XSpaceAlignerTest, OriginalTimesCanBeKept) {
  NodeClock node = Clock();
  node.host_to_reference = Shift(2000);
  AlignOptions options;
  options.lines.keep_original = true;
  ASSERT_OK(Align(node, options));
  const XPlaneProto& plane = *FindPlaneWithName(after_, "/device:GPU:0");
  const XEventProto& event = plane.lines(0).events(1);
  std::map<std::string, int64_t> kept;
  for (const XStatProto& stat : event.stats()) {
    kept[plane.stat_metadata().at(stat.metadata_id()).name()] = stat.int64_value();
  }
  EXPECT_EQ(kept["original_start_ps"], StartPs(before_, "/device:GPU:0", 1));
  EXPECT_EQ(kept["original_duration_ps"],
            FindPlaneWithName(before_, "/device:GPU:0")->lines(0).events(1).duration_ps());
  EXPECT_EQ(kept["timestamp_correction_ns"], 2);
}

TEST_F(XSpaceAlignerTest, EventsFarOutsideTheSamplesAreRefused) {
  // Samples end one second before the session begins; its events come some 20 ms after that.
  NodeClock node = Clock();
  ASSERT_OK_AND_ASSIGN(node.host_to_reference,
                       ClockMap::Create({{-3 * kSecondPs, 0}, {-kSecondPs, 2 * kSecondPs}}));
  AlignOptions options;
  options.lines.node_id = 4;
  ASSERT_OK_AND_ASSIGN(const AlignmentStats stats, Align(node, options));
  EXPECT_EQ(stats.offset_extrapolations(), stats.events());
  EXPECT_GT(stats.farthest_extrapolation_ns(), 1000000000);
  options.lines.max_extrapolation_ns = 500000000;
  EXPECT_THAT(Align(node, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::AllOf(HasSubstr("node 4"), HasSubstr("--max_extrapolation_ms"))));
}

TEST_F(XSpaceAlignerTest, AnEventThatNoClockCanShowStaysAsItIs) {
  auto* line = FindMutablePlaneWithName(&before_, "/device:GPU:0")->mutable_lines(0);
  line->mutable_events(1)->set_duration_ps(-1);
  NodeClock node = Clock();
  node.host_to_reference = Shift(-7000);
  AlignOptions options;
  options.lines.keep_original = true;
  ASSERT_OK_AND_ASSIGN(const AlignmentStats stats, Align(node, options));
  EXPECT_EQ(stats.events_without_time(), 1);
  const auto& aligned = FindPlaneWithName(after_, "/device:GPU:0")->lines(0);
  EXPECT_EQ(aligned.events(1).offset_ps(), line->events(1).offset_ps());
  EXPECT_EQ(aligned.events(1).duration_ps(), -1);
  EXPECT_EQ(aligned.events(1).stats_size(), line->events(1).stats_size());
  // What stands after it is moved as ever.
  EXPECT_EQ(StartPs(after_, "/device:GPU:0", 2), StartPs(before_, "/device:GPU:0", 2) - 7000);
}

TEST_F(XSpaceAlignerTest, ALineThatBeginsAtNoTimeStaysAsItIs) {
  auto* line = FindMutablePlaneWithName(&before_, "/device:GPU:0")->mutable_lines(0);
  line->set_timestamp_ns(std::numeric_limits<int64_t>::max() / 2);
  NodeClock node = Clock();
  node.host_to_reference = Shift(-7000);
  ASSERT_OK_AND_ASSIGN(const AlignmentStats stats, Align(node));
  EXPECT_EQ(stats.events_without_time(), line->events_size());
  EXPECT_EQ(FindPlaneWithName(after_, "/device:GPU:0")->lines(0).timestamp_ns(),
            line->timestamp_ns());
}

// The run's base is half a century before the session.
TEST_F(XSpaceAlignerTest, AStartThatCannotBeMappedNamesTheProfile) {
  EXPECT_THAT(Align(NodeClock(RunClock(0))),
              StatusIs(absl::StatusCode::kOutOfRange, StartsWith("a.pb: Unix time ")));
}

// Without a plane that says when the session began, the aligned file gets one.
TEST_F(XSpaceAlignerTest, TheStartIsAlwaysKnownAfterwards) {
  RemovePlane(&before_, FindPlaneWithName(before_, kTaskEnvPlaneName));
  const std::string bytes = before_.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "a.pb"));
  ASSERT_OK_AND_ASSIGN(const SessionClock clock,
                       SessionClock::Create("a.pb", SessionInfo(), int64_t{1'000'000'000}));
  NodeClock node(RunClock(clock.start_ns()));
  node.host_to_reference = Shift(5'000'000);
  StringSink sink(&out_);
  ASSERT_OK(AlignXSpace(reader, clock, node, {}, sink));
  ASSERT_OK_AND_ASSIGN(const XSpaceReader aligned, XSpaceReader::FromBytes(out_, "aligned"));
  ASSERT_OK_AND_ASSIGN(const SessionInfo info, ReadSessionInfo(aligned));
  EXPECT_EQ(info.profile_start_ns, 1'000'005'000);
}

}  // namespace
}  // namespace meridian
