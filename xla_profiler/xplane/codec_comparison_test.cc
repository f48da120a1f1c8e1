// The streaming codec against libprotobuf: on every real file at hand, on files built to hit each
// rule of proto3, and on thousands of damaged ones.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/testing/codec_comparison.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

CodecVerdict Compare(absl::string_view bytes) {
  CodecVerdict verdict = CodecVerdict::kMalformed;
  const absl::Status status = CompareWithLibprotobuf(bytes, &verdict);
  EXPECT_TRUE(status.ok()) << status;
  return verdict;
}

// A space with one of everything.
::tensorflow::profiler::XSpace RichSpace() {
  ::tensorflow::profiler::XSpace space;
  space.add_hostnames("host-7");
  space.add_warnings("dropped 3 events");
  auto* plane = space.add_planes();
  plane->set_id(-3);
  plane->set_name("/device:GPU:0");
  for (int id : {1, 2, 3}) {
    auto& metadata = (*plane->mutable_stat_metadata())[id];
    metadata.set_id(id);
    metadata.set_name("stat" + std::to_string(id));
  }
  auto& kernel = (*plane->mutable_event_metadata())[-99];
  kernel.set_id(-99);
  kernel.set_name("kernel");
  kernel.set_display_name("k");
  kernel.set_metadata("\xFF\x01");
  kernel.add_child_id(5);
  kernel.add_child_id(-6);
  auto* shared = kernel.add_stats();
  shared->set_metadata_id(1);
  shared->set_ref_value(3);
  auto* line = plane->add_lines();
  line->set_id(7);
  line->set_name("Stream #7");
  line->set_timestamp_ns(1000);
  line->set_display_name("stream");
  for (int i = 0; i < 5; ++i) {
    auto* event = line->add_events();
    event->set_metadata_id(-99);
    if (i == 3) {
      event->set_num_occurrences(4);
    } else if (i != 4) {
      event->set_offset_ps(i * int64_t{1000000});
    }
    event->set_duration_ps(i * 70);
    event->add_stats()->set_metadata_id(1);
    event->mutable_stats(0)->set_double_value(0.5 * i);
    event->add_stats()->set_metadata_id(2);
    event->mutable_stats(1)->set_str_value("t\xC3\xA9xt");
    event->add_stats()->set_metadata_id(3);
    event->mutable_stats(2)->set_int64_value(-i);
  }
  return space;
}

std::string RichBytes() { return RichSpace().SerializeAsString(); }

TEST(CodecComparisonTest, AgreesOnTheExample) {
  for (const char* path :
       {"examples/jax_cuda2/rank0.xplane.pb", "examples/jax_cuda2/rank1.xplane.pb"}) {
    absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Compare(file->bytes()), CodecVerdict::kAccepted);
  }
}

TEST(CodecComparisonTest, AgreesOnEveryRealFile) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Compare(file->bytes()), CodecVerdict::kAccepted);
  }
}

TEST(CodecComparisonTest, AgreesOnOneOfEverything) {
  EXPECT_EQ(Compare(RichBytes()), CodecVerdict::kAccepted);
  EXPECT_EQ(Compare(""), CodecVerdict::kAccepted);
}

// Wraps an event's payload, twice, into a space that defines event metadata 1 and stat metadata 1.
// With room behind, the events are read by the short cut where their form allows.
std::string SpaceWithEvent(absl::string_view event, bool room_behind) {
  std::string line, line_field;
  StringOutput line_output(&line);
  for (int i = 0; i < 2; ++i) WriteBytesField(4, event, &line_output);
  StringOutput field_output(&line_field);
  WriteBytesField(3, line, &field_output);
  ::tensorflow::profiler::XPlane plane;
  (*plane.mutable_event_metadata())[1].set_name("e");
  (*plane.mutable_stat_metadata())[1].set_name("s");
  std::string out;
  StringOutput output(&out);
  WriteBytesField(1, plane.SerializeAsString() + line_field, &output);
  if (room_behind) WriteBytesField(99, std::string(32, '\xFF'), &output);
  return out;
}

CodecVerdict CompareEvent(absl::string_view event) {
  const CodecVerdict verdict = Compare(SpaceWithEvent(event, false));
  EXPECT_EQ(Compare(SpaceWithEvent(event, true)), verdict);
  return verdict;
}

std::string Event(const std::vector<std::pair<uint32_t, uint64_t>>& varints) {
  std::string event;
  StringOutput output(&event);
  for (const auto& [number, value] : varints) WriteVarintField(number, value, &output);
  return event;
}

TEST(CodecComparisonTest, LaterMemberOfTheOneofWins) {
  EXPECT_EQ(CompareEvent((Event({{1, 1}, {2, 7}, {5, 3}}))), CodecVerdict::kAccepted);
  EXPECT_EQ(CompareEvent((Event({{1, 1}, {5, 3}, {2, 7}}))), CodecVerdict::kAccepted);
  EXPECT_EQ(CompareEvent((Event({{1, 1}, {2, 7}, {5, 3}, {2, 9}, {3, 1}, {3, 2}}))),
            CodecVerdict::kAccepted);
  EXPECT_EQ(CompareEvent((Event({{1, 1}, {3, 5}, {2, 7}}))), CodecVerdict::kAccepted);
}

TEST(CodecComparisonTest, StatsOfEveryKindAndForm) {
  const std::string head = Event({{1, 1}, {2, 1000000}, {3, 77}});
  const auto with_stat = [&](const std::string& stat) {
    return CompareEvent(head + "\x22" + static_cast<char>(stat.size()) + stat);
  };
  const std::string id = "\x08\x01";
  for (const std::string& value :
       {std::string("\x18\x85\x01"), std::string("\x20\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
        std::string("\x38\x01"), std::string("\x2A\x02hi"), std::string("\x2A\x00", 2),
        std::string("\x32\x02\xFF\xFE"), std::string("\x11\x00\x00\x00\x00\x00\x00\xF8\x7F", 9),
        std::string("\x18\x05\x20\x06"), std::string()}) {
    EXPECT_EQ(with_stat(id + value), CodecVerdict::kAccepted);
    EXPECT_EQ(with_stat(value + id), CodecVerdict::kAccepted);
  }
  // The tag of a string is the stat's last byte; a string longer than its stat; bad UTF-8.
  EXPECT_EQ(with_stat("\x08\x81\x01\x2A"), CodecVerdict::kMalformed);
  EXPECT_EQ(with_stat(id + "\x2A\x05hi"), CodecVerdict::kMalformed);
  EXPECT_EQ(with_stat(id + "\x2A\x01\xFF"), CodecVerdict::kMalformed);
}

TEST(CodecComparisonTest, UnknownFieldsGroupsAndOtherWireTypesAreKept) {
  const std::string extra = Event({{1, 1}, {2, 5}}) + std::string("\x7A\x03xyz", 5) +  // 15: bytes
                            std::string("\x83\x01\x08\x01\x84\x01", 6) +               // 16: group
                            std::string("\x1D\x01\x02\x03\x04", 5) +  // 3 as fixed32
                            std::string("\x10\x85\x80\x00", 4);       // 2, overlong varint
  EXPECT_EQ(CompareEvent((extra)), CodecVerdict::kAccepted);
}

TEST(CodecComparisonTest, OverlongLengthsSurviveARewrite) {
  // Plane of 2 bytes with its length in 3 bytes; line of 0 bytes with its length in 2.
  const std::string bytes("\x0A\x83\x80\x00\x1A\x80\x00", 7);
  EXPECT_EQ(Compare(bytes), CodecVerdict::kAccepted);
}

TEST(CodecComparisonTest, MapEntriesMayComeIncompleteOrInPieces) {
  const auto plane_with_entry = [](absl::string_view entry) {
    std::string plane, out;
    StringOutput plane_output(&plane);
    WriteBytesField(5, entry, &plane_output);
    StringOutput output(&out);
    WriteBytesField(1, plane, &output);
    return out;
  };
  EXPECT_EQ(Compare(plane_with_entry("")), CodecVerdict::kAccepted);
  EXPECT_EQ(Compare(plane_with_entry("\x08\x05")), CodecVerdict::kAccepted);
  // Value before key, in two pieces: name "a", then description "b".
  EXPECT_EQ(Compare(plane_with_entry("\x12\x03\x12\x01"
                                     "a\x08\x05\x12\x03\x1A\x01"
                                     "b")),
            CodecVerdict::kAccepted);
}

TEST(CodecComparisonTest, IdsDefinedTwiceOrNeverAreRefused) {
  EXPECT_EQ(CompareEvent((Event({{1, 2}}))), CodecVerdict::kInconsistentIds);
  EXPECT_EQ(CompareEvent((Event({{1, 1}}) + "\x22\x02\x08\x09")), CodecVerdict::kInconsistentIds);
  EXPECT_EQ(CompareEvent((Event({{1, 1}}) + "\x22\x04\x08\x01\x38\x05")),
            CodecVerdict::kInconsistentIds);
  EXPECT_EQ(Compare(std::string("\x0A\x08\x22\x02\x08\x01\x22\x02\x08\x01", 10)),
            CodecVerdict::kInconsistentIds);
}

TEST(CodecComparisonTest, AgreesOnEveryTruncation) {
  const std::string bytes = RichBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    Compare(absl::string_view(bytes).substr(0, size));
  }
}

TEST(CodecComparisonTest, AgreesOnRandomDamage) {
  const std::string bytes = RichBytes();
  std::mt19937_64 random(20260101);
  std::map<CodecVerdict, int> verdicts;
  for (int round = 0; round < 60000 && !HasFailure(); ++round) {
    ++verdicts[Compare(Damage(bytes, random))];
  }
  // The damage is such that each verdict occurs often.
  EXPECT_GT(verdicts[CodecVerdict::kAccepted], 1000);
  EXPECT_GT(verdicts[CodecVerdict::kMalformed], 1000);
  EXPECT_GT(verdicts[CodecVerdict::kInconsistentIds], 1000);
}

}  // namespace
}  // namespace meridian
