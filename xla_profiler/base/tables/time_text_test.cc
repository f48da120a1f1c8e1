#include "xla_profiler/base/tables/text_table.h"

#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(TimeTextTest, RoundsToTheDecimalsAskedFor) {
  EXPECT_EQ(FormatMillis(12345678901), "12.346");
  EXPECT_EQ(FormatMillis(12345678901, 6), "12.345679");
  EXPECT_EQ(FormatMillis(12345678901, 9), "12.345678901");
  EXPECT_EQ(FormatMillis(12345678901, 0), "12");
  EXPECT_EQ(FormatMicros(12345678), "12.346");
  EXPECT_EQ(FormatMicros(1000, 6), "0.001000");
}

TEST(TimeTextTest, HalvesGoAwayFromZero) {
  EXPECT_EQ(FormatMicros(1499), "0.001");
  EXPECT_EQ(FormatMicros(1500), "0.002");
  EXPECT_EQ(FormatMicros(-1500), "-0.002");
  EXPECT_EQ(FormatMicros(999500), "1.000");
}

TEST(TimeTextTest, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(FormatMicros(-499), "0.000");
  EXPECT_EQ(FormatMicros(0), "0.000");
}

TEST(TimeTextTest, TheEndsOfInt64AreTimes) {
  EXPECT_EQ(FormatMillis(std::numeric_limits<int64_t>::min(), 9), "-9223372036.854775808");
  EXPECT_EQ(FormatMillis(std::numeric_limits<int64_t>::max(), 0), "9223372037");
}

}  // namespace
}  // namespace meridian
