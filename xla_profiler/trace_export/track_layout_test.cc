#include "xla_profiler/trace_export/track_layout.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"
#include "xla_profiler/xplane/xplane_builder.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

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
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader, nullptr));
  EXPECT_THAT(ProcessTexts(layout),
              ElementsAre("1 /host:CPU", "2 /host:A", "3 /device:GPU:2", "4 /device:GPU:10"));
  EXPECT_THAT(LineTexts(layout), ElementsAre("9 Stream #7 of 4 at 0", "7 Stream #9 of 3 at 0", "-",
                                             "8 Stream #8 of 3 at 1", "6 poller of 2 at 0",
                                             "5 python3 of 1 at 0", "-"));
  EXPECT_EQ(layout.next_id, 10);
  EXPECT_TRUE(layout.lines[0].on_device);
  EXPECT_FALSE(layout.lines[5].on_device);
}

// A combined file: one host plane holds the lines of nodes 4 and -1, which alternate.
TEST(TrackLayoutTest, ASharedPlaneIsAProcessForEachNode) {
  XSpaceProto space;
  AddPlane("/host:CPU", {"Node 4: python3", "Node -1: python3", "Node 4: poller"}, &space);
  AddPlane("/device:GPU:0", {"Stream of node -1"}, &space);
  AddPlane("/device:GPU:1", {"Stream of node 4"}, &space);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  const auto node_of_line = [](const XPlaneVisitor& plane, const XLineVisitor& line) -> int64_t {
    EXPECT_FALSE(plane.Name().empty());
    return absl::StrContains(absl::string_view(line.Name()), "-1") ? -1 : 4;
  };
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader, node_of_line));
  EXPECT_THAT(ProcessTexts(layout), ElementsAre("1 Node -1: /host:CPU", "2 Node -1: /device:GPU:0",
                                                "3 Node 4: /host:CPU", "4 Node 4: /device:GPU:1"));
  EXPECT_THAT(LineTexts(layout),
              ElementsAre("7 Node 4: python3 of 3 at 0", "5 Node -1: python3 of 1 at 0",
                          "8 Node 4: poller of 3 at 1", "6 Stream of node -1 of 2 at 0",
                          "9 Stream of node 4 of 4 at 0"));
  EXPECT_EQ(layout.lines[0].node_index, 1);
  EXPECT_EQ(layout.lines[1].node_index, 0);
  EXPECT_EQ(layout.lines[4].node_index, 1);
}

TEST(TrackLayoutTest, LinesOfCountersHaveNoTrack) {
  XSpaceProto space;
  AddPlane("/device:GPU:0", {"_counters_", "Stream #1", "counters_hbm"}, &space);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  ASSERT_OK_AND_ASSIGN(const TrackLayout layout, ReadTrackLayout(reader, nullptr));
  EXPECT_EQ(layout.lines[0].kind, LineLayout::Kind::kCounters);
  EXPECT_EQ(layout.lines[1].kind, LineLayout::Kind::kSlices);
  EXPECT_EQ(layout.lines[2].kind, LineLayout::Kind::kCounters);
  EXPECT_THAT(LineTexts(layout), ElementsAre("0 _counters_ of 1 at 0", "2 Stream #1 of 1 at 1",
                                             "0 counters_hbm of 1 at 2"));
}

TEST(TrackLayoutTest, NodePrefixesAreCutFromPlaneNames) {
  EXPECT_EQ(WithoutNodePrefix("/node:12/device:GPU:0"), "/device:GPU:0");
  EXPECT_EQ(WithoutNodePrefix("/node:-1/host:CPU"), "/host:CPU");
  EXPECT_EQ(WithoutNodePrefix("/node:1/Task Environment"), "/Task Environment");
  for (absl::string_view other :
       {"", "/node:", "/node:/x", "/node:12", "/node:1x/y", "/host:CPU", "x/node:1/host:CPU"}) {
    EXPECT_EQ(WithoutNodePrefix(other), other);
  }
}

}  // namespace
}  // namespace meridian
