#include "xla_profiler/base/json/exact_decimal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace meridian {
namespace {

// 1 us = 10^6 ps.
constexpr int kFractionDigits = 6;
constexpr int64_t kMaxResultDigits = 30;
// Digits beyond are dropped, which rounds as the whole number would; so many fit 128 bits.
constexpr int64_t kMaxReadDigits = 36;
// More than any text has digits, and far from where int64 sums overflow.
constexpr int64_t kExponentLimit = int64_t{1} << 56;

bool StartsWithDigit(absl::string_view text) {
  return !text.empty() && absl::ascii_isdigit(text.front());
}

absl::uint128 PowerOfTen(int64_t exponent) {
  absl::uint128 power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// What the digits of a JSON number say: value * 10^exponent.
struct Decimal {
  absl::uint128 value = 0;
  int64_t exponent = 0;
  // How many digits the value has.
  int64_t digits = 0;

  // Takes digits off the front of the text; false when there are none.
  bool Take(absl::string_view* text, bool is_fraction) {
    if (!StartsWithDigit(*text)) return false;
    for (; StartsWithDigit(*text); text->remove_prefix(1)) {
      const bool fits = digits < kMaxReadDigits;
      if (fits) value = value * 10 + static_cast<uint64_t>(text->front() - '0');
      if (fits && value != 0) ++digits;
      exponent += (fits ? 0 : 1) - (is_fraction ? 1 : 0);
    }
    return true;
  }

  // Takes what follows the "e".
  bool TakeExponent(absl::string_view* text) {
    const bool is_negative = absl::ConsumePrefix(text, "-");
    if (!is_negative) absl::ConsumePrefix(text, "+");
    if (!StartsWithDigit(*text)) return false;
    int64_t written = 0;
    for (; StartsWithDigit(*text); text->remove_prefix(1)) {
      written = std::min(written * 10 + (text->front() - '0'), kExponentLimit);
    }
    exponent += is_negative ? -written : written;
    return true;
  }
};

}  // namespace

// Follows the grammar of RFC 8259.
std::optional<absl::int128> ParseMicrosAsPicos(absl::string_view number) {
  const bool is_negative = absl::ConsumePrefix(&number, "-");
  if (absl::StartsWith(number, "0") && StartsWithDigit(number.substr(1))) return std::nullopt;
  Decimal decimal;
  decimal.exponent = kFractionDigits;
  if (!decimal.Take(&number, /*is_fraction=*/false)) return std::nullopt;
  if (absl::ConsumePrefix(&number, ".") && !decimal.Take(&number, /*is_fraction=*/true)) {
    return std::nullopt;
  }
  if (absl::ConsumePrefix(&number, "e") || absl::ConsumePrefix(&number, "E")) {
    if (!decimal.TakeExponent(&number)) return std::nullopt;
  }
  if (!number.empty()) return std::nullopt;
  const int64_t result_digits = decimal.digits + decimal.exponent;
  if (decimal.value == 0 || result_digits < 0) return 0;
  if (result_digits > kMaxResultDigits) return std::nullopt;
  absl::uint128 ps = decimal.value * PowerOfTen(decimal.exponent);
  if (decimal.exponent < 0) {
    const absl::uint128 divisor = PowerOfTen(-decimal.exponent);
    ps = decimal.value / divisor + (decimal.value % divisor >= divisor / 2 ? 1 : 0);
  }
  return is_negative ? -static_cast<absl::int128>(ps) : static_cast<absl::int128>(ps);
}

void AppendPicosAsMicros(absl::int128 ps, std::string* out) {
  if (ps < 0) out->push_back('-');
  // Unsigned: the smallest number has no positive counterpart.
  absl::uint128 magnitude = static_cast<absl::uint128>(ps);
  if (ps < 0) magnitude = -magnitude;
  uint64_t fraction = 0;
  if (absl::Uint128High64(magnitude) == 0) {
    const uint64_t word = absl::Uint128Low64(magnitude);
    absl::StrAppend(out, word / kPsPerUs);
    fraction = word % kPsPerUs;
  } else {
    // 30 digits of picoseconds are 24 of microseconds, more than a word holds.
    constexpr uint64_t kHalf = 1000000000000;
    const absl::uint128 micros = magnitude / kPsPerUs;
    const uint64_t high = absl::Uint128Low64(micros / kHalf);
    absl::StrAppend(out, high, absl::Dec(absl::Uint128Low64(micros % kHalf), absl::kZeroPad12));
    fraction = absl::Uint128Low64(magnitude % kPsPerUs);
  }
  if (fraction == 0) return;
  char digits[kFractionDigits];
  for (int i = kFractionDigits - 1; i >= 0; --i, fraction /= 10) digits[i] = '0' + fraction % 10;
  size_t size = kFractionDigits;
  while (digits[size - 1] == '0') --size;
  absl::StrAppend(out, ".", absl::string_view(digits, size));
}

}  // namespace meridian
