#include "cluster/probe/clock_source.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(ClockSourceTest, ReadsTheSecondClockBetweenTwoReadingsOfTheFirst) {
  for (const char* name : {"monotonic_raw", "monotonic", "boottime", "tai"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ClockSource> clock, SystemClockSource(name));
    const ClockReading first = ReadNarrowly(*clock), second = ReadNarrowly(*clock);
    EXPECT_LE(first.before_ns, first.after_ns) << name;
    EXPECT_LT(first.second_ns, second.second_ns) << name;
  }
  EXPECT_THAT(SystemClockSource("sundial"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("boottime")));
  EXPECT_THAT(SystemClockSource("/no/such/clock"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/clock")));
}

// The clock is set back within the first reading, as may happen when NTP begins.
TEST(ClockSourceTest, AReadingInWhichTheClockWasSetIsNotTaken) {
  class SetClock : public ClockSource {
   public:
    ClockReading Read() override {
      ++reads_;
      return reads_ == 1 ? ClockReading{5000, 1000, 0} : ClockReading{2000, 2100 - reads_, reads_};
    }
    int64_t FromRealtime(int64_t time_ns) override { return time_ns; }

   private:
    int64_t reads_ = 0;
  };
  SetClock clock;
  const ClockReading reading = ReadNarrowly(clock);
  EXPECT_EQ(reading.before_ns, 2000);
  EXPECT_EQ(reading.after_ns, 2092);
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
