#include "trace_alignment/aligner/kineto_aligner.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

constexpr int64_t kRunBaseNs = 1'700'000'000'000'000'000;
constexpr int64_t kSecondPs = 1'000'000'000'000;

// A clock that is ahead by 5 us at the run's base and by 6 us a second later.
NodeClock Clock() {
  NodeClock clock((RunClock(kRunBaseNs)));
  absl::StatusOr<ClockMap> map =
      ClockMap::Create({{0, -5'000'000}, {kSecondPs, kSecondPs - 6'000'000}});
  EXPECT_OK(map);
  clock.host_to_reference = *std::move(map);
  return clock;
}

absl::StatusOr<std::string> Aligned(absl::string_view text, int64_t base_ns,
                                    AlignmentStats* stats = nullptr) {
  std::string out;
  StringSink sink(&out);
  ASSIGN_OR_RETURN(const AlignmentStats done, AlignKineto(text, base_ns, Clock(), sink));
  if (stats != nullptr) *stats = done;
  return out;
}

TEST(KinetoAlignerTest, StartsAndDurationsMoveToTheNanosecond) {
  AlignmentStats stats;
  // The base is one second after the run's: 6 us ahead there, and 1 ppm fast.
  EXPECT_THAT(
      Aligned(R"({"traceEvents":[{"ph":"X","ts":10.000,"dur":2000000.500,"args":{"ts":1}},)"
              R"({"ph":"s","id":7,"ts":"0.25"},{"ph":"M","ts":3,"name":"process_name"}]})",
              kRunBaseNs + 1'000'000'000, &stats),
      IsOkAndHolds(
          // It ends at 3 s + 10.5 us, where the clock is 8 us ahead.
          R"({"alignedClock": 1, "traceEvents":[{"ph":"X","ts":4.000,"dur":1999998.500,"args":{"ts":1}},)"
          R"({"ph":"s","id":7,"ts":"-5.750"},{"ph":"M","ts":-3.000,"name":"process_name"}]})"));
  EXPECT_EQ(stats.events(), 2);
  EXPECT_EQ(stats.events_corrected(), 2);
  EXPECT_EQ(stats.min_correction_ns(), -6000);
  EXPECT_EQ(stats.max_correction_ns(), -6000);
}

TEST(KinetoAlignerTest, TheMarkComesFirst) {
  EXPECT_THAT(
      Aligned("\n{\n  \"schemaVersion\": 1, \"traceEvents\": []}", kRunBaseNs),
      IsOkAndHolds("\n{\n  \"alignedClock\": 1, \"schemaVersion\": 1, \"traceEvents\": []}"));
  EXPECT_THAT(Aligned("[]", kRunBaseNs), IsOkAndHolds("[]"));
  // Whoever aligns once more all the same gets no member twice.
  constexpr char kMarked[] = "{ \"alignedClock\": 1, \"traceEvents\": []}";
  EXPECT_THAT(Aligned(kMarked, kRunBaseNs), IsOkAndHolds(kMarked));
}

// Without a base times count from 1970.
TEST(KinetoAlignerTest, EpochTimesKeepTheirDigits) {
  EXPECT_THAT(Aligned(R"([{"ph":"X","ts":1700000000000123.457,"dur":1}])", 0),
              IsOkAndHolds(R"([{"ph":"X","ts":1700000000000118.457,"dur":1.000}])"));
}

TEST(KinetoAlignerTest, TimesThatCanNotBeMeantStay) {
  for (const char* text :
       {R"([{"ph":"X","ts":"soon","dur":1}])", R"([{"ph":"X","ts":-1e18,"dur":1}])",
        R"([{"ph":"X","dur":1}])", R"([{"ph":"X","ts":null}])"}) {
    EXPECT_THAT(Aligned(text, 0), IsOkAndHolds(text));
  }
  // A negative duration is left as it is.
  EXPECT_THAT(Aligned(R"([{"ph":"X","ts":1,"dur":-1}])", kRunBaseNs),
              IsOkAndHolds(R"([{"ph":"X","ts":-4.000,"dur":-1}])"));
}

TEST(KinetoAlignerTest, EventsFarOutsideTheOffsetsAreNamed) {
  AlignmentStats stats;
  EXPECT_OK(CheckExtrapolation(stats, "k.json", 0));
  ASSERT_OK(Aligned(R"([{"ph":"X","ts":61000000,"dur":1}])", kRunBaseNs, &stats).status());
  EXPECT_OK(CheckExtrapolation(stats, "k.json", 61'000'000'000));
  EXPECT_THAT(CheckExtrapolation(stats, "k.json", 1'000'000'000),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("k.json: an event lies 60000 ms outside")));
}

}  // namespace
}  // namespace meridian
