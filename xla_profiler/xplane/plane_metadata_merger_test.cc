#include "xla_profiler/xplane/plane_metadata_merger.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

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
