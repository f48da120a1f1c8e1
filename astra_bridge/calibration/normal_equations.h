// Weighted least squares with few unknowns:
//
//   minimise  sum_i weight_i * (target_i - row_i . x)^2  +  sum_p x_p^2 / prior_deviation^2
//
// The prior keeps the solution defined where the rows say nothing about an unknown; the unknown's
// deviation is then that of the prior, which is how one sees it.
#ifndef ASTRA_BRIDGE_CALIBRATION_NORMAL_EQUATIONS_H_
#define ASTRA_BRIDGE_CALIBRATION_NORMAL_EQUATIONS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

class NormalEquations {
 public:
  NormalEquations(size_t unknowns, double prior_deviation);

  // As many coefficients as unknowns.
  void Add(absl::Span<const double> row, double target, double weight);

  // Adds so many times the diagonal to itself: steps become shorter, towards the steepest descent.
  void Damp(double share);

  std::vector<double> Solve() const;

  // Returns the standard deviation of each unknown, weights being inverse variances of the targets.
  std::vector<double> Deviations() const;

 private:
  // Lower triangle L with L * L^T = the matrix.
  std::vector<double> Factor() const;
  std::vector<double> SolveFactored(const std::vector<double>& factor,
                                    std::vector<double> right) const;

  const size_t unknowns_;
  // Row by row.
  std::vector<double> matrix_;
  std::vector<double> right_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_NORMAL_EQUATIONS_H_
