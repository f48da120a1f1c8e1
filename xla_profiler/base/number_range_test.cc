#include "xla_profiler/base/number_range.h"

#include <optional>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(NumberRangeTest, ParsesNumbersAndRanges) {
  const std::optional<NumberRange> single = ParseNumberRange("3");
  ASSERT_TRUE(single.has_value());
  EXPECT_EQ(single->first, 3);
  EXPECT_EQ(single->last, 3);
  const std::optional<NumberRange> range = ParseNumberRange("-1..4");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, -1);
  EXPECT_EQ(range->last, 4);
}

TEST(NumberRangeTest, BothEndsBelongToIt) {
  const NumberRange range = {2, 4};
  EXPECT_FALSE(range.Contains(1));
  EXPECT_TRUE(range.Contains(2));
  EXPECT_TRUE(range.Contains(4));
  EXPECT_FALSE(range.Contains(5));
}

TEST(NumberRangeTest, RefusesOtherTexts) {
  for (const char* text :
       {"", "x", "1..", "..2", "2..1", "1...3", "1.5", "1..2..3", "99999999999999999999"}) {
    EXPECT_FALSE(ParseNumberRange(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace meridian
