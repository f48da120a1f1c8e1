#include "xla_profiler/xplane/xplane_wire.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/wire/wire_writer.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Appends fields to a message.
class Message {
 public:
  Message& Varint(uint32_t number, uint64_t value) {
    StringOutput output(&bytes_);
    WriteVarintField(number, value, &output);
    return *this;
  }
  Message& Bytes(uint32_t number, absl::string_view value) {
    StringOutput output(&bytes_);
    WriteBytesField(number, value, &output);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

TEST(XPlaneWireTest, SpaceIsCutIntoPlanesAndTexts) {
  const std::string bytes =
      Message().Bytes(4, "host").Bytes(1, "").Bytes(2, "bad").Bytes(1, "\x08\x01").bytes();
  ASSERT_OK_AND_ASSIGN(const XSpaceLayout layout, ReadXSpaceLayout({bytes, {}}));
  EXPECT_THAT(layout.planes, ElementsAre("", "\x08\x01"));
  EXPECT_THAT(layout.hostnames, ElementsAre("host"));
  EXPECT_THAT(layout.errors, ElementsAre("bad"));
}

TEST(XPlaneWireTest, LineHeaderIsFoundBehindTheEvents) {
  const std::string line = Message()
                               .Bytes(4, "\x08\x01")
                               .Bytes(4, "\x08\x02")
                               .Varint(3, 77)
                               .Bytes(2, "first")
                               .Bytes(2, "last")
                               .Varint(1, static_cast<uint64_t>(int64_t{-4}))
                               .bytes();
  ASSERT_OK_AND_ASSIGN(const XLineHeader header, ReadXLineHeader({line, {}}, line));
  EXPECT_EQ(header.num_events, 2u);
  EXPECT_EQ(header.timestamp_ns, 77);
  EXPECT_EQ(header.name, "last");
  EXPECT_EQ(header.id, -4);
}

TEST(XPlaneWireTest, AFieldOfAnotherWireTypeIsUnknown) {
  const std::string line = Message().Varint(4, 1).Varint(2, 5).Bytes(3, "x").bytes();
  ASSERT_OK_AND_ASSIGN(const XLineHeader header, ReadXLineHeader({line, {}}, line));
  EXPECT_EQ(header.num_events, 0u);
  EXPECT_EQ(header.name, "");
  EXPECT_EQ(header.timestamp_ns, 0);
}

TEST(XPlaneWireTest, BadUtf8IsNamedByItsOffsetInTheFile) {
  // Plane field: tag and length are bytes 0 and 1, the name's 2 and 3; "ok" is fine, byte 6 is not.
  const std::string bytes = Message().Bytes(1, Message().Bytes(2, "ok\xFF").bytes()).bytes();
  const XSpaceSource source{bytes, {}};
  ASSERT_OK_AND_ASSIGN(const XSpaceLayout layout, ReadXSpaceLayout(source));
  EXPECT_THAT(ReadXPlaneLayout(source, layout.planes[0]),
              StatusIs(absl::StatusCode::kInvalidArgument, "offset 6: text is not UTF-8"));
}

TEST(XPlaneWireTest, CountsAreLimited) {
  XSpaceLimits limits;
  limits.max_planes = 2;
  limits.max_lines = 1;
  limits.max_metadata_per_plane = 1;
  limits.max_stats_per_event = 1;
  limits.max_messages = 1;
  const auto plane_status = [&](uint32_t number) {
    const std::string plane = Message().Bytes(number, "").Bytes(number, "").bytes();
    return ReadXPlaneLayout({plane, limits}, plane).status();
  };
  EXPECT_THAT(plane_status(3), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("offset 4: more than 1 lines")));
  EXPECT_THAT(plane_status(4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("event metadata")));
  EXPECT_THAT(plane_status(5),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stat metadata")));
  EXPECT_THAT(plane_status(6), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stats")));
  const std::string space = Message().Bytes(1, "").Bytes(1, "").Bytes(1, "").bytes();
  EXPECT_THAT(ReadXSpaceLayout({space, limits}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 2 planes")));
  // Errors, warnings and host names.
  for (const uint32_t number : {2, 3, 4}) {
    const std::string messages = Message().Bytes(number, "a").Bytes(number, "b").bytes();
    EXPECT_THAT(
        ReadXSpaceLayout({messages, limits}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("offset 5: more than 1 messages")));
  }
}

}  // namespace
}  // namespace meridian
