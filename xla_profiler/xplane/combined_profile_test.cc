#include "xla_profiler/xplane/combined_profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void SetOwner(XPlaneProto* plane, int64_t node_id, const std::string& original_name) {
  XPlaneBuilder builder(plane);
  builder.AddStatValue(*builder.GetOrCreateStatMetadata(kNodeIdStatName), node_id);
  builder.AddStatValue(*builder.GetOrCreateStatMetadata(kOriginalPlaneNameStatName), original_name);
}

void AddPlane(const std::string& name, XSpaceProto* space) { space->add_planes()->set_name(name); }

// Nodes 0 and 3: a GPU each, two threads and one.
XSpaceProto CombinedSpace() {
  XSpaceProto space;
  AddPlane("Task Environment", &space);
  AddPlane("/node:3/Task Environment", &space);
  SetOwner(space.mutable_planes(1), 3, "Task Environment");
  AddPlane("/host:CPU", &space);
  XPlaneBuilder host(space.mutable_planes(2));
  host.AddStatValue(*host.GetOrCreateStatMetadata(kNodeLinesStatName), "0:1-2,3:3-3");
  for (int64_t id : {1, 2, 3}) host.GetOrCreateLine(id).SetName(id == 3 ? "three" : "zero");
  AddPlane("/device:GPU:0", &space);
  SetOwner(space.mutable_planes(3), 0, "/device:GPU:0");
  AddPlane("/device:GPU:1", &space);
  SetOwner(space.mutable_planes(4), 3, "/device:GPU:0");
  return space;
}

std::vector<std::string> PlaneNames(const XSpaceReader& reader) {
  std::vector<std::string> names;
  EXPECT_OK(reader.ForEachPlane(
      [&](const XPlaneVisitor& plane) { names.push_back(std::string(plane.Name())); }));
  return names;
}

TEST(CombinedProfileTest, EveryNodeIsReadAsAProfileOfItsOwn) {
  const std::string bytes = CombinedSpace().SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "c.pb"));
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[0].node_id, 0);
  EXPECT_EQ(nodes[1].node_id, 3);
  EXPECT_EQ(nodes[1].reader.name(), "c.pb (node 3)");
  for (const NodeProfile& node : nodes) {
    EXPECT_THAT(PlaneNames(node.reader),
                ElementsAre("Task Environment", "/host:CPU", "/device:GPU:0"));
  }
  ASSERT_OK_AND_ASSIGN(const std::optional<XPlaneVisitor> host,
                       nodes[1].reader.FindPlane("/host:CPU"));
  ASSERT_TRUE(host.has_value());
  std::vector<std::string> lines;
  ASSERT_OK(host->ForEachLine(
      [&](const XLineVisitor& line) { lines.push_back(std::string(line.Name())); }));
  EXPECT_THAT(lines, ElementsAre("three"));
  ASSERT_OK_AND_ASSIGN(const std::optional<XPlaneVisitor> gpu,
                       nodes[1].reader.FindPlane("/device:GPU:0"));
  EXPECT_TRUE(gpu.has_value());
  ASSERT_OK_AND_ASSIGN(const std::optional<XPlaneVisitor> none,
                       nodes[1].reader.FindPlane("/device:GPU:1"));
  EXPECT_FALSE(none.has_value());
}

TEST(CombinedProfileTest, AProfileOfOneNodeIsNotSplit) {
  XSpaceProto space;
  AddPlane("Task Environment", &space);
  AddPlane("/device:GPU:0", &space);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "one.pb"));
  EXPECT_THAT(SplitCombinedProfile(reader), IsOkAndHolds(IsEmpty()));
}

TEST(CombinedProfileTest, PlanesTellTheirOwners) {
  XSpaceProto space = CombinedSpace();
  XPlaneBuilder joint(space.mutable_planes(2));
  joint.SetOrAddStatValue(*joint.GetOrCreateStatMetadata(kNodeLinesStatName),
                          "3:10-20,-1:5-5,3:30-30");
  XPlaneBuilder aligned(space.mutable_planes(0));
  aligned.AddStatValue(*aligned.GetOrCreateStatMetadata(kNodeIdStatName), 7);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "c.pb"));

  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor gpu, reader.Plane(4));
  ASSERT_OK_AND_ASSIGN(const PlaneOwners one, PlaneOwners::Read(gpu));
  EXPECT_EQ(one.node(), 3);
  EXPECT_EQ(one.NodeOfLine(1234), 3);
  EXPECT_EQ(one.original_name(), "/device:GPU:0");

  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor host, reader.Plane(2));
  ASSERT_OK_AND_ASSIGN(const PlaneOwners several, PlaneOwners::Read(host));
  EXPECT_EQ(several.node(), std::nullopt);
  EXPECT_EQ(several.original_name(), "/host:CPU");
  std::vector<std::optional<int64_t>> nodes;
  for (int64_t id : {4, 5, 6, 9, 10, 20, 21, 30, 31}) nodes.push_back(several.NodeOfLine(id));
  EXPECT_THAT(nodes, ElementsAre(std::nullopt, -1, std::nullopt, std::nullopt, 3, 3, std::nullopt,
                                 3, std::nullopt));

  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor environment, reader.Plane(0));
  ASSERT_OK_AND_ASSIGN(const PlaneOwners shared, PlaneOwners::Read(environment));
  EXPECT_EQ(shared.node(), std::nullopt);
  EXPECT_THAT(shared.node_lines(), IsEmpty());
  EXPECT_EQ(shared.NodeOfLine(1), std::nullopt);
}

TEST(CombinedProfileTest, NodeLinesAreReadAsTheyAreWritten) {
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeLines> lines, ParseNodeLines("0:1-13,3:14-20"));
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[1].node_id, 3);
  EXPECT_EQ(lines[1].first_line_id, 14);
  EXPECT_EQ(lines[1].last_line_id, 20);
  EXPECT_EQ(FormatNodeLines(lines), "0:1-13,3:14-20");
}

TEST(CombinedProfileTest, NodeLinesThatSayNothingAreErrors) {
  for (const char* text : {"", "0", "0:1", "0:1-", "x:1-2", "0:2-1", "0:1-5,1:5-9", "0:1-2,"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(ParseNodeLines(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected e.g.")));
  }
}

}  // namespace
}  // namespace meridian
