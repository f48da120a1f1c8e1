#include "astra_bridge/calibration/size_ranges.h"

#include <algorithm>
#include <cmath>

namespace meridian {
namespace {

double LogOf(int64_t bytes) { return std::log(static_cast<double>(bytes)); }

}  // namespace

SizeRanges::SizeRanges(int64_t first, int64_t last, size_t count)
    : log_first_(LogOf(first)),
      ranges_per_log_(static_cast<double>(count) / (LogOf(last) - LogOf(first))),
      count_(count) {}

size_t SizeRanges::RangeOf(int64_t bytes) const {
  return std::min(static_cast<size_t>((LogOf(bytes) - log_first_) * ranges_per_log_), count_ - 1);
}

}  // namespace meridian
