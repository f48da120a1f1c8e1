#include "xla_profiler/hlo/hlo_wire.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

WireField BytesField(absl::string_view bytes) {
  WireField field;
  field.type = WireType::kBytes;
  field.bytes = bytes;
  return field;
}

TEST(HloWireTest, IntegersComePackedOrOneByOne) {
  std::vector<int64_t> integers;
  EXPECT_OK(AppendIntegers(BytesField("\x01\x80\x02"), nullptr, &integers));
  WireField single;
  single.scalar = static_cast<uint64_t>(-7);
  EXPECT_OK(AppendIntegers(single, nullptr, &integers));
  WireField fixed;
  fixed.type = WireType::kFixed64;
  EXPECT_OK(AppendIntegers(fixed, nullptr, &integers));
  EXPECT_THAT(integers, ElementsAre(1, 256, -7));
}

TEST(HloWireTest, MalformedPackedIntegersNameTheirOffset) {
  const std::string file = "xxxx\x01\x80";
  std::vector<int64_t> integers;
  EXPECT_THAT(
      AppendIntegers(BytesField(absl::string_view(file).substr(4)), file.data(), &integers),
      StatusIs(absl::StatusCode::kInvalidArgument, "offset 4: packed integers are malformed"));
}

}  // namespace
}  // namespace meridian
