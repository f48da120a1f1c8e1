#include "xla_profiler/base/statistics.h"

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
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

}  // namespace meridian
