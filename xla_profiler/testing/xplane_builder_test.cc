#include "xla_profiler/testing/xplane_builder.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
// A program's fingerprint: 0xA92E'7B5C'0123'4567 as int64.
constexpr int64_t kFingerprint = -6255927197284743833;

std::vector<std::pair<int64_t, int64_t>> OffsetsAndDurations(XLineBuilder line) {
  std::vector<std::pair<int64_t, int64_t>> times;
  line.ForEachEvent(
      [&](XEventBuilder event) { times.emplace_back(event.OffsetPs(), event.DurationPs()); });
  return times;
}

TEST(XStatsBuilderTest, TheTypeOfAValueDecidesItsSlot) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  const XStatMetadataProto& metadata = *plane.GetOrCreateStatMetadata("s");
  plane.AddStatValue(metadata, uint64_t{18446744073709551615u});
  plane.AddStatValue(metadata, int64_t{-5});
  plane.AddStatValue(metadata, 7);
  plane.AddStatValue(metadata, true);
  plane.AddStatValue(metadata, 0.5);
  plane.AddStatValue(metadata, absl::string_view("view"));
  plane.AddStatValue(metadata, std::string("string"));
  plane.AddStatValue(metadata, "literal");
  plane.AddBytesValue(metadata, absl::string_view("\0\xff", 2));
  ASSERT_EQ(proto.stats_size(), 9);
  for (const XStatProto& stat : proto.stats()) EXPECT_EQ(stat.metadata_id(), metadata.id());
  EXPECT_EQ(proto.stats(0).uint64_value(), 18446744073709551615u);
  EXPECT_EQ(proto.stats(1).int64_value(), -5);
  EXPECT_EQ(proto.stats(2).int64_value(), 7);
  EXPECT_EQ(proto.stats(3).int64_value(), 1);
  EXPECT_EQ(proto.stats(4).double_value(), 0.5);
  EXPECT_EQ(proto.stats(5).str_value(), "view");
  EXPECT_EQ(proto.stats(6).str_value(), "string");
  EXPECT_EQ(proto.stats(7).str_value(), "literal");
  EXPECT_EQ(proto.stats(8).bytes_value(), std::string("\0\xff", 2));
}

TEST(XStatsBuilderTest, MetadataAsValueIsAReferenceToIt) {
  XPlaneProto proto;
  (*proto.mutable_stat_metadata())[kFingerprint].set_name("dot.3");
  XPlaneBuilder plane(&proto);
  const XStatMetadataProto& hlo_op = *plane.GetOrCreateStatMetadata(StatType::kHloOp);
  plane.AddStatValue(hlo_op, *plane.GetOrCreateStatMetadata("dot.3"));
  EXPECT_EQ(proto.stats(0).ref_value(), 12190816876424807783u);
}

TEST(XStatsBuilderTest, SetOrAddReplacesTheValueWhateverItsKind) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  const XStatMetadataProto& rank = *plane.GetOrCreateStatMetadata(StatType::kRank);
  plane.SetOrAddStatValue(rank, "three");
  plane.SetOrAddStatValue(*plane.GetOrCreateStatMetadata(StatType::kReplica), 1);
  plane.SetOrAddStatValue(rank, 3);
  ASSERT_EQ(proto.stats_size(), 2);
  EXPECT_EQ(proto.stats(0).value_case(), XStatProto::kInt64Value);
  EXPECT_EQ(proto.stats(0).int64_value(), 3);
}

TEST(XEventBuilderTest, AnEventHasEitherAStartOrOccurrences) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  XLineBuilder line = plane.GetOrCreateLine(0);
  XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata(kFingerprint));
  const XEventProto& event_proto = proto.lines(0).events(0);
  EXPECT_EQ(event_proto.metadata_id(), kFingerprint);
  EXPECT_TRUE(event_proto.has_offset_ps());

  event.SetTimespan(Timespan(1000, 500));
  EXPECT_EQ(event.OffsetPs(), 1000);
  EXPECT_EQ(event.DurationPs(), 500);
  event.SetNumOccurrences(3);
  EXPECT_FALSE(event_proto.has_offset_ps());
  EXPECT_EQ(event_proto.num_occurrences(), 3);
  event.SetOffsetPs(-1);
  EXPECT_FALSE(event_proto.has_num_occurrences());
}

TEST(XLineBuilderTest, SetsTheHeader) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  XLineBuilder line = plane.GetOrCreateLine(7);
  line.SetNameIfEmpty("Stream #7");
  line.SetNameIfEmpty("other");
  line.SetTimestampNs(11);
  EXPECT_EQ(line.Id(), 7);
  EXPECT_EQ(line.Name(), "Stream #7");
  EXPECT_EQ(line.TimestampNs(), 11);
}

class XLineTimesTest : public ::testing::Test {
 protected:
  XLineTimesTest() : plane_(&proto_), line_(plane_.GetOrCreateLine(1)) {}

  XEventBuilder AddEvent(int64_t offset_ps, int64_t duration_ps) {
    XEventBuilder event = line_.AddEvent(*plane_.GetOrCreateEventMetadata("e"));
    event.SetOffsetPs(offset_ps);
    event.SetDurationPs(duration_ps);
    return event;
  }

  XPlaneProto proto_;
  XPlaneBuilder plane_;
  XLineBuilder line_;
};

TEST_F(XLineTimesTest, AMovedBaseLeavesEventsWhereTheyWere) {
  line_.SetTimestampNs(1'770'000'000'000'000'000);
  AddEvent(5, 100);
  AddEvent(0, 50).SetNumOccurrences(4);
  ASSERT_TRUE(line_.SetTimestampNsAndAdjustEventOffsets(1'770'000'000'000'000'003).ok());
  EXPECT_EQ(line_.TimestampNs(), 1'770'000'000'000'000'003);
  // 5 ps - 3 ns.
  EXPECT_THAT(OffsetsAndDurations(line_), ElementsAre(Pair(-2995, 100), Pair(0, 50)));
  EXPECT_EQ(proto_.lines(0).events(1).num_occurrences(), 4);
}

TEST_F(XLineTimesTest, ABaseTooFarAwayIsAnErrorAndChangesNothing) {
  line_.SetName("main");
  line_.SetTimestampNs(1'770'000'000'000'000'000);
  AddEvent(5, 100);
  const std::string before = proto_.lines(0).SerializeAsString();
  const absl::Status status = line_.SetTimestampNsAndAdjustEventOffsets(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "line 1 \"main\"")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "offset_ps 5 ")) << status;
  EXPECT_EQ(proto_.lines(0).SerializeAsString(), before);
}

TEST_F(XLineTimesTest, OffsetsMayReachTheEndsOfInt64) {
  AddEvent(kMaxInt64 - 1000, 0);
  EXPECT_TRUE(line_.SetTimestampNsAndAdjustEventOffsets(-1).ok());
  EXPECT_THAT(OffsetsAndDurations(line_), ElementsAre(Pair(kMaxInt64, 0)));
  EXPECT_FALSE(line_.SetTimestampNsAndAdjustEventOffsets(-2).ok());
  // The move is 2^63 ps and more, the new offset is not: 9223372036854775 ns is 2^63 - 808 ps.
  EXPECT_TRUE(line_.SetTimestampNsAndAdjustEventOffsets(9'223'372'036'854'775).ok());
  EXPECT_THAT(OffsetsAndDurations(line_), ElementsAre(Pair(-193, 0)));
}

TEST(XPlaneBuilderTest, FindsLinesById) {
  XPlaneProto proto;
  proto.add_lines()->set_id(5);
  proto.mutable_lines(0)->set_name("first");
  proto.add_lines()->set_id(5);
  XPlaneBuilder plane(&proto);
  EXPECT_EQ(plane.GetOrCreateLine(5).Name(), "first");
  EXPECT_EQ(plane.GetOrCreateLine(-1).Id(), -1);
  plane.GetOrCreateLine(-1).SetName("negative");
  std::vector<std::string> names;
  plane.ForEachLine([&](XLineBuilder line) { names.emplace_back(line.Name()); });
  EXPECT_THAT(names, ElementsAre("first", "", "negative"));
}

TEST(XPlaneBuilderTest, NamesAndNumbersItself) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  plane.SetId(3);
  plane.SetName("/device:GPU:3");
  EXPECT_EQ(plane.Id(), 3);
  EXPECT_EQ(plane.Name(), "/device:GPU:3");
}

TEST(XPlaneBuilderTest, NewMetadataGetsTheIdAfterTheLargest) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  EXPECT_EQ(plane.GetOrCreateEventMetadata("a")->id(), 1);
  EXPECT_EQ(plane.GetOrCreateEventMetadata(40)->id(), 40);
  EXPECT_EQ(plane.GetOrCreateEventMetadata(kFingerprint)->id(), kFingerprint);
  EXPECT_EQ(plane.CreateEventMetadata()->id(), 41);
  EXPECT_EQ(plane.GetOrCreateEventMetadata("b")->id(), 42);
  EXPECT_EQ(plane.GetOrCreateEventMetadata("a")->id(), 1);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("a")->id(), 1);
  EXPECT_EQ(plane.GetOrCreateStatMetadata(StatType::kRank)->id(), 2);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("rank")->id(), 2);
  EXPECT_EQ(proto.event_metadata_size(), 5);
  EXPECT_EQ(proto.stat_metadata_size(), 2);
}

TEST(XPlaneBuilderTest, FindsTheMetadataThatAPlaneHas) {
  XPlaneProto proto;
  // This writer left the id out of the value.
  (*proto.mutable_event_metadata())[kFingerprint].set_name("jit_step");
  (*proto.mutable_stat_metadata())[9].set_name("twice");
  (*proto.mutable_stat_metadata())[4].set_name("twice");
  XPlaneBuilder plane(&proto);
  EXPECT_EQ(plane.GetOrCreateEventMetadata("jit_step")->id(), kFingerprint);
  EXPECT_EQ(plane.GetOrCreateEventMetadata("other")->id(), 1);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("twice")->id(), 4);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("other")->id(), 10);
}

TEST(XPlaneBuilderTest, FindsAFreeIdWhenTheLastOneIsTaken) {
  XPlaneProto proto;
  (*proto.mutable_stat_metadata())[kMaxInt64].set_name("last");
  (*proto.mutable_stat_metadata())[2].set_name("two");
  XPlaneBuilder plane(&proto);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("a")->id(), 1);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("b")->id(), 3);
  EXPECT_EQ(plane.GetOrCreateStatMetadata("last")->id(), kMaxInt64);
  EXPECT_EQ(proto.stat_metadata().at(2).name(), "two");
}

}  // namespace
}  // namespace meridian
