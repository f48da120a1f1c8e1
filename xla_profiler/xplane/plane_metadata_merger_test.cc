#include "xla_profiler/xplane/plane_metadata_merger.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
// A program's fingerprint: 0xA92E'7B5C'0123'4567 as int64.
constexpr int64_t kFingerprint = -6255927197284743833;

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

// Entries "<prefix>0", "<prefix>1", ... of both kinds with ids from `first_id`.
XPlaneProto PlaneWithNames(const std::string& prefix, int64_t first_id, int count) {
  XPlaneProto plane;
  plane.set_name("plane");
  for (int64_t id = first_id; id < first_id + count; ++id) {
    const std::string name = absl::StrCat(prefix, id - first_id);
    XEventMetadataProto& event = (*plane.mutable_event_metadata())[id];
    event.set_id(id);
    event.set_name(name);
    XStatMetadataProto& stat = (*plane.mutable_stat_metadata())[id];
    stat.set_id(id);
    stat.set_name(name);
  }
  return plane;
}

TEST(PlaneMetadataMergerTest, TheSameNameHasTheSameId) {
  XPlaneProto dst;
  PlaneMetadataMerger merger(&dst);
  const MetadataIds first = merger.Merge(PlaneWithNames("x", 1, 2));
  const MetadataIds second = merger.Merge(PlaneWithNames("x", 11, 3));
  EXPECT_EQ(*second.events.Find(11), *first.events.Find(1));
  EXPECT_EQ(*second.stats.Find(12), *first.stats.Find(2));
  EXPECT_EQ(dst.event_metadata().size(), 3u);
  EXPECT_EQ(dst.stat_metadata().size(), 3u);
  EXPECT_EQ(second.events.Find(1), nullptr);
}

TEST(PlaneMetadataMergerTest, ReferencesOfStatsAreTranslated) {
  XPlaneProto src_proto;
  XPlaneBuilder src(&src_proto);
  const XStatMetadataProto& hlo_op = *src.GetOrCreateStatMetadata("hlo_op");
  const XStatMetadataProto& dot = *src.GetOrCreateStatMetadata("dot.3");
  XStatsBuilder<XEventMetadataProto>(src.GetOrCreateEventMetadata("gemm"), &src)
      .AddStatValue(hlo_op, dot);

  // Here the ids of the source mean something else.
  XPlaneProto dst;
  PlaneMetadataBuilder dst_builder(&dst);
  dst_builder.GetOrCreateStatMetadata("wrong name");
  dst_builder.GetOrCreateStatMetadata("wrong value");
  dst_builder.GetOrCreateEventMetadata("wrong event");

  const MetadataIds ids = PlaneMetadataMerger(&dst).Merge(src_proto);
  EXPECT_EQ(*ids.stats.Find(hlo_op.id()), 3);
  EXPECT_EQ(*ids.stats.Find(dot.id()), 4);
  const XEventMetadataProto& gemm = dst.event_metadata().at(*ids.events.Find(1));
  EXPECT_EQ(gemm.name(), "gemm");
  EXPECT_THAT(StatTexts(dst, gemm), ElementsAre("hlo_op=dot.3"));
}

TEST(PlaneMetadataMergerTest, ChildrenAreTranslated) {
  XPlaneProto src_proto;
  PlaneMetadataBuilder src(&src_proto);
  XEventMetadataProto* parent = src.GetOrCreateEventMetadata("parent");
  parent->add_child_id(src.GetOrCreateEventMetadata("shared")->id());
  parent->add_child_id(src.GetOrCreateEventMetadata("new")->id());

  XPlaneProto dst;
  PlaneMetadataBuilder dst_builder(&dst);
  const int64_t shared_id = dst_builder.GetOrCreateEventMetadata("shared")->id();
  XEventMetadataProto* dst_parent = dst_builder.GetOrCreateEventMetadata("parent");
  dst_parent->add_child_id(shared_id);

  PlaneMetadataMerger(&dst).Merge(src_proto);
  // "new" has id 3 in both.
  EXPECT_THAT(dst_parent->child_id(), ElementsAre(shared_id, 3));
  EXPECT_EQ(dst.event_metadata().at(3).name(), "new");
  EXPECT_EQ(dst.event_metadata_size(), 3);
}

TEST(PlaneMetadataMergerTest, IdsMayBeOfAnySize) {
  XPlaneProto src;
  (*src.mutable_event_metadata())[kFingerprint].set_name("jit_step(1)");
  (*src.mutable_event_metadata())[kMaxInt64].set_name("jit_eval(2)");
  (*src.mutable_stat_metadata())[-1].set_name("hlo_op");
  (*src.mutable_stat_metadata())[kFingerprint].set_name("dot.3");

  // One of the ids is taken; after the largest int64 a free one is 1.
  XPlaneProto dst;
  PlaneMetadataBuilder(&dst).GetOrCreateEventMetadata(kMaxInt64)->set_name("taken");
  const MetadataIds ids = PlaneMetadataMerger(&dst).Merge(src);
  EXPECT_EQ(*ids.events.Find(kFingerprint), kFingerprint);
  EXPECT_EQ(*ids.events.Find(kMaxInt64), 1);
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).name(), "jit_step(1)");
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).id(), kFingerprint);
  EXPECT_EQ(dst.event_metadata().at(1).name(), "jit_eval(2)");
  EXPECT_EQ(dst.event_metadata().at(kMaxInt64).name(), "taken");
  EXPECT_EQ(dst.stat_metadata().at(*ids.stats.Find(-1)).name(), "hlo_op");
  EXPECT_EQ(dst.stat_metadata().at(*ids.stats.Find(kFingerprint)).name(), "dot.3");
}

TEST(PlaneMetadataMergerTest, AnEmptyPlaneGetsACopy) {
  XPlaneProto src_proto;
  PlaneMetadataBuilder src(&src_proto);
  src.GetOrCreateStatMetadata("size")->set_description("in bytes");
  XEventMetadataProto* gemm = src.GetOrCreateEventMetadata(kFingerprint);
  gemm->set_name("gemm");
  gemm->set_display_name("GEMM");
  gemm->set_metadata("\x01");

  XPlaneProto dst;
  PlaneMetadataMerger(&dst).Merge(src_proto);
  EXPECT_EQ(dst.event_metadata().at(kFingerprint).SerializeAsString(), gemm->SerializeAsString());
  EXPECT_EQ(dst.stat_metadata().at(1).description(), "in bytes");
}

// As TPU profiles have it: an op and its asynchronous part, of the same name.
TEST(PlaneMetadataMergerTest, NamesakesThatContradictEachOtherStayApart) {
  XPlaneProto src;
  for (const auto& [id, display_name] : {std::pair<int64_t, const char*>(16, "copy-start"),
                                         std::pair<int64_t, const char*>(20, "async-copy")}) {
    XEventMetadataProto& metadata = (*src.mutable_event_metadata())[id];
    metadata.set_id(id);
    metadata.set_name("%copy-start = f32[5] copy-start(%param)");
    metadata.set_display_name(display_name);
  }
  XPlaneProto dst;
  PlaneMetadataBuilder(&dst).GetOrCreateEventMetadata(16)->set_name("taken");
  const MetadataIds ids = PlaneMetadataMerger(&dst).Merge(src);
  ASSERT_EQ(dst.event_metadata_size(), 3);
  EXPECT_EQ(dst.event_metadata().at(*ids.events.Find(16)).display_name(), "copy-start");
  EXPECT_EQ(dst.event_metadata().at(*ids.events.Find(20)).display_name(), "async-copy");
}

TEST(PlaneMetadataMergerTest, NamesakesWithDifferentStatsStayApart) {
  XPlaneProto dst;
  PlaneMetadataMerger merger(&dst);
  for (int i = 0; i < 2; ++i) {
    XPlaneProto proto;
    XPlaneBuilder plane(&proto);
    XStatsBuilder<XEventMetadataProto>(plane.GetOrCreateEventMetadata("fusion"), &plane)
        .AddStatValue(*plane.GetOrCreateStatMetadata("program_id"), i);
    const MetadataIds ids = merger.Merge(proto);
    EXPECT_THAT(StatTexts(dst, dst.event_metadata().at(*ids.events.Find(1))),
                ElementsAre(absl::StrCat("program_id=", i)));
  }
  EXPECT_EQ(dst.event_metadata_size(), 2);
}

TEST(PlaneMetadataMergerTest, MergingAgainAddsNothing) {
  // Each plane has three entries of one name, of which one is in both. Both planes use id 5, so that
  // dst has the entries in an order that neither plane has.
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
  }
  XPlaneProto dst;
  for (const XPlaneProto& plane : planes) PlaneMetadataMerger(&dst).Merge(plane);
  const XPlaneProto once = dst;
  for (const XPlaneProto& plane : planes) PlaneMetadataMerger(&dst).Merge(plane);
  EXPECT_EQ(dst.stat_metadata_size(), 1);
  ASSERT_EQ(dst.event_metadata_size(), 5);
  for (const auto& entry : once.event_metadata()) {
    EXPECT_EQ(dst.event_metadata().at(entry.first).SerializeAsString(),
              entry.second.SerializeAsString());
  }
}

TEST(PlaneMetadataMergerTest, NamelessEntriesStayApart) {
  XPlaneProto src, dst;
  for (int64_t id : {1, 2}) (*src.mutable_stat_metadata())[id].set_id(id);
  for (int64_t id : {1, 2}) (*src.mutable_event_metadata())[id].set_id(id);
  const MetadataIds ids = PlaneMetadataMerger(&dst).Merge(src);
  EXPECT_EQ(dst.stat_metadata().size(), 2u);
  EXPECT_EQ(dst.event_metadata().size(), 2u);
  EXPECT_NE(*ids.stats.Find(1), *ids.stats.Find(2));
}

TEST(PlaneMetadataMergerTest, ManyContradictoryEntriesOfOneNameStayCheap) {
  XPlaneProto src;
  (*src.mutable_stat_metadata())[1].set_id(1);
  (*src.mutable_stat_metadata())[1].set_name("program_id");
  for (int64_t id = 1; id <= 50000; ++id) {
    XEventMetadataProto& event = (*src.mutable_event_metadata())[id];
    event.set_id(id);
    event.set_name("fusion");
    XStatProto* stat = event.add_stats();
    stat->set_metadata_id(1);
    stat->set_int64_value(id);
  }
  XPlaneProto dst;
  PlaneMetadataMerger merger(&dst);
  merger.Merge(src);
  EXPECT_EQ(dst.event_metadata().size(), 50000u);
}

TEST(PlaneMetadataMergerTest, IdsThatAreNotDefinedAreFound) {
  XPlaneProto plane = PlaneWithNames("x", 1, 1);
  EXPECT_OK(CheckMetadataIds(plane));
  plane.mutable_event_metadata()->at(1).add_child_id(9);
  EXPECT_THAT(CheckMetadataIds(plane), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("plane \"plane\": event metadata id 9")));
  plane.mutable_event_metadata()->at(1).clear_child_id();
  plane.mutable_event_metadata()->at(1).add_stats()->set_ref_value(8);
  plane.mutable_event_metadata()->at(1).mutable_stats(0)->set_metadata_id(1);
  EXPECT_THAT(CheckMetadataIds(plane),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stat metadata id 8")));
}

}  // namespace
}  // namespace meridian
