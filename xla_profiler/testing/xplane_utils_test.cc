#include "xla_profiler/testing/xplane_utils.h"

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
#include "xla_profiler/xplane/xplane_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
// A program's fingerprint: 0xA92E'7B5C'0123'4567 as int64.
constexpr int64_t kFingerprint = -6255927197284743833;

XEventBuilder AddEvent(XPlaneBuilder* plane, int64_t line_id, absl::string_view name,
                       int64_t offset_ps, int64_t duration_ps) {
  XEventBuilder event =
      plane->GetOrCreateLine(line_id).AddEvent(*plane->GetOrCreateEventMetadata(name));
  event.SetOffsetPs(offset_ps);
  event.SetDurationPs(duration_ps);
  return event;
}

std::vector<std::string> PlaneNames(const XSpaceProto& space) {
  std::vector<std::string> names;
  for (const XPlaneProto& plane : space.planes()) names.emplace_back(plane.name());
  return names;
}

std::vector<int64_t> Durations(const XLineProto& line) {
  std::vector<int64_t> durations;
  for (const XEventProto& event : line.events()) durations.push_back(event.duration_ps());
  return durations;
}

std::vector<int64_t> Offsets(const XLineProto& line) {
  std::vector<int64_t> offsets;
  for (const XEventProto& event : line.events()) offsets.push_back(event.offset_ps());
  return offsets;
}

// Returns "name=value" with references resolved; numbers must be signed.
std::string StatText(const XPlaneProto& plane, const XStatProto& stat) {
  const std::string name(plane.stat_metadata().at(stat.metadata_id()).name());
  if (stat.has_int64_value()) return name + "=" + std::to_string(stat.int64_value());
  const auto ref = static_cast<int64_t>(stat.ref_value());
  return name + "=" + std::string(plane.stat_metadata().at(ref).name());
}

template <typename Owner>
std::vector<std::string> StatTexts(const XPlaneProto& plane, const Owner& owner) {
  std::vector<std::string> texts;
  for (const XStatProto& stat : owner.stats()) texts.push_back(StatText(plane, stat));
  return texts;
}

const XEventMetadataProto& MetadataOf(const XPlaneProto& plane, const XEventProto& event) {
  return plane.event_metadata().at(event.metadata_id());
}

TEST(XPlaneUtilsTest, FindsPlanesByNameAndPrefix) {
  XSpaceProto space;
  space.add_planes()->set_name("/device:GPU:1");
  space.add_planes()->set_name("/host:CPU");
  space.add_planes()->set_name("/device:GPU:0");
  EXPECT_EQ(FindPlaneWithName(space, "/host:CPU"), &space.planes(1));
  EXPECT_EQ(FindPlaneWithName(space, "/host:"), nullptr);
  EXPECT_EQ(FindMutablePlaneWithName(&space, "/device:GPU:0"), &space.planes(2));
  EXPECT_THAT(FindPlanesWithPrefix(space, "/device:GPU:"),
              ElementsAre(&space.planes(0), &space.planes(2)));
  EXPECT_THAT(FindPlanesWithPrefix(space, "/device:TPU:"), IsEmpty());
}

TEST(XPlaneUtilsTest, AddsAPlaneOnlyIfThereIsNone) {
  XSpaceProto space;
  XPlaneProto* added = FindOrAddMutablePlaneWithName(&space, "/host:CPU");
  EXPECT_EQ(added->name(), "/host:CPU");
  EXPECT_EQ(FindOrAddMutablePlaneWithName(&space, "/host:CPU"), added);
  EXPECT_EQ(space.planes_size(), 1);
}

TEST(XPlaneUtilsTest, FindsTheFirstLineByIdOrName) {
  XPlaneProto plane;
  for (int64_t id : {7, -1, 7}) plane.add_lines()->set_id(id);
  plane.mutable_lines(1)->set_name("main");
  EXPECT_EQ(FindLineWithId(plane, 7), &plane.lines(0));
  EXPECT_EQ(FindLineWithId(plane, 8), nullptr);
  EXPECT_EQ(FindLineWithName(plane, "main"), &plane.lines(1));
  EXPECT_EQ(FindLineWithName(plane, "mai"), nullptr);
}

TEST(XPlaneUtilsTest, RemovingKeepsOrderAndAddresses) {
  XSpaceProto space;
  for (const char* name : {"a", "b", "c", "d", "e"}) space.add_planes()->set_name(name);
  const XPlaneProto* e = FindPlaneWithName(space, "e");
  const XPlaneProto stranger;
  RemovePlane(&space, FindPlaneWithName(space, "b"));
  RemovePlanes(&space, {FindPlaneWithName(space, "d"), FindPlaneWithName(space, "a"), &stranger});
  EXPECT_THAT(PlaneNames(space), ElementsAre("c", "e"));
  EXPECT_EQ(FindPlaneWithName(space, "e"), e);
}

TEST(XPlaneUtilsTest, PlanesWithoutLinesAreEmptyOnlyIfTheySayNothing) {
  XSpaceProto space;
  XPlaneBuilder empty(space.add_planes());
  empty.SetName("/device:GPU:1");
  empty.GetOrCreateStatMetadata("unused");
  XPlaneBuilder metadata(space.add_planes());
  metadata.SetName("/host:metadata");
  metadata.GetOrCreateEventMetadata("jit_step(3)");
  XPlaneBuilder task(space.add_planes());
  task.SetName("Task Environment");
  task.AddStatValue(*task.GetOrCreateStatMetadata("profile_start_time"), 1);
  XPlaneBuilder device(space.add_planes());
  device.SetName("/device:GPU:0");
  device.GetOrCreateLine(1);
  RemoveEmptyPlanes(&space);
  EXPECT_THAT(PlaneNames(space),
              ElementsAre("/host:metadata", "Task Environment", "/device:GPU:0"));
}

TEST(XPlaneUtilsTest, RemovesLinesWithoutEvents) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  plane.GetOrCreateLine(1);
  AddEvent(&plane, 2, "e", 0, 1);
  plane.GetOrCreateLine(3);
  RemoveEmptyLines(&proto);
  ASSERT_EQ(proto.lines_size(), 1);
  EXPECT_EQ(proto.lines(0).id(), 2);
}

TEST(XPlaneUtilsTest, SortsParentsBeforeTheirChildrenAndKeepsTies) {
  XSpaceProto space;
  XPlaneBuilder plane(space.add_planes());
  AddEvent(&plane, 9, "late", 50, 1);
  AddEvent(&plane, 9, "child", 10, 5);
  AddEvent(&plane, 9, "parent", 10, 40);
  AddEvent(&plane, 9, "twin", 10, 5);
  AddEvent(&plane, 9, "early", -3, 2);
  plane.GetOrCreateLine(4);
  SortXSpace(&space);
  const XPlaneProto& sorted = space.planes(0);
  std::vector<std::string> names;
  for (const XEventProto& event : sorted.lines(0).events()) {
    names.emplace_back(MetadataOf(sorted, event).name());
  }
  EXPECT_THAT(names, ElementsAre("early", "parent", "child", "twin", "late"));
  EXPECT_EQ(sorted.lines(0).id(), 9);
  EXPECT_EQ(sorted.lines(1).id(), 4);
}

TEST(XPlaneUtilsTest, MergeRemapsReferencesEverywhere) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  const XStatMetadataProto& hlo_op = *src.GetOrCreateStatMetadata("hlo_op");
  const XStatMetadataProto& dot = *src.GetOrCreateStatMetadata("dot.3");
  src.AddStatValue(hlo_op, dot);
  XStatsBuilder<XEventMetadataProto>(src.GetOrCreateEventMetadata("gemm"), &src)
      .AddStatValue(hlo_op, dot);
  AddEvent(&src, 1, "gemm", 0, 1).AddStatValue(hlo_op, dot);

  // Here the ids of the source mean something else.
  XPlaneProto dst;
  XPlaneBuilder dst_builder(&dst);
  dst_builder.GetOrCreateStatMetadata("wrong name");
  dst_builder.GetOrCreateStatMetadata("wrong value");
  dst_builder.GetOrCreateEventMetadata("wrong event");

  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  const XEventProto& event = dst.lines(0).events(0);
  EXPECT_EQ(MetadataOf(dst, event).name(), "gemm");
  EXPECT_THAT(StatTexts(dst, dst), ElementsAre("hlo_op=dot.3"));
  EXPECT_THAT(StatTexts(dst, MetadataOf(dst, event)), ElementsAre("hlo_op=dot.3"));
  EXPECT_THAT(StatTexts(dst, event), ElementsAre("hlo_op=dot.3"));
  EXPECT_EQ(event.stats(0).metadata_id(), 3);
  EXPECT_EQ(event.stats(0).ref_value(), 4u);
}

TEST(XPlaneUtilsTest, MergeRemapsChildren) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  XEventMetadataProto* parent = src.GetOrCreateEventMetadata("parent");
  parent->add_child_id(src.GetOrCreateEventMetadata("shared")->id());
  parent->add_child_id(src.GetOrCreateEventMetadata("new")->id());

  XPlaneProto dst;
  XPlaneBuilder dst_builder(&dst);
  const int64_t shared_id = dst_builder.GetOrCreateEventMetadata("shared")->id();
  XEventMetadataProto* dst_parent = dst_builder.GetOrCreateEventMetadata("parent");
  dst_parent->add_child_id(shared_id);

  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  // "new" has id 3 in both.
  EXPECT_THAT(dst_parent->child_id(), ElementsAre(shared_id, 3));
  EXPECT_EQ(dst.event_metadata().at(3).name(), "new");
  EXPECT_EQ(dst.event_metadata_size(), 3);
}

TEST(XPlaneUtilsTest, MergeTranslatesIdsOfAnySize) {
  XPlaneProto src;
  (*src.mutable_event_metadata())[kFingerprint].set_name("jit_step(1)");
  (*src.mutable_event_metadata())[kMaxInt64].set_name("jit_eval(2)");
  (*src.mutable_stat_metadata())[-1].set_name("hlo_op");
  (*src.mutable_stat_metadata())[kFingerprint].set_name("dot.3");
  XLineProto* line = src.add_lines();
  for (int64_t id : {kFingerprint, kMaxInt64}) {
    XEventProto* event = line->add_events();
    event->set_metadata_id(id);
    XStatProto* stat = event->add_stats();
    stat->set_metadata_id(-1);
    stat->set_ref_value(static_cast<uint64_t>(kFingerprint));
  }

  // One of the ids is taken; after the largest int64 a free one is 1.
  XPlaneProto dst;
  XPlaneBuilder(&dst).GetOrCreateEventMetadata(kMaxInt64)->set_name("taken");
  ASSERT_TRUE(MergePlanes({&src}, &dst).ok());
  const XLineProto& merged = dst.lines(0);
  EXPECT_EQ(merged.events(0).metadata_id(), kFingerprint);
  EXPECT_EQ(merged.events(1).metadata_id(), 1);
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).name(), "jit_step(1)");
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).id(), kFingerprint);
  EXPECT_EQ(dst.event_metadata().at(1).name(), "jit_eval(2)");
  EXPECT_EQ(dst.event_metadata().at(kMaxInt64).name(), "taken");
  for (const XEventProto& event : merged.events()) {
    EXPECT_THAT(StatTexts(dst, event), ElementsAre("hlo_op=dot.3"));
  }
}

TEST(XPlaneUtilsTest, MergeIntoAnEmptyPlaneCopiesTheContent) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  src.SetName("/host:CUPTI");
  src.GetOrCreateStatMetadata("size")->set_description("in bytes");
  XEventMetadataProto* gemm = src.GetOrCreateEventMetadata(kFingerprint);
  gemm->set_name("gemm");
  gemm->set_display_name("GEMM");
  gemm->set_metadata("\x01");
  XLineBuilder line = src.GetOrCreateLine(5);
  line.SetName("main");
  line.SetTimestampNs(77);
  line.SetDurationPs(9);
  line.AddEvent(*gemm).AddStatValue(*src.GetOrCreateStatMetadata("size"), 64);

  XPlaneProto dst;
  dst.set_name("/host:CPU");
  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  EXPECT_EQ(dst.name(), "/host:CPU");
  ASSERT_EQ(dst.lines_size(), 1);
  EXPECT_EQ(dst.lines(0).SerializeAsString(), src_proto.lines(0).SerializeAsString());
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).SerializeAsString(), gemm->SerializeAsString());
  EXPECT_EQ(dst.stat_metadata().at(1).description(), "in bytes");
}

TEST(XPlaneUtilsTest, MergeAddsWhatTheNamesakeLacks) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  XEventMetadataProto* src_gemm = src.GetOrCreateEventMetadata("gemm");
  src_gemm->set_display_name("GEMM");
  src_gemm->set_metadata("\x01");
  XStatsBuilder<XEventMetadataProto> src_stats(src_gemm, &src);
  src_stats.AddStatValue(*src.GetOrCreateStatMetadata("flops"), 8);
  src_stats.AddStatValue(*src.GetOrCreateStatMetadata("size"), 64);

  XPlaneProto dst;
  XPlaneBuilder dst_builder(&dst);
  XEventMetadataProto* gemm = dst_builder.GetOrCreateEventMetadata("gemm");
  XStatsBuilder<XEventMetadataProto>(gemm, &dst_builder)
      .AddStatValue(*dst_builder.GetOrCreateStatMetadata("size"), 64);

  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  EXPECT_EQ(dst.event_metadata_size(), 1);
  EXPECT_EQ(gemm->display_name(), "GEMM");
  EXPECT_EQ(gemm->metadata(), "\x01");
  EXPECT_THAT(StatTexts(dst, *gemm), ElementsAre("size=64", "flops=8"));
}

// As TPU profiles have it: an op and its asynchronous part, of the same name.
TEST(XPlaneUtilsTest, MergeKeepsNamesakesThatContradictEachOtherApart) {
  XPlaneProto src;
  for (const auto& [id, display_name] : {std::pair<int64_t, const char*>(16, "copy-start"),
                                         std::pair<int64_t, const char*>(20, "async-copy")}) {
    XEventMetadataProto& metadata = (*src.mutable_event_metadata())[id];
    metadata.set_id(id);
    metadata.set_name("%copy-start = f32[5] copy-start(%param)");
    metadata.set_display_name(display_name);
    src.add_lines()->set_id(id);
    src.mutable_lines(src.lines_size() - 1)->add_events()->set_metadata_id(id);
  }
  XPlaneProto dst;
  XPlaneBuilder(&dst).GetOrCreateEventMetadata(16)->set_name("taken");
  ASSERT_TRUE(MergePlanes({&src}, &dst).ok());
  ASSERT_EQ(dst.event_metadata_size(), 3);
  EXPECT_EQ(MetadataOf(dst, FindLineWithId(dst, 16)->events(0)).display_name(), "copy-start");
  EXPECT_EQ(MetadataOf(dst, FindLineWithId(dst, 20)->events(0)).display_name(), "async-copy");
}

TEST(XPlaneUtilsTest, MergeKeepsNamesakesWithDifferentStatsApart) {
  std::vector<XPlaneProto> planes(2);
  for (int i = 0; i < 2; ++i) {
    XPlaneBuilder plane(&planes[i]);
    XStatsBuilder<XEventMetadataProto>(plane.GetOrCreateEventMetadata("fusion"), &plane)
        .AddStatValue(*plane.GetOrCreateStatMetadata("program_id"), i);
    AddEvent(&plane, i, "fusion", 0, 1);
  }
  XPlaneProto dst;
  ASSERT_TRUE(MergePlanes({&planes[0], &planes[1]}, &dst).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(StatTexts(dst, MetadataOf(dst, dst.lines(i).events(0))),
                ElementsAre("program_id=" + std::to_string(i)));
  }
}

TEST(XPlaneUtilsTest, MergePrefersTheNamesakeThatSaysTheMost) {
  XPlaneProto dst;
  XPlaneBuilder dst_builder(&dst);
  for (int64_t id : {1, 2}) {
    XEventMetadataProto* metadata = dst_builder.GetOrCreateEventMetadata(id);
    metadata->set_name("fusion");
    XStatsBuilder<XEventMetadataProto>(metadata, &dst_builder)
        .AddStatValue(*dst_builder.GetOrCreateStatMetadata("program_id"), id);
  }
  dst.mutable_event_metadata()->at(2).set_display_name("fusion.2");

  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  src.GetOrCreateEventMetadata("fusion")->set_display_name("fusion.2");
  AddEvent(&src, 1, "fusion", 0, 1);
  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  EXPECT_EQ(dst.lines(0).events(0).metadata_id(), 2);
  EXPECT_EQ(dst.event_metadata().at(1).display_name(), "");
}

TEST(XPlaneUtilsTest, MergingAgainAddsNoMetadata) {
  // Each plane has three entries of one name: two that contradict each other and one that fits
  // either. Both planes use id 5, so that dst has the entries in an order that neither plane has.
  std::vector<XPlaneProto> planes(2);
  for (int i = 0; i < 2; ++i) {
    XPlaneBuilder plane(&planes[i]);
    const XStatMetadataProto& size = *plane.GetOrCreateStatMetadata("size");
    for (int64_t id : {5, 7 - 3 * i}) {
      XEventMetadataProto* metadata = plane.GetOrCreateEventMetadata(id);
      metadata->set_name("op");
      metadata->add_child_id(5);
      XStatsBuilder<XEventMetadataProto>(metadata, &plane).AddStatValue(size, 10 * i + id);
    }
    plane.GetOrCreateEventMetadata(9)->set_name("op");
    plane.AddStatValue(size, *plane.GetOrCreateStatMetadata("large"));
  }
  XPlaneProto dst;
  ASSERT_TRUE(MergePlanes({&planes[0], &planes[1]}, &dst).ok());
  const XPlaneProto once = dst;
  ASSERT_TRUE(MergePlanes({&planes[0], &planes[1]}, &dst).ok());
  EXPECT_EQ(dst.stat_metadata_size(), 2);
  EXPECT_EQ(dst.stats_size(), 1);
  ASSERT_EQ(dst.event_metadata_size(), 4);
  for (const auto& entry : once.event_metadata()) {
    EXPECT_EQ(dst.event_metadata().at(entry.first).SerializeAsString(),
              entry.second.SerializeAsString());
  }
}

TEST(XPlaneUtilsTest, MergeKeepsThePlaneStatsOfTheDestination) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  src.AddStatValue(*src.GetOrCreateStatMetadata("core_count"), 80);
  src.AddStatValue(*src.GetOrCreateStatMetadata("clock_rate"), 1500);
  XPlaneProto dst;
  XPlaneBuilder dst_builder(&dst);
  dst_builder.AddStatValue(*dst_builder.GetOrCreateStatMetadata("clock_rate"), 1400);
  ASSERT_TRUE(MergePlanes({&src_proto}, &dst).ok());
  EXPECT_THAT(StatTexts(dst, dst), ElementsAre("clock_rate=1400", "core_count=80"));
}

class MergeLinesTest : public ::testing::Test {
 protected:
  // A plane with a line of that id and one event, 5 ps after the line's base.
  static XPlaneProto MakePlane(int64_t line_id, int64_t timestamp_ns, int64_t event_duration_ps) {
    XPlaneProto proto;
    XPlaneBuilder plane(&proto);
    plane.GetOrCreateLine(line_id).SetTimestampNs(timestamp_ns);
    AddEvent(&plane, line_id, "e", 5, event_duration_ps);
    return proto;
  }
};

TEST_F(MergeLinesTest, AnEarlierLineMovesTheBase) {
  const XPlaneProto early = MakePlane(1, 100, 1);
  const XPlaneProto late = MakePlane(1, 102, 2);
  XPlaneProto dst = MakePlane(1, 101, 3);
  ASSERT_TRUE(MergePlanes({&late, &early}, &dst).ok());
  ASSERT_EQ(dst.lines_size(), 1);
  EXPECT_EQ(dst.lines(0).timestamp_ns(), 100);
  EXPECT_THAT(Durations(dst.lines(0)), ElementsAre(3, 2, 1));
  EXPECT_THAT(Offsets(dst.lines(0)), ElementsAre(1005, 2005, 5));
}

TEST_F(MergeLinesTest, OtherLinesAreAdded) {
  const XPlaneProto src = MakePlane(-2, 100, 1);
  XPlaneProto dst = MakePlane(1, 101, 2);
  ASSERT_TRUE(MergePlanes({&src}, &dst).ok());
  ASSERT_EQ(dst.lines_size(), 2);
  EXPECT_EQ(dst.lines(0).timestamp_ns(), 101);
  EXPECT_EQ(dst.lines(1).id(), -2);
  EXPECT_EQ(dst.lines(1).timestamp_ns(), 100);
  EXPECT_THAT(Offsets(dst.lines(1)), ElementsAre(5));
}

TEST_F(MergeLinesTest, AJoinedLineKeepsItsNamesAndLastsAsLongAsBoth) {
  XPlaneProto src = MakePlane(1, 100, 1);
  src.mutable_lines(0)->set_name("from src");
  src.mutable_lines(0)->set_display_name("shown");
  src.mutable_lines(0)->set_display_id(8);
  src.mutable_lines(0)->set_duration_ps(500);
  XPlaneProto dst = MakePlane(1, 101, 1);
  dst.mutable_lines(0)->set_name("from dst");
  dst.mutable_lines(0)->set_duration_ps(300);
  ASSERT_TRUE(MergePlanes({&src}, &dst).ok());
  EXPECT_EQ(dst.lines(0).name(), "from dst");
  EXPECT_EQ(dst.lines(0).display_name(), "shown");
  EXPECT_EQ(dst.lines(0).display_id(), 8);
  // dst's ended at 101 ns + 300 ps; the base is now 100 ns.
  EXPECT_EQ(dst.lines(0).duration_ps(), 1300);
}

TEST_F(MergeLinesTest, LinesTooFarApartAreAnErrorAndChangeNothing) {
  // One from the session's start, one since 1970: an easy mistake.
  const XPlaneProto src = MakePlane(1, 1'770'000'000'000'000'000, 1);
  const XPlaneProto fine = MakePlane(2, 0, 1);
  XPlaneProto dst = MakePlane(1, 0, 1);
  const XPlaneProto before = dst;
  const absl::Status status = MergePlanes({&fine, &src}, &dst);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "timestamp_ns 1770000000000000000")) << status;
  EXPECT_EQ(dst.SerializeAsString(), before.SerializeAsString());
}

// Breaks a plane in one place; the merge must name the id 404 and leave dst alone.
using Break = void (*)(XPlaneProto*);
class MergeDanglingIdTest : public ::testing::TestWithParam<Break> {
 protected:
  static XPlaneProto MakePlane() {
    XPlaneProto proto;
    XPlaneBuilder plane(&proto);
    plane.SetName("/host:CPU");
    const XStatMetadataProto& size = *plane.GetOrCreateStatMetadata("size");
    plane.AddStatValue(size, 1);
    AddEvent(&plane, 1, "e", 0, 1).AddStatValue(size, 2);
    return proto;
  }

  static void ExpectRefused(const XPlaneProto& src, XPlaneProto dst) {
    const std::string before = dst.SerializeAsString();
    const absl::Status status = MergePlanes({&src}, &dst);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), "plane \"/host:CPU\"")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "metadata id 404 is used")) << status;
    EXPECT_EQ(dst.SerializeAsString(), before);
  }
};

TEST_P(MergeDanglingIdTest, IsRefusedInTheSource) {
  XPlaneProto src = MakePlane();
  GetParam()(&src);
  ExpectRefused(src, XPlaneProto());
}

// Otherwise a new entry could come to be called 404.
TEST_P(MergeDanglingIdTest, IsRefusedInTheDestination) {
  XPlaneProto dst = MakePlane();
  GetParam()(&dst);
  ExpectRefused(XPlaneProto(), dst);
}

INSTANTIATE_TEST_SUITE_P(
    AllPlaces, MergeDanglingIdTest,
    ::testing::Values([](XPlaneProto* plane) { plane->mutable_stats(0)->set_metadata_id(404); },
                      [](XPlaneProto* plane) { plane->mutable_stats(0)->set_ref_value(404); },
                      [](XPlaneProto* plane) {
                        plane->mutable_lines(0)->mutable_events(0)->set_metadata_id(404);
                      },
                      [](XPlaneProto* plane) {
                        plane->mutable_lines(0)->mutable_events(0)->mutable_stats(0)->set_ref_value(
                            404);
                      },
                      [](XPlaneProto* plane) {
                        plane->mutable_event_metadata()->at(1).add_child_id(404);
                      },
                      [](XPlaneProto* plane) {
                        plane->mutable_event_metadata()->at(1).add_stats()->set_metadata_id(404);
                      }));

TEST(XPlaneUtilsTest, MergeKeepsNamelessEntriesApart) {
  XPlaneProto src, dst;
  for (int64_t id : {1, 2}) (*src.mutable_stat_metadata())[id].set_id(id);
  for (int64_t id : {1, 2}) (*src.mutable_event_metadata())[id].set_id(id);
  XEventProto* event = src.add_lines()->add_events();
  event->set_metadata_id(2);
  for (int64_t id : {1, 2}) event->add_stats()->set_metadata_id(id);
  ASSERT_TRUE(MergePlanes({&src}, &dst).ok());
  EXPECT_EQ(dst.stat_metadata().size(), 2u);
  EXPECT_EQ(dst.event_metadata().size(), 2u);
  const XEventProto& merged = dst.lines(0).events(0);
  EXPECT_NE(merged.stats(0).metadata_id(), merged.stats(1).metadata_id());
}

}  // namespace
}  // namespace meridian
