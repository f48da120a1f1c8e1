#include "xla_profiler/trace_export/track_layout.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Adds a plane with lines of these names, each with an event; "-" stands for a line without.
void AddPlane(const std::string& name, const std::vector<std::string>& lines, XSpaceProto* space) {
  XPlaneBuilder plane(space->add_planes());
  plane.SetName(name);
  int64_t id = 0;
  for (const std::string& line_name : lines) {
    XLineBuilder line = plane.GetOrCreateLine(++id);
    if (line_name == "-") continue;
    line.SetName(line_name);
    line.AddEvent(*plane.GetOrCreateEventMetadata("event"));
  }
}

// "7 python3 of 2 at 0", in file order; "-" for lines that are not shown.
std::vector<std::string> LineTexts(const TrackLayout& layout) {
  std::vector<std::string> texts;
  for (const LineLayout& line : layout.lines) {
    texts.push_back(line.kind == LineLayout::Kind::kHidden
                        ? "-"
                        : absl::StrCat(line.track.id, " ", line.track.name, " of ",
                                       line.track.process_id, " at ", line.track.position));
  }
  return texts;
}

std::vector<std::string> ProcessTexts(const TrackLayout& layout) {
  std::vector<std::string> texts;
  for (const TraceProcess& process : layout.processes) {
    texts.push_back(absl::StrCat(process.id, " ", process.name));
  }
  return texts;
}

TEST(TrackLayoutTest, HostsComeBeforeDevicesInNaturalOrder) {
  XSpaceProto space;
  AddPlane("/host:metadata", {}, &space);
  AddPlane("/device:GPU:10", {"Stream #7"}, &space);
  AddPlane("/device:GPU:2", {"Stream #9", "-", "Stream #8"}, &space);
  AddPlane("/host:A", {"poller"}, &space);
  AddPlane("/host:CPU", {"python3"}, &space);
  AddPlane("/device:GPU:3", {"-"}, &space);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader));
  EXPECT_THAT(ProcessTexts(layout),
              ElementsAre("1 /host:CPU", "2 /host:A", "3 /device:GPU:2", "4 /device:GPU:10"));
  EXPECT_THAT(LineTexts(layout), ElementsAre("9 Stream #7 of 4 at 0", "7 Stream #9 of 3 at 0", "-",
                                             "8 Stream #8 of 3 at 1", "6 poller of 2 at 0",
                                             "5 python3 of 1 at 0", "-"));
  EXPECT_EQ(layout.next_id, 10);
  EXPECT_TRUE(layout.lines[0].on_device);
  EXPECT_FALSE(layout.lines[5].on_device);
}

void SetOwner(int64_t node_id, const std::string& original_name, XPlaneProto* proto) {
  XPlaneBuilder plane(proto);
  plane.AddStatValue(*plane.GetOrCreateStatMetadata(kNodeIdStatName), node_id);
  plane.AddStatValue(*plane.GetOrCreateStatMetadata(kOriginalPlaneNameStatName), original_name);
}

// A combined profile: one host plane holds the lines of nodes 4 and -1, and one that is nobody's.
TEST(TrackLayoutTest, ASharedPlaneIsAProcessForEachNode) {
  XSpaceProto space;
  AddPlane("/host:CPU", {"Node 4: python3", "Node -1: python3", "Node 4: poller", "stray"}, &space);
  XPlaneBuilder host(space.mutable_planes(0));
  host.AddStatValue(*host.GetOrCreateStatMetadata(kNodeLinesStatName), "4:1-1,-1:2-2,4:3-3");
  AddPlane("/device:GPU:0", {"Stream of node -1"}, &space);
  SetOwner(-1, "/device:GPU:0", space.mutable_planes(1));
  AddPlane("/device:GPU:1", {"Stream of node 4"}, &space);
  SetOwner(4, "/device:GPU:0", space.mutable_planes(2));
  AddPlane("/node:4/host:A", {"poller"}, &space);
  SetOwner(4, "/host:A", space.mutable_planes(3));
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader));
  EXPECT_THAT(ProcessTexts(layout),
              ElementsAre("1 Node -1: /host:CPU", "2 Node -1: /device:GPU:0", "3 Node 4: /host:CPU",
                          "4 Node 4: /host:A", "5 Node 4: /device:GPU:0", "6 /host:CPU"));
  EXPECT_THAT(LineTexts(layout),
              ElementsAre("9 Node 4: python3 of 3 at 0", "7 Node -1: python3 of 1 at 0",
                          "10 Node 4: poller of 3 at 1", "13 stray of 6 at 0",
                          "8 Stream of node -1 of 2 at 0", "12 Stream of node 4 of 5 at 0",
                          "11 poller of 4 at 0"));
  std::vector<uint64_t> node_indices;
  for (const LineLayout& line : layout.lines) node_indices.push_back(line.node_index);
  EXPECT_THAT(node_indices, ElementsAre(1, 0, 1, 2, 0, 1, 1));
  EXPECT_TRUE(layout.lines[5].on_device);
}

TEST(TrackLayoutTest, OwnersThatMakeNoSenseAreErrors) {
  XSpaceProto space;
  AddPlane("/host:CPU", {"python3"}, &space);
  XPlaneBuilder host(space.mutable_planes(0));
  host.AddStatValue(*host.GetOrCreateStatMetadata(kNodeLinesStatName), "all mine");
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  EXPECT_THAT(ReadTrackLayout(reader),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.pb: stat node_lines")));
}

TEST(TrackLayoutTest, LinesOfCountersHaveNoTrack) {
  XSpaceProto space;
  AddPlane("/device:GPU:0", {"_counters_", "Stream #1", "counters_hbm"}, &space);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader));
  EXPECT_EQ(layout.lines[0].kind, LineLayout::Kind::kCounters);
  EXPECT_EQ(layout.lines[1].kind, LineLayout::Kind::kSlices);
  EXPECT_EQ(layout.lines[2].kind, LineLayout::Kind::kCounters);
  EXPECT_THAT(LineTexts(layout), ElementsAre("0 _counters_ of 1 at 0", "2 Stream #1 of 1 at 1",
                                             "0 counters_hbm of 1 at 2"));
}

}  // namespace
}  // namespace meridian
