#include "astra_bridge/calibration/number_text.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(NumberTextTest, OneDigitBehindThePoint) {
  EXPECT_EQ(Percent(0.1234), "12.3 %");
  EXPECT_EQ(SignedPercent(0.1234), "+12.3 %");
  EXPECT_EQ(SignedPercent(-0.0006), "-0.1 %");
  EXPECT_EQ(Micros(1234567), "1234.6");
  EXPECT_EQ(Micros(-60), "-0.1");
}

TEST(NumberTextTest, NothingHasNoSign) {
  EXPECT_EQ(Micros(-2.8e-7), "0.0");
  EXPECT_EQ(Micros(-0.0), "0.0");
  EXPECT_EQ(Percent(-1e-9), "0.0 %");
  EXPECT_EQ(SignedPercent(-1e-9), "+0.0 %");
}

}  // namespace
}  // namespace meridian
