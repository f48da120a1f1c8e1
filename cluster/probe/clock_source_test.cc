#include "cluster/probe/clock_source.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(ClockSourceTest, ReadsTheSecondClockBetweenTwoReadingsOfTheFirst) {
  const std::unique_ptr<ClockSource> clock = SystemClockSource();
  const ClockReading first = clock->Read(), second = clock->Read();
  EXPECT_LE(first.before_ns, first.after_ns);
  EXPECT_LT(first.second_ns, second.second_ns);
}

TEST(StepDetectorTest, TellsASetClockFromASlewedOne) {
  StepDetector detector;
  EXPECT_FALSE(detector.IsStep({1'000'000'000, 1'000'000'100, 0}));
  // Half a second later, slewed by 500 ppm: 250 us.
  EXPECT_FALSE(detector.IsStep({1'500'250'000, 1'500'250'100, 500'000'000}));
  // 10 ms later; set by 20 us, which no slewing explains.
  EXPECT_TRUE(detector.IsStep({1'510'270'000, 1'510'270'100, 510'000'000}));
  EXPECT_FALSE(detector.IsStep({1'520'270'000, 1'520'270'100, 520'000'000}));
  // Set back.
  EXPECT_TRUE(detector.IsStep({530'270'000, 530'270'100, 530'000'000}));
}

TEST(StepDetectorTest, AnInterruptedReadingSaysNothing) {
  StepDetector detector;
  EXPECT_FALSE(detector.IsStep({1'000'000'000, 1'000'000'100, 0}));
  EXPECT_FALSE(detector.IsStep({1'010'000'000, 1'012'000'000, 12'000'000}));
  EXPECT_FALSE(detector.IsStep({1'020'000'000, 1'020'000'100, 20'000'000}));
}

}  // namespace
}  // namespace meridian
