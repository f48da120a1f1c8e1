#include "xla_profiler/events/event_table_xspace.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(EventTableXSpaceTest, RowsCountFromTheEarliestLine) {
  XSpaceProto space;
  XPlaneBuilder host(space.add_planes());
  host.SetName("/host:CPU");
  host.GetOrCreateLine(3);
  XLineBuilder thread = host.GetOrCreateLine(4);
  thread.SetName("python3");
  thread.SetTimestampNs(1'000'000'500);
  XEventBuilder launch = thread.AddEvent(*host.GetOrCreateEventMetadata("launch"));
  launch.SetOffsetPs(7);
  launch.SetDurationPs(20);
  XPlaneBuilder device(space.add_planes());
  device.SetName("/device:GPU:0");
  XLineBuilder stream = device.GetOrCreateLine(14);
  stream.SetName("Stream #14(Compute)");
  stream.SetTimestampNs(1'000'000'000);
  XEventBuilder kernel = stream.AddEvent(*device.GetOrCreateEventMetadata("gemm"));
  kernel.SetOffsetPs(600'000);
  kernel.SetDurationPs(5);
  kernel.AddStatValue(*device.GetOrCreateStatMetadata(StatType::kCorrelationId), int64_t{42});

  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test"));
  ASSERT_OK_AND_ASSIGN(const EventTable table, LoadXSpace(reader));
  EXPECT_EQ(table.base_ns(), 1'000'000'000);
  ASSERT_EQ(table.size(), 2);
  // The line without events is no track.
  ASSERT_EQ(table.tracks().size(), 2);
  EXPECT_EQ(table.name(0), "launch");
  EXPECT_EQ(table.start_ps(0), 500'007);
  EXPECT_EQ(table.duration_ps(0), 20);
  EXPECT_EQ(table.track(table.track_id(0)).kind, TrackKind::kHost);
  EXPECT_EQ(table.track(table.track_id(0)).name, "python3");
  EXPECT_EQ(table.start_ps(1), 600'000);
  EXPECT_EQ(table.track(table.track_id(1)).kind, TrackKind::kDevice);
  EXPECT_EQ(table.category(1), EventCategory::kKernel);
  EXPECT_THAT(table.correlation(1), Optional(42));
}

TEST(EventTableXSpaceTest, TheBaseIsUnixTimeWhenTheProfileSaysWhenItBegan) {
  XSpaceProto space;
  XPlaneBuilder environment(space.add_planes());
  environment.SetName("Task Environment");
  environment.AddStatValue(*environment.GetOrCreateStatMetadata("profile_start_time"),
                           uint64_t{1'790'857'026'000'000'000});
  XPlaneBuilder host(space.add_planes());
  host.SetName("/host:CPU");
  XLineBuilder line = host.GetOrCreateLine(1);
  line.SetTimestampNs(51'697);
  line.AddEvent(*host.GetOrCreateEventMetadata("event")).SetOffsetPs(3);
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test"));
  ASSERT_OK_AND_ASSIGN(const EventTable table, LoadXSpace(reader));
  EXPECT_EQ(table.base_ns(), 1'790'857'026'000'051'697);
  EXPECT_EQ(table.start_ps(0), 3);
}

TEST(EventTableXSpaceTest, TimesThatPicosecondsCannotTellAreRefused) {
  XSpaceProto space;
  XPlaneBuilder host(space.add_planes());
  for (const int64_t start_ns : {int64_t{0}, int64_t{1'790'857'026'000'000'000}}) {
    XLineBuilder line = host.GetOrCreateLine(start_ns + 1);
    line.SetTimestampNs(start_ns);
    line.AddEvent(*host.GetOrCreateEventMetadata("event"));
  }
  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test"));
  EXPECT_THAT(LoadXSpace(reader), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("106 days from the profile's first line")));
}

}  // namespace
}  // namespace meridian
