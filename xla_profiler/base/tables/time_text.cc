#include "xla_profiler/base/tables/text_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// `digits`: how many powers of ten the unit is above a picosecond.
std::string Format(int64_t ps, int digits, int decimals) {
  MERIDIAN_CHECK(decimals >= 0 && decimals <= digits);
  // Unsigned: the smallest int64 has no positive counterpart.
  const uint64_t magnitude = ps < 0 ? uint64_t{0} - static_cast<uint64_t>(ps) : ps;
  uint64_t dropped = 1;
  for (int i = decimals; i < digits; ++i) dropped *= 10;
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const uint64_t rounded = magnitude / dropped + (magnitude % dropped >= dropped - dropped / 2);
  const char* const sign = ps < 0 && rounded > 0 ? "-" : "";
  if (decimals == 0) return absl::StrCat(sign, rounded);
  return absl::StrFormat("%s%d.%0*d", sign, rounded / scale, decimals, rounded % scale);
}

}  // namespace

std::string FormatMillis(int64_t ps, int decimals) { return Format(ps, 9, decimals); }

std::string FormatMicros(int64_t ps, int decimals) { return Format(ps, 6, decimals); }

}  // namespace meridian
