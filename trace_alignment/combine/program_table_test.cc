#include "trace_alignment/combine/program_table.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

MATCHER(IsSame, "renumbers nothing") { return arg.ids.empty() && arg.names.empty(); }

std::string Module(const std::string& name, int64_t id) {
  xla::HloProto hlo;
  hlo.mutable_hlo_module()->set_name(name);
  hlo.mutable_hlo_module()->set_id(id);
  return hlo.SerializeAsString();
}

// A node's `/host:metadata` with programs (name, id). Keys are not the ids, nor the same on all
// nodes.
XPlaneProto Programs(const std::vector<std::pair<std::string, int64_t>>& programs,
                     int64_t first_key = 1) {
  XPlaneProto plane;
  XPlaneBuilder builder(&plane);
  const XStatMetadataProto& hlo =
      *builder.GetOrCreateStatMetadata(StatTypeName(StatType::kHloProto));
  for (const auto& [name, id] : programs) {
    XEventMetadataProto& metadata = (*plane.mutable_event_metadata())[first_key];
    metadata.set_id(first_key++);
    metadata.set_name(absl::StrCat(name, "(", id, ")"));
    XStatProto* stat = metadata.add_stats();
    stat->set_metadata_id(hlo.id());
    stat->set_bytes_value(Module(name, id));
  }
  return plane;
}

TEST(ProgramTableTest, TheSameProgramIsKeptOnce) {
  ProgramTable table;
  EXPECT_THAT(table.AddNode(Programs({{"jit_step", 5}, {"jit_f", 6}})), IsOkAndHolds(IsSame()));
  EXPECT_THAT(table.AddNode(Programs({{"jit_step", 5}}, /*first_key=*/2)), IsOkAndHolds(IsSame()));
  EXPECT_EQ(table.plane().event_metadata().size(), 2u);
}

// One module name, many programs: what tells them apart is the id in the entry's name.
TEST(ProgramTableTest, KeysThatClashDoNotRenumberPrograms) {
  ProgramTable table;
  EXPECT_THAT(table.AddNode(Programs({{"jit_f", 5}, {"jit_f", 6}})), IsOkAndHolds(IsSame()));
  EXPECT_THAT(table.AddNode(Programs({{"jit_f", 6}, {"jit_f", 5}})), IsOkAndHolds(IsSame()));
  EXPECT_EQ(table.plane().event_metadata().size(), 2u);
}

TEST(ProgramTableTest, ADifferentProgramOfTheSameIdGetsAnother) {
  ProgramTable table;
  EXPECT_THAT(table.AddNode(Programs({{"jit_step", 5}})), IsOkAndHolds(IsSame()));
  ASSERT_OK(table.AddNode(Programs({{"jit_other", 5}})));
  // The third node has the second's program: it is found again.
  ASSERT_OK_AND_ASSIGN(const RenumberedPrograms third, table.AddNode(Programs({{"jit_other", 5}})));
  EXPECT_THAT(third.ids, UnorderedElementsAre(Pair(5, 1)));
  EXPECT_THAT(third.names, UnorderedElementsAre(Pair("jit_other(5)", "jit_other(1)")));

  const XPlaneProto& plane = table.plane();
  ASSERT_EQ(plane.event_metadata().size(), 2u);
  for (const auto& [key, metadata] : plane.event_metadata()) {
    xla::HloProto hlo;
    ASSERT_TRUE(hlo.ParseFromString(metadata.stats(0).bytes_value()));
    EXPECT_EQ(metadata.id(), key);
    EXPECT_EQ(metadata.name(),
              absl::StrCat(hlo.hlo_module().name(), "(", hlo.hlo_module().id(), ")"));
  }
}

TEST(ProgramTableTest, MetadataOfOtherPlanesFollows) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(Programs({{"jit_step", 5}})));
  ASSERT_OK_AND_ASSIGN(const RenumberedPrograms renumbered,
                       table.AddNode(Programs({{"jit_other", 5}})));
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
  RenumberMetadata(renumbered, &plane);
  EXPECT_EQ(metadata->name(), "jit_other(1)");
  EXPECT_EQ(metadata->stats(0).int64_value(), 1);
  EXPECT_EQ(metadata->stats(1).int64_value(), 5);
}

// Every process writes the schedule, a map, in an order of its own.
TEST(ProgramTableTest, TheOrderOfAScheduleDoesNotMatter) {
  const auto with_schedule = [](const std::vector<int64_t>& order) {
    std::string schedule;
    for (int64_t computation : order) {
      xla::HloScheduleProto one;
      (*one.mutable_sequences())[computation].add_instruction_ids(computation + 100);
      schedule += one.SerializeAsString();
    }
    XPlaneProto plane = Programs({{"jit_step", 5}});
    XStatProto* hlo = plane.mutable_event_metadata()->at(1).mutable_stats(0);
    xla::HloModuleProto tail;
    tail.GetReflection()->MutableUnknownFields(&tail)->AddLengthDelimited(7, schedule);
    xla::HloProto module;
    EXPECT_TRUE(module.ParseFromString(hlo->bytes_value()));
    std::string bytes = module.hlo_module().SerializeAsString() + tail.SerializeAsString();
    xla::HloProto wrapped;
    wrapped.GetReflection()->MutableUnknownFields(&wrapped)->AddLengthDelimited(1, bytes);
    hlo->set_bytes_value(wrapped.SerializeAsString());
    return plane;
  };
  ProgramTable table;
  EXPECT_THAT(table.AddNode(with_schedule({1, 2, 3})), IsOkAndHolds(IsSame()));
  EXPECT_THAT(table.AddNode(with_schedule({3, 1, 2})), IsOkAndHolds(IsSame()));
  EXPECT_EQ(table.plane().event_metadata().size(), 1u);
  ASSERT_OK_AND_ASSIGN(const RenumberedPrograms other, table.AddNode(with_schedule({1, 2, 4})));
  EXPECT_EQ(other.ids.size(), 1u);
}

TEST(ProgramTableTest, AnIdAtTheEndOfTheRangeLeavesRoom) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(Programs({{"jit_step", -1}})));
  ASSERT_OK(table.AddNode(Programs({{"jit_f", 0}})));
  ASSERT_OK_AND_ASSIGN(const RenumberedPrograms clash, table.AddNode(Programs({{"jit_g", 0}})));
  ASSERT_EQ(clash.ids.size(), 1u);
  EXPECT_NE(clash.ids.at(0), 0u);
  EXPECT_EQ(table.plane().event_metadata().size(), 3u);
}

TEST(ProgramTableTest, WithoutProgramsThereIsNoPlane) {
  ProgramTable table;
  ASSERT_OK(table.AddNode(XPlaneProto()));
  EXPECT_TRUE(table.plane().event_metadata().empty());
}

}  // namespace
}  // namespace meridian
