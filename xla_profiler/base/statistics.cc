#include "xla_profiler/base/statistics.h"

#include <cmath>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {

double Mean(absl::Span<const double> values) {
  MERIDIAN_CHECK(!values.empty());
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Quantile(std::vector<double> values, double share) {
  MERIDIAN_CHECK(!values.empty());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<ptrdiff_t>(position);
  std::nth_element(values.begin(), below, values.end());
  const double between = position - std::floor(position);
  if (between == 0) return *below;
  return *below + between * (*std::min_element(below + 1, values.end()) - *below);
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

}  // namespace meridian
