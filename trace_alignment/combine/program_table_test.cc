#include "trace_alignment/combine/program_table.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/util/testing/status_matchers.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Module(const std::string& name, int64_t id) {
  xla::HloProto hlo;
  hlo.mutable_hlo_module()->set_name(name);
  hlo.mutable_hlo_module()->set_id(id);
  return hlo.SerializeAsString();
}

// A node's `/host:metadata` with programs (name, id).
XPlaneProto Programs(const std::vector<std::pair<std::string, int64_t>>& programs) {
  XPlaneProto plane;
  XPlaneBuilder builder(&plane);
  const XStatMetadataProto& hlo =
      *builder.GetOrCreateStatMetadata(StatTypeName(StatType::kHloProto));
  for (const auto& [name, id] : programs) {
    XEventMetadataProto& metadata = (*plane.mutable_event_metadata())[id];
    metadata.set_id(id);
    metadata.set_name(name + "(" + std::to_string(id) + ")");
    XStatProto* stat = metadata.add_stats();
    stat->set_metadata_id(hlo.id());
    stat->set_bytes_value(Module(name, id));
  }
  return plane;
}

XPlaneProto Combined(const ProgramTable& table) {
  XPlaneProto plane;
  EXPECT_TRUE(plane.ParseFromString(table.Serialize()));
  return plane;
}

TEST(ProgramTableTest, TheSameProgramIsKeptOnce) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(Programs({{"jit_step", 5}, {"jit_f", 6}})));
  ASSERT_OK(table.AddNode(Programs({{"jit_step", 5}})));
  const std::vector<RenumberedPrograms> nodes = table.Finish();
  EXPECT_THAT(nodes[0].ids, IsEmpty());
  EXPECT_THAT(nodes[1].ids, IsEmpty());
  EXPECT_EQ(Combined(table).event_metadata().size(), 2u);
}

TEST(ProgramTableTest, ADifferentProgramOfTheSameIdGetsAnother) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(Programs({{"jit_step", 5}})));
  ASSERT_OK(table.AddNode(Programs({{"jit_other", 5}})));
  // The third node has the second's program: it is found again.
  ASSERT_OK(table.AddNode(Programs({{"jit_other", 5}})));
  const std::vector<RenumberedPrograms> nodes = table.Finish();
  EXPECT_THAT(nodes[0].ids, IsEmpty());
  EXPECT_THAT(nodes[1].ids, UnorderedElementsAre(Pair(5, 6)));
  EXPECT_THAT(nodes[2].ids, UnorderedElementsAre(Pair(5, 6)));
  EXPECT_THAT(nodes[2].names, UnorderedElementsAre(Pair("jit_other(5)", "jit_other(6)")));

  const XPlaneProto plane = Combined(table);
  ASSERT_EQ(plane.event_metadata().size(), 2u);
  const XEventMetadataProto& other = plane.event_metadata().at(6);
  EXPECT_EQ(other.id(), 6);
  EXPECT_EQ(other.name(), "jit_other(6)");
  xla::HloProto hlo;
  ASSERT_TRUE(hlo.ParseFromString(other.stats(0).bytes_value()));
  EXPECT_EQ(hlo.hlo_module().id(), 6);
  EXPECT_EQ(hlo.hlo_module().name(), "jit_other");
}

TEST(ProgramTableTest, MetadataOfOtherPlanesFollows) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(Programs({{"jit_step", 5}})));
  ASSERT_OK(table.AddNode(Programs({{"jit_other", 5}})));
  const std::vector<RenumberedPrograms> nodes = table.Finish();
  XPlaneProto plane;
  XPlaneBuilder builder(&plane);
  const XStatMetadataProto& program =
      *builder.GetOrCreateStatMetadata(StatTypeName(StatType::kProgramId));
  const XStatMetadataProto& other = *builder.GetOrCreateStatMetadata("flops");
  XEventMetadataProto* metadata = builder.GetOrCreateEventMetadata("jit_other(5)");
  for (const XStatMetadataProto* stat : {&program, &other}) {
    XStatProto* added = metadata->add_stats();
    added->set_metadata_id(stat->id());
    added->set_int64_value(5);
  }
  RenumberMetadata(nodes[1], &plane);
  EXPECT_EQ(metadata->name(), "jit_other(6)");
  EXPECT_EQ(metadata->stats(0).int64_value(), 6);
  EXPECT_EQ(metadata->stats(1).int64_value(), 5);
  RenumberMetadata(nodes[0], &plane);
  EXPECT_EQ(metadata->name(), "jit_other(6)");
}

TEST(ProgramTableTest, WithoutProgramsThereIsNoPlane) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(XPlaneProto()));
  table.Finish();
  EXPECT_EQ(table.Serialize(), "");
}

}  // namespace
}  // namespace meridian
