#include "trace_alignment/clocks/clock_log.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// 2026-11-18 05:17:46 UTC.
constexpr int64_t kLogTimeNs = 1'794'979'066'000'000'000;
constexpr int64_t kMinuteNs = 60'000'000'000;

constexpr char kTrackingBanner[] =
    "=====================================================================\n"
    "   Date (UTC) Time     IP Address   St   Freq ppm   Skew ppm     Offset L Co  Offset sd Rem. "
    "corr. Root delay Root disp. Max. error\n"
    "=====================================================================\n";

// A row with that offset, no correction, a root delay of 200 us and a dispersion of 30 us.
std::string ChronyRow(const char* time, const char* offset) {
  return absl::StrCat("2026-11-18 ", time, " 10.0.0.1  2  -3.541  0.075 ", offset,
                      " N  2  2.940e-05  0.000e+00  2.000e-04  3.000e-05  8.304e-04\n");
}

TEST(ClockLogTest, ChronyIsAsFarOffAsItsRowsOfTheTimeSay) {
  const std::string log =
      absl::StrCat(kTrackingBanner, ChronyRow("05:00:00", "9.000e-03"),
                   ChronyRow("05:16:00", "-1.000e-05"), ChronyRow("05:18:00", "2.000e-05"),
                   ChronyRow("05:20:00", "-7.000e-05"), ChronyRow("05:22:00", "8.000e-03"));
  // 70 us, half of 200 us and 30 us; rows before the last and after the first outside do not count.
  EXPECT_THAT(ClockWithinNs(log, "tracking.log", kLogTimeNs, kLogTimeNs + kMinuteNs),
              IsOkAndHolds(200'000));
}

TEST(ClockLogTest, ChronysRowsOfAnotherTimeAreRefused) {
  const std::string log = absl::StrCat(kTrackingBanner, ChronyRow("02:00:00", "9.000e-06"));
  EXPECT_THAT(ClockWithinNs(log, "tracking.log", kLogTimeNs, kLogTimeNs + kMinuteNs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tracking.log: no row is of the time of the profile, 2026-11-18 "
                                 "05:17:46 UTC; the rows are from 2026-11-18 02:00:00 to")));
}

// Without a source chrony logs an offset and errors of 0.
TEST(ClockLogTest, ChronyWithoutASourceIsRefused) {
  const char kUnsynchronised[] =
      "2026-11-18 05:18:00 0.0.0.0  0  -3.541  0.075  0.000e+00 ?  0  0.000e+00  0.000e+00  "
      "0.000e+00  0.000e+00  0.000e+00\n";
  for (const std::string& before : {std::string(), ChronyRow("05:16:00", "-1.000e-05")}) {
    EXPECT_THAT(
        ClockWithinNs(before + kUnsynchronised, "tracking.log", kLogTimeNs, kLogTimeNs + kMinuteNs),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("tracking.log: at 2026-11-18 05:18:00 UTC the clock was not "
                           "synchronised")));
  }
}

TEST(ClockLogTest, PtpThatIsNeverLockedIsRefused) {
  EXPECT_THAT(ClockWithinNs("ptp4l[1.0]: master offset -23947 s0 freq +0 path delay 11350\n",
                            "ptp4l.log", kLogTimeNs, kLogTimeNs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never locked")));
}

TEST(ClockLogTest, PtpCountsWhileItIsLocked) {
  std::string log = "ptp4l[1.0]: master offset -23947 s0 freq +0 path delay 11350\n";
  for (int i = 1; i <= 11; ++i) {
    absl::StrAppend(&log, "ptp4l[", i, ".5]: master offset ", i % 2 == 0 ? -i : i,
                    " s2 freq +2 path delay 10\n");
  }
  EXPECT_THAT(ClockWithinNs(log, "ptp4l.log", kLogTimeNs, kLogTimeNs), IsOkAndHolds(10));
  absl::StrAppend(&log, "phc2sys[12.1]: CLOCK_REALTIME phc offset -40 s2 freq -7 delay 480\n");
  EXPECT_THAT(ClockWithinNs(log, "ptp4l.log", kLogTimeNs, kLogTimeNs), IsOkAndHolds(50));
}

TEST(ClockLogTest, PtpSummariesCountByTheirLargest) {
  EXPECT_THAT(ClockWithinNs("Nov 18 node3 ptp4l: [84.1] rms 16 max 33 freq -993 +/- 21 delay 510\n",
                            "syslog", kLogTimeNs, kLogTimeNs),
              IsOkAndHolds(33));
}

TEST(ClockLogTest, OtherFilesAreRefused) {
  for (const char* text : {"", "{\"node_id\":1}\n", "master offset nan s2 freq 1\n"}) {
    EXPECT_THAT(ClockWithinNs(text, "x.log", kLogTimeNs, kLogTimeNs),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x.log: no row of chrony")));
  }
}

}  // namespace
}  // namespace meridian
