#include "xla_profiler/base/tables/text_table.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(ByteSizeTest, ReadsUnitsOf1024AndOf1000) {
  EXPECT_THAT(ParseByteSize("0"), IsOkAndHolds(0));
  EXPECT_THAT(ParseByteSize("4096"), IsOkAndHolds(4096));
  EXPECT_THAT(ParseByteSize("7B"), IsOkAndHolds(7));
  EXPECT_THAT(ParseByteSize("64KiB"), IsOkAndHolds(65536));
  EXPECT_THAT(ParseByteSize("3mib"), IsOkAndHolds(3145728));
  EXPECT_THAT(ParseByteSize("2GiB"), IsOkAndHolds(2147483648));
  EXPECT_THAT(ParseByteSize("1TiB"), IsOkAndHolds(1099511627776));
  EXPECT_THAT(ParseByteSize("5kB"), IsOkAndHolds(5000));
  EXPECT_THAT(ParseByteSize("10MB"), IsOkAndHolds(10000000));
  EXPECT_THAT(ParseByteSize("8388607TiB"), IsOkAndHolds(9223370937343148032));
}

TEST(ByteSizeTest, RefusesWhatIsNoSizeOrDoesNotFit) {
  for (const char* text : {"", "KiB", "-1", "+1", "1.5KiB", "1 KiB", "1K", "1PiB", "0x10", "1,000",
                           "8388608TiB", "9223372036854775808"}) {
    EXPECT_THAT(ParseByteSize(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected e.g. 4096")))
        << text;
  }
}

TEST(ByteSizeTest, WritesTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatByteSize(0), "0B");
  EXPECT_EQ(FormatByteSize(1000), "1000B");
  EXPECT_EQ(FormatByteSize(1024), "1KiB");
  EXPECT_EQ(FormatByteSize(1536), "1536B");
  EXPECT_EQ(FormatByteSize(3 << 20), "3MiB");
  EXPECT_EQ(FormatByteSize(int64_t{5} << 40), "5TiB");
}

}  // namespace
}  // namespace meridian
