#include "xla_profiler/base/json/exact_decimal.h"

#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::optional<int64_t> Parse(absl::string_view number) {
  const std::optional<absl::int128> ps = ParseMicrosAsPicos(number);
  return ps.has_value() ? NarrowToInt64(*ps) : std::nullopt;
}

std::string Print(absl::int128 ps) {
  std::string out;
  AppendPicosAsMicros(ps, &out);
  return out;
}

TEST(ExactDecimalTest, ReadsFractionsOfAMicrosecond) {
  EXPECT_THAT(Parse("0"), Optional(0));
  EXPECT_THAT(Parse("-0"), Optional(0));
  EXPECT_THAT(Parse("0.000001"), Optional(1));
  EXPECT_THAT(Parse("1234567.123"), Optional(1234567123000));
  EXPECT_THAT(Parse("-1.5"), Optional(-1500000));
  EXPECT_THAT(Parse("68.0"), Optional(68000000));
}

TEST(ExactDecimalTest, ReadsEpochTimesThatNoDoubleHolds) {
  // 2^53 us is 9007199254740992; doubles there are a whole microsecond or more apart.
  EXPECT_THAT(ParseMicrosAsPicos("9007199254740993.123456"),
              Optional(Eq(absl::int128(9007199254740993123) * 1000 + 456)));
  EXPECT_THAT(ParseMicrosAsPicos("-1694039968933321.125"),
              Optional(Eq(absl::int128(-1694039968933321125) * 1000)));
}

TEST(ExactDecimalTest, ReadsExponents) {
  EXPECT_THAT(Parse("1e3"), Optional(1000000000));
  EXPECT_THAT(Parse("1.25E+2"), Optional(125000000));
  EXPECT_THAT(Parse("123456e-3"), Optional(123456000));
  EXPECT_THAT(Parse("0.0000001e1"), Optional(1));
  EXPECT_THAT(Parse("0e999999999999999999999999"), Optional(0));
  EXPECT_THAT(Parse("1e-999999999999999999999999"), Optional(0));
  // A thousand zeros that the exponent undoes.
  EXPECT_THAT(Parse(absl::StrCat("1", std::string(1000, '0'), "e-1000")), Optional(1000000));
  EXPECT_THAT(Parse(absl::StrCat("0.", std::string(1000, '0'), "1e1001")), Optional(1000000));
}

TEST(ExactDecimalTest, RoundsToTheNearestPicosecondAwayFromZero) {
  EXPECT_THAT(Parse("0.0000004"), Optional(0));
  EXPECT_THAT(Parse("0.00000049999999999999999999999999999999999999999"), Optional(0));
  EXPECT_THAT(Parse("0.0000005"), Optional(1));
  EXPECT_THAT(Parse("-0.0000005"), Optional(-1));
  EXPECT_THAT(Parse("0.00000005"), Optional(0));
  EXPECT_THAT(Parse("0.9999996"), Optional(1000000));
  EXPECT_THAT(Parse("1.0000015"), Optional(1000002));
}

TEST(ExactDecimalTest, RefusesWhatIsTooLarge) {
  EXPECT_THAT(Parse("9223372036854.775807"), Optional(kMax));
  EXPECT_THAT(Parse("-9223372036854.775808"), Optional(kMin));
  EXPECT_EQ(Parse("9223372036854.775808"), std::nullopt);
  EXPECT_EQ(Parse("-9223372036854.775809"), std::nullopt);
  // 24 + 6 digits are the most.
  EXPECT_TRUE(ParseMicrosAsPicos(std::string(24, '9')).has_value());
  EXPECT_EQ(ParseMicrosAsPicos(std::string(25, '9')), std::nullopt);
  EXPECT_EQ(ParseMicrosAsPicos("1e400"), std::nullopt);
  EXPECT_EQ(ParseMicrosAsPicos("1e999999999999999999999999"), std::nullopt);
}

TEST(ExactDecimalTest, RefusesWhatIsNoJsonNumber) {
  for (absl::string_view text :
       {"",   "-",   "+1",    "01",  "-01",      ".5",        "1.",   "1.e3",
        "1e", "1e+", "1e1.5", "NaN", "Infinity", "-Infinity", "0x10", "1_000",
        " 1", "1 ",  "1,5",   "--1", "1-",       "true",      "null"}) {
    EXPECT_EQ(ParseMicrosAsPicos(text), std::nullopt) << text;
  }
}

TEST(ExactDecimalTest, PrintsWithoutTrailingZeros) {
  EXPECT_EQ(Print(0), "0");
  EXPECT_EQ(Print(1), "0.000001");
  EXPECT_EQ(Print(-1500000), "-1.5");
  EXPECT_EQ(Print(1234567123000), "1234567.123");
  EXPECT_EQ(Print(10000000), "10");
  EXPECT_EQ(Print(kMax), "9223372036854.775807");
  EXPECT_EQ(Print(kMin), "-9223372036854.775808");
}

TEST(ExactDecimalTest, EveryNumberOfPicosecondsSurvivesARoundTrip) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200000; ++round) {
    // All magnitudes.
    const int64_t ps = static_cast<int64_t>(random()) >> (random() % 64);
    EXPECT_THAT(Parse(Print(ps)), Optional(ps));
  }
}

TEST(ExactDecimalTest, MovingThePointAndTheExponentAgainstEachOtherChangesNothing) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 20000; ++round) {
    const int64_t ps = static_cast<int64_t>(random() >> (1 + random() % 63));
    // ps written as an integer times 10^-6, and as 0.digits times 10^(number of digits - 6).
    const std::string digits = absl::StrCat(ps);
    EXPECT_THAT(Parse(absl::StrCat(digits, "e-6")), Optional(ps));
    EXPECT_THAT(Parse(absl::StrCat("-0.", digits, "e", static_cast<int>(digits.size()) - 6)),
                Optional(-ps));
  }
}

TEST(ExactDecimalTest, PrintsEpochTimesAsTheyWereRead) {
  for (absl::string_view number :
       {"1694039968933321.125", "-9007199254740993.123456", "1000000000000", "999999999999.5",
        "1000000000001", "123456789012345678901234.567891"}) {
    EXPECT_EQ(Print(*ParseMicrosAsPicos(number)), number);
  }
}

}  // namespace
}  // namespace meridian
