#include "trace_alignment/combine/viewer_planes.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/clock_map.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

constexpr int64_t kBaseNs = 1'794'701'451'000'000'000;
constexpr int64_t kSecondPs = 1'000'000'000'000;

// The value of the event's stat of that name.
const XStatProto* FindStat(const XPlaneProto& plane, const XEventProto& event,
                           const std::string& name) {
  for (const XStatProto& stat : event.stats()) {
    if (plane.stat_metadata().at(stat.metadata_id()).name() == name) return &stat;
  }
  return nullptr;
}

// Ranks 1 and 2 come in one nanosecond, and rank 2 before: for a viewer, who sees whole ones, they
// come in the order of their lines.
TEST(ViewerPlanesTest, RanksHaveLinesOfTheirCollectives) {
  RunBuilder run(/*nodes=*/3);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, IdGroups({{0, 1, 2}}), 4096);
  run.Add({op, 7, 0, 100'000'000, 300'000'000});
  run.Add({op, 7, 1, 150'000'700, 300'000'000});
  run.Add({op, 7, 2, 150'000'600, 300'000'000});
  const CollectiveTable table = run.Build();
  std::vector<ProfileCollectives> profiles(3);
  for (ProfileCollectives& profile : profiles) profile.events.resize(1);
  profiles[1].events[0].step = 12;
  const std::vector<int64_t> node_ids = {4, 5, 6};
  XSpaceProto space;
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       ViewerPlanes({table, profiles, node_ids, {}, table.base_ns() - 1000}));
  ASSERT_TRUE(space.ParseFromString(bytes));
  ASSERT_THAT(space.planes(), SizeIs(1));
  const XPlaneProto& plane = space.planes(0);
  EXPECT_EQ(plane.name(), "Collectives");
  ASSERT_THAT(plane.lines(), SizeIs(3));
  const char* const arrows[] = {"arrow_start", "arrow_step", "arrow_end"};
  for (int rank = 0; rank < 3; ++rank) {
    const XLineProto& line = plane.lines(rank);
    EXPECT_EQ(line.name(), absl::StrCat("rank ", rank));
    EXPECT_EQ(line.timestamp_ns(), 1000);
    ASSERT_THAT(line.events(), SizeIs(1));
    const XEventProto& event = line.events(0);
    EXPECT_EQ(plane.event_metadata().at(event.metadata_id()).name(), "all-reduce");
    const auto text = [&](const std::string& name) {
      return plane.stat_metadata().at(FindStat(plane, event, name)->ref_value()).name();
    };
    EXPECT_EQ(text("op"), "op.0");
    EXPECT_EQ(text("group"), "{0,1,2}");
    EXPECT_EQ(FindStat(plane, event, "bytes")->int64_value(), 4096);
    EXPECT_EQ(FindStat(plane, event, "last_rank")->int64_value(), 1);
    EXPECT_EQ(FindStat(plane, event, "node_id")->int64_value(), 4 + rank);
    EXPECT_EQ(FindStat(plane, event, "correlation_id")->uint64_value(), uint64_t(rank + 1));
    EXPECT_EQ(FindStat(plane, event, arrows[rank])->int64_value(), 1);
    EXPECT_EQ(FindStat(plane, event, "step") != nullptr, rank == 1);
  }
  EXPECT_EQ(FindStat(plane, plane.lines(1).events(0), "step")->int64_value(), 12);
  // Rank 0 waited for 50 us.
  EXPECT_NEAR(FindStat(plane, plane.lines(0).events(0), "waited_us")->double_value(), 50.0007,
              1e-9);
}

// Rank 2 sends to nobody.
TEST(ViewerPlanesTest, MembersOfAPermuteNameTheirPartners) {
  RunBuilder run(/*nodes=*/3);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}, {1, 2}});
  for (uint32_t rank = 0; rank < 3; ++rank) run.Add({op, 7, rank, 100'000, 300'000});
  const CollectiveTable table = run.Build();
  std::vector<ProfileCollectives> profiles(3);
  for (ProfileCollectives& profile : profiles) profile.events.resize(1);
  XSpaceProto space;
  ASSERT_OK_AND_ASSIGN(
      const std::string bytes,
      ViewerPlanes({table, profiles, std::vector<int64_t>{0, 1, 2}, {}, table.base_ns()}));
  ASSERT_TRUE(space.ParseFromString(bytes));
  const XPlaneProto& plane = space.planes(0);
  ASSERT_THAT(plane.lines(), SizeIs(3));
  const auto partner = [&](int rank, const std::string& name) {
    const XStatProto* stat = FindStat(plane, plane.lines(rank).events(0), name);
    return stat == nullptr ? -1 : stat->int64_value();
  };
  EXPECT_EQ(partner(0, "sends_to"), 1);
  EXPECT_EQ(partner(0, "receives_from"), -1);
  EXPECT_EQ(partner(1, "sends_to"), 2);
  EXPECT_EQ(partner(1, "receives_from"), 0);
  EXPECT_EQ(partner(2, "sends_to"), -1);
  EXPECT_EQ(partner(2, "receives_from"), 1);
}

TEST(ViewerPlanesTest, ClocksAreCountersInNanoseconds) {
  const CollectiveTable table = RunBuilder(/*nodes=*/1).Build();
  const std::vector<ShownTimes> readings = {{kBaseNs + 1000, {{3, kBaseNs + 1250}}}};
  XSpaceProto space;
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ViewerPlanes({table, {}, {}, readings, kBaseNs}));
  ASSERT_TRUE(space.ParseFromString(bytes));
  ASSERT_THAT(space.planes(), SizeIs(1));
  const XPlaneProto& plane = space.planes(0);
  EXPECT_EQ(plane.name(), "Clock offsets");
  ASSERT_THAT(plane.lines(), SizeIs(1));
  EXPECT_EQ(plane.lines(0).name(), "_counters_");
  const XEventProto& event = plane.lines(0).events(0);
  EXPECT_EQ(plane.event_metadata().at(event.metadata_id()).name(), "node 3 (clock 131)");
  EXPECT_EQ(event.offset_ps(), 1'000'000);
  EXPECT_EQ(FindStat(plane, event, "ns")->int64_value(), 250);
}

// Node 4 is 20 ms behind and gains 1000 ppm.
TEST(ViewerPlanesTest, ClocksAreReadTogetherAndInOrder) {
  NodeClock reference((RunClock(kBaseNs))), behind((RunClock(kBaseNs)));
  ASSERT_OK_AND_ASSIGN(
      behind.host_to_reference,
      ClockMap::Create({{-20'000'000'000, 0}, {kSecondPs - 19'000'000'000, kSecondPs}},
                       ClockMap::OnDisorder::kRefuse));
  const std::vector<ViewedNode> nodes = {{0, &reference, kBaseNs + 1'000'000'000},
                                         {4, &behind, kBaseNs + 981'000'000}};
  const std::vector<ShownTimes> readings = ReadClocks(nodes, kBaseNs);
  ASSERT_THAT(readings, SizeIs(65));
  EXPECT_EQ(readings.front().time_ns, kBaseNs);
  EXPECT_EQ(readings.back().time_ns, kBaseNs + 1'000'000'000);
  for (size_t i = 1; i < readings.size(); ++i) {
    EXPECT_GT(readings[i].time_ns, readings[i - 1].time_ns);
  }
  EXPECT_EQ(readings[32].node_times_ns.at(0), kBaseNs + 500'000'000);
  EXPECT_NEAR(static_cast<double>(readings[32].node_times_ns.at(4) - kBaseNs), 480'500'000, 30);
  // Within 10 ns there are ten different times; without nodes, the start alone.
  EXPECT_THAT(ReadClocks(std::vector<ViewedNode>{{0, &reference, kBaseNs + 10}}, kBaseNs),
              SizeIs(11));
  EXPECT_THAT(ReadClocks({}, kBaseNs), SizeIs(1));
}

}  // namespace
}  // namespace meridian
