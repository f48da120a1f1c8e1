#include "xla_profiler/kineto/kineto_xspace.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string Convert(const std::string& text) {
  absl::StatusOr<TraceJsonTable> trace = LoadTraceJson(text, "kineto.json");
  EXPECT_TRUE(trace.ok()) << trace.status();
  std::string bytes;
  StringSink sink(&bytes);
  if (!trace.ok()) return bytes;
  EXPECT_OK(WriteKinetoXSpace(*trace, text, "host-a", sink));
  return bytes;
}

XSpaceProto Parse(const std::string& bytes) {
  XSpaceProto space;
  EXPECT_TRUE(space.ParseFromString(bytes));
  return space;
}

TEST(KinetoXSpaceTest, EventsKeepTimesNamesAndArguments) {
  KinetoTrace trace;
  trace.Op("aten::add", 1000, 100);
  trace.Call("cudaLaunchKernel", 1010, 5, /*correlation=*/41);
  trace.Kernel("add", 1030, 40, /*stream=*/7, /*correlation=*/41);
  const std::string bytes = Convert(trace.Text());
  const XSpaceProto space = Parse(bytes);
  EXPECT_THAT(space.hostnames(), ElementsAre("host-a"));
  ASSERT_THAT(space.planes(), SizeIs(3));
  const XPlaneProto& device = space.planes(0);
  EXPECT_EQ(device.name(), "/device:GPU:0");
  ASSERT_THAT(device.lines(), SizeIs(1));
  ASSERT_THAT(device.lines(0).events(), SizeIs(1));
  const XEventProto& kernel = device.lines(0).events(0);
  EXPECT_EQ(device.event_metadata().at(kernel.metadata_id()).name(), "add");
  EXPECT_EQ(kernel.offset_ps(), 30'000'000);
  EXPECT_EQ(kernel.duration_ps(), 40'000'000);
  bool has_correlation = false;
  EXPECT_EQ(device.stat_metadata().at(kernel.stats(0).metadata_id()).name(), "kineto_category");
  EXPECT_EQ(device.stat_metadata().at(kernel.stats(0).ref_value()).name(), "kernel");
  for (const XStatProto& stat : kernel.stats()) {
    if (device.stat_metadata().at(stat.metadata_id()).name() != "correlation_id") continue;
    has_correlation = true;
    EXPECT_EQ(stat.int64_value(), 41);
  }
  EXPECT_TRUE(has_correlation);
  const XPlaneProto& host = space.planes(1);
  EXPECT_EQ(host.name(), "/host:CPU");
  ASSERT_THAT(host.lines(), SizeIs(1));
  ASSERT_THAT(host.lines(0).events(), SizeIs(2));
  EXPECT_EQ(host.lines(0).events(1).offset_ps(), 10'000'000);

  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "converted"));
  ASSERT_OK_AND_ASSIGN(const SessionInfo session, ReadSessionInfo(reader));
  ASSERT_OK_AND_ASSIGN(const TraceJsonTable table, LoadTraceJson(trace.Text(), "kineto.json"));
  EXPECT_EQ(session.profile_start_ns, table.table.base_ns());
}

// Events of a thread come in order, whatever the file's; those before the first of the file, too.
TEST(KinetoXSpaceTest, EventsAreInOrder) {
  KinetoTrace trace;
  trace.Op("late", 5000, 100);
  trace.Op("early", 1000, 10);
  trace.Op("outer", 1000, 50);
  const XSpaceProto space = Parse(Convert(trace.Text()));
  const XPlaneProto& host = space.planes(0);
  ASSERT_THAT(host.lines(), SizeIs(1));
  std::vector<std::string> names;
  for (const XEventProto& event : host.lines(0).events()) {
    names.push_back(host.event_metadata().at(event.metadata_id()).name());
    EXPECT_GE(event.offset_ps(), 0);
  }
  EXPECT_THAT(names, ElementsAre("outer", "early", "late"));
}

// Lines are written in parts of 8192 events.
TEST(KinetoXSpaceTest, LongLinesAreWhole) {
  constexpr int kEvents = 20000;
  KinetoTrace trace;
  for (int i = 0; i < kEvents; ++i) trace.Op(absl::StrCat("op ", i), 1000 + 10 * i, 5);
  trace.Kernel("add", 1030, 40, /*stream=*/7, /*correlation=*/41);
  const XSpaceProto space = Parse(Convert(trace.Text()));
  ASSERT_THAT(space.planes(), SizeIs(3));
  const XPlaneProto& host = space.planes(1);
  EXPECT_EQ(host.name(), "/host:CPU");
  ASSERT_THAT(host.lines(), SizeIs(1));
  EXPECT_EQ(host.lines(0).id(), 1);
  ASSERT_THAT(host.lines(0).events(), SizeIs(kEvents));
  for (int i = 0; i < kEvents; ++i) {
    const XEventProto& event = host.lines(0).events(i);
    EXPECT_EQ(host.event_metadata().at(event.metadata_id()).name(), absl::StrCat("op ", i));
    EXPECT_EQ(event.offset_ps(), i * int64_t{10'000'000});
  }
}

}  // namespace
}  // namespace meridian
