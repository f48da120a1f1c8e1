#include "xla_profiler/xplane/xspace_reader.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TwoPlanes() {
  ::tensorflow::profiler::XSpace space;
  space.add_planes()->set_name("/host:CPU");
  space.add_planes()->set_name("/device:GPU:0");
  return space.SerializeAsString();
}

TEST(XSpaceReaderTest, VisitsPlanesInFileOrderAndFindsThemByName) {
  const std::string bytes = TwoPlanes();
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "a.pb"));
  std::vector<std::string> names;
  EXPECT_OK(
      reader.ForEachPlane([&](const XPlaneVisitor& plane) { names.emplace_back(plane.Name()); }));
  EXPECT_THAT(names, ElementsAre("/host:CPU", "/device:GPU:0"));
  ASSERT_OK_AND_ASSIGN(const auto found, reader.FindPlane("/device:GPU:0"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->Name(), "/device:GPU:0");
  ASSERT_OK_AND_ASSIGN(const auto absent, reader.FindPlane("/device:GPU:1"));
  EXPECT_FALSE(absent.has_value());
}

// Long lines of files are taken out of memory when they were visited.
TEST(XSpaceReaderTest, LinesAreThereAgainWhenTheyAreVisitedTwice) {
  const TemporaryDirectory directory;
  ::tensorflow::profiler::XSpace space;
  ::tensorflow::profiler::XPlane* plane = space.add_planes();
  (*plane->mutable_event_metadata())[1].set_name("op");
  constexpr int kEvents = 100000;
  for (const char* name : {"first", "second"}) {
    ::tensorflow::profiler::XLine* line = plane->add_lines();
    line->set_name(name);
    for (int i = 0; i < kEvents; ++i) {
      line->add_events()->set_metadata_id(1);
      line->mutable_events(i)->set_offset_ps(i);
    }
  }
  const std::string path = directory.Write("a.xplane.pb", space.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::Open(FileSystem::Posix(), path));
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::string> names;
    int64_t sum_ps = 0;
    EXPECT_OK(reader.ForEachPlane([&](const XPlaneVisitor& visited) {
      return visited.ForEachLine([&](const XLineVisitor& line) {
        names.emplace_back(line.Name());
        return line.ForEachEvent([&](const XEventVisitor& event) { sum_ps += event.OffsetPs(); });
      });
    }));
    EXPECT_THAT(names, ElementsAre("first", "second"));
    EXPECT_EQ(sum_ps, int64_t{kEvents} * (kEvents - 1));
  }
}

TEST(XSpaceReaderTest, AnEmptyFileIsRefused) {
  EXPECT_THAT(XSpaceReader::FromBytes("", "a.pb").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("a.pb: offset 0: the file is empty")));
}

TEST(XSpaceReaderTest, BytesWithoutAPlaneAreRefused) {
  EXPECT_THAT(XSpaceReader::FromBytes("\x22\x01h", "a.pb").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no plane found")));
  EXPECT_THAT(XSpaceReader::FromBytes("hello, world", "a.pb").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("a.pb: offset ")));
}

TEST(XSpaceReaderTest, OtherFormatsAreRefused) {
  // White space before it looks like a plane of 32 bytes.
  for (const char* json : {"{\"traceEvents\": []}", "\n {\n    \"traceEvents\": []\n }\n"}) {
    EXPECT_THAT(XSpaceReader::FromBytes(json, "a.pb").status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "a.pb: is JSON, as PyTorch's traces are; expected a serialized XSpace"));
  }
}

TEST(XSpaceReaderTest, LinesOfAllPlanesAreLimitedTogether) {
  ::tensorflow::profiler::XSpace space;
  for (int i = 0; i < 3; ++i) space.add_planes()->add_lines();
  const std::string bytes = space.SerializeAsString();
  XSpaceLimits limits;
  limits.max_lines = 2;
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "a.pb", limits));
  EXPECT_THAT(reader.ForEachPlane([](const XPlaneVisitor&) {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "a.pb: offset 10: more than 2 lines"));
}

TEST(XSpaceReaderTest, ErrorsInsideAPlaneNameTheFileAndTheOffset) {
  // A plane of three bytes whose name claims five.
  const std::string bytes("\x0A\x03\x12\x05x", 5);
  ASSERT_OK_AND_ASSIGN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "a.pb"));
  EXPECT_THAT(reader.Plane(0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a.pb: offset 3: length runs past the end of the enclosing message"));
}

}  // namespace
}  // namespace meridian
