// SPDX-License-Identifier: Apache-2.0
// Means, medians and quantiles, of at least one value each.
#ifndef XLA_PROFILER_BASE_STATISTICS_H_
#define XLA_PROFILER_BASE_STATISTICS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// The standard deviation of a normal distribution is so many times the median distance from its
// median.
inline constexpr double kDeviationsPerMedianDistance = 1.4826;

double Mean(absl::Span<const double> values);

// Returns the value below which the share of all values lies, interpolated between neighbours. The
// share is from 0 to 1.
double Quantile(std::vector<double> values, double share);

// Returns the mean of the middle two for an even number of values.
double Median(std::vector<double> values);

// Returns the value in the middle, so one of the values themselves: of an even number the lower or
// the upper one of the middle two.
template <typename T>
T LowerMedian(std::vector<T> values) {
  const auto middle = values.begin() + (values.size() - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
template <typename T>
T UpperMedian(std::vector<T> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_STATISTICS_H_
