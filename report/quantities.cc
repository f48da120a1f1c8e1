#include "report/quantities.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Units and how many nanoseconds they have, the largest first.
constexpr std::pair<double, const char*> kUnits[] = {
    {1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};

// Returns three digits, and all those before the point.
std::string Digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude < 9.995) return absl::StrFormat("%.2f", value);
  if (magnitude < 99.95) return absl::StrFormat("%.1f", value);
  return WithThousands(std::llround(std::clamp(value, -1e18, 1e18)));
}

}  // namespace

std::string DurationText(double ns) {
  for (const auto& [size, unit] : kUnits) {
    // After rounding there must be at least one of the unit.
    if (std::abs(ns) < size * 0.9995) continue;
    const bool is_whole = size == 1 && ns == std::floor(ns);
    return absl::StrCat(is_whole ? WithThousands(std::llround(ns)) : Digits(ns / size), " ", unit);
  }
  return absl::StrCat(ns == 0 ? "0" : Digits(ns), " ns");
}

std::string PercentText(double share) {
  if (share > 0 && share < 0.0005) return "under 0.1 %";
  return absl::StrFormat(share > 0 && share < 0.095 ? "%.1f %%" : "%.0f %%", 100 * share);
}

}  // namespace meridian
