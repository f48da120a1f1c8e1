#include "report/quantities.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

struct Unit {
  double size;
  const char* name;
};

constexpr Unit kTimeUnits[] = {{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}};
constexpr Unit kByteUnits[] = {{1, "B"},
                               {1024.0, "KiB"},
                               {1024.0 * 1024, "MiB"},
                               {1024.0 * 1024 * 1024, "GiB"},
                               {1024.0 * 1024 * 1024 * 1024, "TiB"}};
// From here on digits behind the point are dropped.
constexpr double kWhole = 100;

// Three digits, all those before the point.
std::string Digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude < 9.995) return absl::StrFormat("%.2f", value);
  if (magnitude < 99.95) return absl::StrFormat("%.1f", value);
  return WithThousands(std::llround(std::clamp(value, -1e18, 1e18)));
}

// In the largest unit of which there is at least one, as shown.
std::string WithUnit(double value, absl::Span<const Unit> units) {
  size_t i = units.size() - 1;
  while (i > 0 && std::abs(value) < units[i].size * 0.9995) --i;
  const bool exact = i == 0 && value == std::floor(value);
  const std::string digits =
      exact ? WithThousands(static_cast<int64_t>(value)) : Digits(value / units[i].size);
  return absl::StrCat(digits, " ", units[i].name);
}

}  // namespace

std::string DurationText(double ns) { return WithUnit(ns, kTimeUnits); }

std::string SignedDurationText(double ns) {
  return absl::StrCat(ns > 0 ? "+" : "", DurationText(ns));
}

std::string BytesText(int64_t bytes) { return WithUnit(static_cast<double>(bytes), kByteUnits); }

std::string PpmText(double ppm) {
  return absl::StrCat(ppm > 0 ? "+" : "",
                      std::abs(ppm) < kWhole ? absl::StrFormat("%.2f", ppm) : Digits(ppm), " ppm");
}

std::string ShareText(double part, double whole) {
  const double percent = 100 * part / whole;
  return absl::StrFormat(percent > 0 && percent < 0.95 ? "%.1f %%" : "%.0f %%", percent);
}

std::string RangesText(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", numbers[i]);
    if (last > i) absl::StrAppend(&text, last == i + 1 ? ", " : "-", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace meridian
