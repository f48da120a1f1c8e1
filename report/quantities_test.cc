#include "report/quantities.h"

#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(QuantitiesTest, DurationsTakeTheUnitThatFits) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(812), "812 ns");
  EXPECT_EQ(DurationText(-999), "-999 ns");
  EXPECT_EQ(DurationText(0.25), "0.25 ns");
  EXPECT_EQ(DurationText(1000), "1.00 µs");
  EXPECT_EQ(DurationText(12345), "12.3 µs");
  EXPECT_EQ(DurationText(-4567890), "-4.57 ms");
  EXPECT_EQ(DurationText(123456789), "123 ms");
  EXPECT_EQ(DurationText(86400e9), "86,400 s");
  EXPECT_EQ(DurationText(static_cast<double>(std::numeric_limits<int64_t>::min())),
            "-9,223,372,037 s");
}

TEST(QuantitiesTest, RoundingMayLeadToTheNextUnit) {
  EXPECT_EQ(DurationText(999499), "999 µs");
  EXPECT_EQ(DurationText(999600), "1.00 ms");
  EXPECT_EQ(DurationText(9996), "10.0 µs");
  EXPECT_EQ(DurationText(99960), "100 µs");
}

TEST(QuantitiesTest, OffsetsShowTheirSign) {
  EXPECT_EQ(SignedDurationText(1500), "+1.50 µs");
  EXPECT_EQ(SignedDurationText(-1500), "-1.50 µs");
  EXPECT_EQ(SignedDurationText(0), "0 ns");
}

TEST(QuantitiesTest, BytesCountInPowersOf1024) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1,023 B");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(16 << 20), "16.0 MiB");
  EXPECT_EQ(BytesText(int64_t{5} << 50), "5,120 TiB");
}

TEST(QuantitiesTest, DriftsAndShares) {
  EXPECT_EQ(PpmText(3.279), "+3.28 ppm");
  EXPECT_EQ(PpmText(-50), "-50.00 ppm");
  EXPECT_EQ(PpmText(0), "0.00 ppm");
  EXPECT_EQ(PpmText(1234.5), "+1,235 ppm");
  EXPECT_EQ(ShareText(0, 7), "0 %");
  EXPECT_EQ(ShareText(1, 250), "0.4 %");
  EXPECT_EQ(ShareText(1, 3), "33 %");
  EXPECT_EQ(ShareText(7, 7), "100 %");
}

TEST(QuantitiesTest, RunsOfNumbersAreJoined) {
  EXPECT_EQ(RangesText({}), "");
  EXPECT_EQ(RangesText({5}), "5");
  EXPECT_EQ(RangesText({8, 0, 1, 2, 3, 3}), "0-3, 8");
  EXPECT_EQ(RangesText({4, 5, 9, 10, 11}), "4, 5, 9-11");
  EXPECT_EQ(RangesText({std::numeric_limits<int64_t>::max()}), "9223372036854775807");
}

}  // namespace
}  // namespace meridian
