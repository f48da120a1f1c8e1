#include "astra_bridge/calibration/robust_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "xla_profiler/base/check.h"

namespace meridian {
namespace {

constexpr size_t kLeastForSpread = 4;
constexpr double kUnknownSpread = 0.3;
constexpr double kLeastError = 0.02;
// sqrt(pi / 2) standard deviations of a normal distribution, 0.7413 of which are its
// interquartile range.
constexpr double kErrorPerRange = 0.93;

}  // namespace

double Quantile(std::vector<double> values, double share) {
  MERIDIAN_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double Mean(absl::Span<const double> values) {
  MERIDIAN_CHECK(!values.empty());
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double RelativeErrorOfMedian(const std::vector<double>& values) {
  if (values.size() < kLeastForSpread) return kUnknownSpread;
  const double range = Quantile(values, 0.75) - Quantile(values, 0.25);
  const double error = kErrorPerRange * range / std::sqrt(static_cast<double>(values.size()));
  return std::max(kLeastError, error / Median(values));
}

double SplitHalfDifference(absl::Span<const double> values) {
  if (values.size() < 2) return 0;
  std::vector<double> halves[2];
  for (size_t i = 0; i < values.size(); ++i) halves[i % 2].push_back(values[i]);
  return std::abs(Median(halves[1]) / Median(halves[0]) - 1);
}

double HuberWeight(double standardised_residual, double bound) {
  const double size = std::abs(standardised_residual);
  return size <= bound ? 1 : bound / size;
}

double HuberLoss(double standardised_residual, double bound) {
  const double size = std::abs(standardised_residual);
  return size <= bound ? size * size / 2 : bound * (size - bound / 2);
}

}  // namespace meridian
