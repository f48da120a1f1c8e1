#include "xla_profiler/base/json/exact_decimal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

// 1 us = 10^6 ps.
constexpr int kFractionDigits = 6;
constexpr int64_t kMaxResultDigits = 30;
// More than any text has digits, and far from where int64 sums overflow.
constexpr int64_t kExponentLimit = int64_t{1} << 56;
// So many digits always fit a uint64.
constexpr size_t kDigitsPerWord = 19;

// A JSON number, cut into its parts.
struct NumberParts {
  bool negative = false;
  absl::string_view integer;
  absl::string_view fraction;
  int64_t exponent = 0;
};

absl::string_view TakeDigits(absl::string_view* text) {
  size_t size = 0;
  while (size < text->size() && absl::ascii_isdigit((*text)[size])) ++size;
  const absl::string_view digits = text->substr(0, size);
  text->remove_prefix(size);
  return digits;
}

bool TakeByte(char byte, absl::string_view* text) {
  if (text->empty() || text->front() != byte) return false;
  text->remove_prefix(1);
  return true;
}

bool TakeExponent(absl::string_view* text, int64_t* exponent) {
  const bool negative = TakeByte('-', text);
  if (!negative) TakeByte('+', text);
  const absl::string_view digits = TakeDigits(text);
  for (char digit : digits) {
    *exponent = std::min(*exponent * 10 + (digit - '0'), kExponentLimit);
  }
  if (negative) *exponent = -*exponent;
  return !digits.empty();
}

// Follows the grammar of RFC 8259.
bool CutNumber(absl::string_view text, NumberParts* parts) {
  parts->negative = TakeByte('-', &text);
  parts->integer = TakeDigits(&text);
  if (parts->integer.empty()) return false;
  if (parts->integer.size() > 1 && parts->integer.front() == '0') return false;
  if (TakeByte('.', &text)) {
    parts->fraction = TakeDigits(&text);
    if (parts->fraction.empty()) return false;
  }
  if (TakeByte('e', &text) || TakeByte('E', &text)) {
    if (!TakeExponent(&text, &parts->exponent)) return false;
  }
  return text.empty();
}

// The digits of integer and fraction as one row, without leading zeros.
class DigitRow {
 public:
  explicit DigitRow(const NumberParts& parts)
      : integer_(parts.integer),
        fraction_(parts.fraction),
        size_(integer_.size() + fraction_.size()) {
    while (leading_zeros_ < size_ && At(leading_zeros_) == '0') ++leading_zeros_;
  }

  size_t size() const { return size_ - leading_zeros_; }
  // How many of them stand before the decimal point; negative when zeros follow the point.
  int64_t before_point() const {
    return static_cast<int64_t>(integer_.size()) - static_cast<int64_t>(leading_zeros_);
  }
  int operator[](size_t i) const { return At(leading_zeros_ + i) - '0'; }

 private:
  char At(size_t i) const {
    return i < integer_.size() ? integer_[i] : fraction_[i - integer_.size()];
  }

  absl::string_view integer_;
  absl::string_view fraction_;
  size_t size_;
  size_t leading_zeros_ = 0;
};

// Returns the number that the first `count` digits make, with zeros appended where there are fewer.
absl::int128 LeadingDigits(const DigitRow& digits, int64_t count) {
  const int64_t available = std::min<int64_t>(count, digits.size());
  uint64_t head = 0;
  int64_t i = 0;
  for (; i < std::min<int64_t>(available, kDigitsPerWord); ++i) head = head * 10 + digits[i];
  absl::int128 value = head;
  for (; i < available; ++i) value = value * 10 + digits[i];
  for (; i < count; ++i) value *= 10;
  return value;
}

}  // namespace

std::optional<absl::int128> ParseMicrosAsPicos(absl::string_view number) {
  NumberParts parts;
  if (!CutNumber(number, &parts)) return std::nullopt;
  const DigitRow digits(parts);
  if (digits.size() == 0) return 0;
  // How many digits of the row make up the whole picoseconds; the rest is rounded away.
  const int64_t whole = digits.before_point() + parts.exponent + kFractionDigits;
  if (whole > kMaxResultDigits) return std::nullopt;
  if (whole < 0) return 0;
  absl::int128 ps = LeadingDigits(digits, whole);
  if (whole < static_cast<int64_t>(digits.size()) && digits[whole] >= 5) ps += 1;
  return parts.negative ? -ps : ps;
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
