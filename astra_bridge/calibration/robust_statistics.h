// Statistics that one wild sample does not move.
#ifndef ASTRA_BRIDGE_CALIBRATION_ROBUST_STATISTICS_H_
#define ASTRA_BRIDGE_CALIBRATION_ROBUST_STATISTICS_H_

#include <vector>

#include "absl/types/span.h"

namespace meridian {

// Of at least one value, as are all below; of an even number the mean of the middle two.
double Median(std::vector<double> values);

// Returns the value below which the share lies, from 0 to 1, interpolated between neighbours.
double Quantile(std::vector<double> values, double share);

double Mean(absl::Span<const double> values);

// Returns the standard error of the median relative to it, from the middle half of the values: 0.93
// * interquartile range / sqrt(n), as for a normal distribution. Never below 2 %, which is what
// clocks and runs add; 30 % where fewer than four values say nothing about their spread.
double RelativeErrorOfMedian(const std::vector<double>& values);

// Returns how far the medians of the odd and the even values are apart, relative to the even's:
// what an error below it is no evidence of. 0 for fewer than two values.
double SplitHalfDifference(absl::Span<const double> values);

// Huber's weight of a residual in units of its standard deviation: 1 within the bound, so that the
// fit is least squares there; beyond it residuals count by their size, not by its square.
double HuberWeight(double standardised_residual, double bound);

// The loss that HuberWeight minimises.
double HuberLoss(double standardised_residual, double bound);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_ROBUST_STATISTICS_H_
