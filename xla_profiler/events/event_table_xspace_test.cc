#include "xla_profiler/events/event_table_xspace.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

namespace xp = ::tensorflow::profiler;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr int64_t kStartNs = 1700000000123456789;

// Stat ids of the planes below.
constexpr int64_t kCorrelationStat = 1, kMemcpyStat = 2, kMemsetStat = 3, kStartStat = 4;

xp::XPlane* AddPlane(xp::XSpace* space, const std::string& name) {
  xp::XPlane* plane = space->add_planes();
  plane->set_name(name);
  const auto add_stat = [&](int64_t id, const char* stat_name) {
    xp::XStatMetadata& metadata = (*plane->mutable_stat_metadata())[id];
    metadata.set_id(id);
    metadata.set_name(stat_name);
  };
  add_stat(kCorrelationStat, "correlation_id");
  add_stat(kMemcpyStat, "memcpy_details");
  add_stat(kMemsetStat, "Memset_details");
  add_stat(kStartStat, "profile_start_time");
  return plane;
}

void AddSessionStart(xp::XSpace* space) {
  xp::XStat* stat = AddPlane(space, "Task Environment")->add_stats();
  stat->set_metadata_id(kStartStat);
  stat->set_uint64_value(kStartNs);
}

xp::XLine* AddLine(xp::XPlane* plane, const std::string& name, int64_t id, int64_t timestamp_ns) {
  xp::XLine* line = plane->add_lines();
  line->set_name(name);
  line->set_id(id);
  line->set_timestamp_ns(timestamp_ns);
  return line;
}

xp::XEvent* AddEvent(xp::XPlane* plane, xp::XLine* line, const std::string& name, int64_t offset_ps,
                     int64_t duration_ps) {
  const int64_t id = plane->event_metadata().size() + 1;
  (*plane->mutable_event_metadata())[id].set_id(id);
  (*plane->mutable_event_metadata())[id].set_name(name);
  xp::XEvent* event = line->add_events();
  event->set_metadata_id(id);
  event->set_offset_ps(offset_ps);
  event->set_duration_ps(duration_ps);
  return event;
}

absl::StatusOr<XSpaceTable> Load(const std::string& bytes, const XSpaceTableOptions& options = {}) {
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "test.pb"));
  return LoadXSpace(reader, options);
}

TEST(EventTableXSpaceTest, LoadsHostAndDeviceLines) {
  xp::XSpace space;
  xp::XPlane* gpu = AddPlane(&space, "/device:GPU:3");
  xp::XLine* stream = AddLine(gpu, "Stream #14(Kernel)", 14, 9715872534);
  xp::XStat* stat = AddEvent(gpu, stream, "fusion.1", 1500, 2000)->add_stats();
  stat->set_metadata_id(kCorrelationStat);
  stat->set_uint64_value(77);
  stat = AddEvent(gpu, stream, "MemcpyD2H", 4000, 1)->add_stats();
  stat->set_metadata_id(kMemcpyStat);
  stat->set_str_value("size:4");
  xp::XPlane* host = AddPlane(&space, "/host:CPU");
  xp::XLine* api = AddLine(host, "Host Threads/42", 42, 9715872534);
  stat = AddEvent(host, api, "cuLaunchKernel", 0, 10)->add_stats();
  stat->set_metadata_id(kCorrelationStat);
  stat->set_int64_value(77);
  xp::XLine* python = AddLine(host, "python3", 43, 364437);
  AddEvent(host, python, "$api.py:12 jit", -500, 0);
  AddEvent(host, python, "PjitFunction(f)", 0, 5);
  AddSessionStart(&space);

  const std::string bytes = space.SerializeAsString();
  ASSERT_OK_AND_ASSIGN(const XSpaceTable loaded, Load(bytes));
  const EventTable& table = loaded.table;
  EXPECT_EQ(table.base_ns(), kStartNs);
  ASSERT_EQ(table.size(), 5);
  EXPECT_EQ(table.name(0), "fusion.1");
  EXPECT_EQ(table.start_ps(0), 9715872535500);
  EXPECT_EQ(table.duration_ps(0), 2000);
  EXPECT_EQ(table.category(0), EventCategory::kKernel);
  EXPECT_THAT(table.correlation(0), Optional(77));
  EXPECT_EQ(table.category(1), EventCategory::kMemcpy);
  EXPECT_EQ(table.correlation(1), std::nullopt);
  EXPECT_EQ(table.category(2), EventCategory::kRuntimeApi);
  EXPECT_THAT(table.correlation(2), Optional(77));
  EXPECT_EQ(table.category(3), EventCategory::kPython);
  EXPECT_EQ(table.start_ps(3), 364436500);
  EXPECT_EQ(table.category(4), EventCategory::kAnnotation);

  ASSERT_EQ(table.tracks().size(), 3);
  const Track& gpu_track = table.track(table.track_id(0));
  EXPECT_EQ(gpu_track.kind, TrackKind::kDevice);
  EXPECT_EQ(gpu_track.clock, ClockDomain::kTracer);
  EXPECT_EQ(gpu_track.process, "/device:GPU:3");
  EXPECT_EQ(gpu_track.thread, "14");
  EXPECT_EQ(gpu_track.name, "Stream #14(Kernel)");
  EXPECT_THAT(gpu_track.device_id, Optional(3));
  const Track& api_track = table.track(table.track_id(2));
  EXPECT_EQ(api_track.kind, TrackKind::kHost);
  EXPECT_EQ(api_track.clock, ClockDomain::kTracer);
  EXPECT_EQ(api_track.device_id, std::nullopt);
  EXPECT_EQ(table.track(table.track_id(4)).clock, ClockDomain::kHost);
}

TEST(EventTableXSpaceTest, KnowsTheLinesOfTpus) {
  xp::XSpace space;
  xp::XPlane* tpu = AddPlane(&space, "/device:TPU:1 SparseCore 0");
  AddEvent(tpu, AddLine(tpu, "Steps", 0, 0), "0", 0, 9);
  AddEvent(tpu, AddLine(tpu, "XLA Modules", 1, 0), "jit_f", 0, 9);
  AddEvent(tpu, AddLine(tpu, "XLA Ops", 2, 0), "%add", 0, 9);
  AddEvent(tpu, AddLine(tpu, "Source code", 3, 0), "a.py", 0, 9);
  AddSessionStart(&space);
  ASSERT_OK_AND_ASSIGN(const XSpaceTable loaded, Load(space.SerializeAsString()));
  EXPECT_EQ(loaded.table.category(0), EventCategory::kStep);
  EXPECT_EQ(loaded.table.category(1), EventCategory::kXlaModule);
  EXPECT_EQ(loaded.table.category(2), EventCategory::kXlaOp);
  EXPECT_EQ(loaded.table.category(3), EventCategory::kUnknown);
  EXPECT_EQ(loaded.table.track(0).clock, ClockDomain::kHost);
  EXPECT_THAT(loaded.table.track(0).device_id, Optional(1));
}

TEST(EventTableXSpaceTest, CountsWhatCannotBeARow) {
  xp::XSpace space;
  xp::XPlane* plane = AddPlane(&space, "/device:GPU:0");
  xp::XLine* line = AddLine(plane, "Stream #1", 1, std::numeric_limits<int64_t>::max() / 1000);
  AddEvent(plane, line, "aggregated", 0, 5)->set_num_occurrences(3);
  AddEvent(plane, line, "negative", 0, -5);
  // 2^63 - 1 ps end in ...807, the line's base in ...000.
  AddEvent(plane, line, "fits", 0, 807);
  AddEvent(plane, line, "too late", 1, 807);
  AddSessionStart(&space);
  ASSERT_OK_AND_ASSIGN(const XSpaceTable loaded, Load(space.SerializeAsString()));
  ASSERT_EQ(loaded.table.size(), 1);
  EXPECT_EQ(loaded.table.end_ps(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(loaded.aggregated, 1);
  EXPECT_EQ(loaded.negative_durations, 1);
  EXPECT_EQ(loaded.out_of_range, 1);
}

TEST(EventTableXSpaceTest, TheStartMustComeFromSomewhere) {
  xp::XSpace space;
  AddPlane(&space, "/host:CPU");
  const std::string bytes = space.SerializeAsString();
  EXPECT_THAT(Load(bytes),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(StartsWith("test.pb: "), HasSubstr("give --profile_start_ns"))));
  XSpaceTableOptions options;
  options.profile_start_ns = 5;
  ASSERT_OK_AND_ASSIGN(const XSpaceTable loaded, Load(bytes, options));
  EXPECT_EQ(loaded.table.base_ns(), 5);
}

// Compares row by row with libprotobuf's parse.
void ExpectSameAsProto(const XSpaceReader& reader, const XSpaceTable& loaded) {
  xp::XSpace space;
  const absl::string_view bytes = reader.source().bytes;
  ASSERT_TRUE(space.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  const EventTable& table = loaded.table;
  EventRow row = 0;
  TrackId track = 0;
  for (const xp::XPlane& plane : space.planes()) {
    for (const xp::XLine& line : plane.lines()) {
      for (const xp::XEvent& event : line.events()) {
        if (event.data_case() == xp::XEvent::kNumOccurrences) continue;
        ASSERT_LT(row, table.size());
        ASSERT_EQ(table.track_id(row), track);
        ASSERT_EQ(table.start_ps(row), line.timestamp_ns() * 1000 + event.offset_ps());
        ASSERT_EQ(table.duration_ps(row), event.duration_ps());
        ASSERT_EQ(table.name(row), plane.event_metadata().at(event.metadata_id()).name());
        ++row;
      }
      ++track;
    }
  }
  EXPECT_EQ(table.size(), row);
  EXPECT_EQ(table.tracks().size(), track);
}

TEST(EventTableXSpaceTest, AgreesWithLibprotobufOnRealFiles) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::Open(FileSystem::Posix(), path));
    XSpaceTableOptions options;
    options.profile_start_ns = kStartNs;
    ASSERT_OK_AND_ASSIGN(const XSpaceTable loaded, LoadXSpace(reader, options));
    EXPECT_EQ(loaded.negative_durations, 0);
    EXPECT_EQ(loaded.out_of_range, 0);
    ExpectSameAsProto(reader, loaded);
  }
}

}  // namespace
}  // namespace meridian
