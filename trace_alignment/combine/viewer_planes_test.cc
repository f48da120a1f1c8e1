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

TEST(ViewerPlanesTest, RanksHaveLinesOfTheirCollectives) {
  RunBuilder run(/*nodes=*/2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, IdGroups({{0, 1}}));
  run.Add({op, 7, 0, 100'000'000, 300'000'000});
  run.Add({op, 7, 1, 150'000'000, 300'000'000});
  const CollectiveTable table = run.Build();
  XSpaceProto space;
  ASSERT_OK_AND_ASSIGN(const std::string bytes, CollectivesPlane(table, table.base_ns() - 1000));
  ASSERT_TRUE(space.ParseFromString(bytes));
  ASSERT_GE(space.planes_size(), 1);
  const XPlaneProto& plane = space.planes(0);
  EXPECT_EQ(plane.name(), "Collectives");
  ASSERT_THAT(plane.lines(), SizeIs(2));
  for (int rank = 0; rank < 2; ++rank) {
    const XLineProto& line = plane.lines(rank);
    EXPECT_EQ(line.name(), absl::StrCat("rank ", rank));
    EXPECT_EQ(line.timestamp_ns(), 1000);
    ASSERT_THAT(line.events(), SizeIs(1));
    const XEventProto& event = line.events(0);
    EXPECT_EQ(plane.event_metadata().at(event.metadata_id()).name(), "all-reduce");
    EXPECT_EQ(event.offset_ps(), rank == 0 ? 100'000'000 : 150'000'000);
    // Both are of one arrow; rank 0 waited for 50 us.
    EXPECT_EQ(FindStat(plane, event, "correlation_id")->int64_value(), 1);
    EXPECT_DOUBLE_EQ(FindStat(plane, event, "waited_us")->double_value(), rank == 0 ? 50 : 0);
  }
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
  const std::vector<ClockReading> readings = ReadClocks(nodes, kBaseNs);
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
