// SPDX-License-Identifier: Apache-2.0
// Weighted least squares with few unknowns:
//
//   minimise  sum_i weight_i * (target_i - row_i . x)^2  +  sum_p x_p^2 / prior_deviation^2
//
// The prior keeps the solution defined where the rows say nothing about an unknown; the unknown's
// deviation is then that of the prior, which is how one sees it.
#ifndef XLA_PROFILER_BASE_NORMAL_EQUATIONS_H_
#define XLA_PROFILER_BASE_NORMAL_EQUATIONS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// A symmetric positive definite matrix A, factored as L * L^T.
class CholeskyFactor {
 public:
  // The matrix has n x n elements, row by row.
  CholeskyFactor(std::vector<double> matrix, size_t n);

  // Returns x with A * x = right.
  std::vector<double> Solve(std::vector<double> right) const;
  // Returns the element of the inverse of A in row i and column i.
  double InverseDiagonal(size_t i) const;

 private:
  double& At(size_t i, size_t j) { return factor_[i * n_ + j]; }
  double At(size_t i, size_t j) const { return factor_[i * n_ + j]; }

  // L in the lower triangle, row by row; what is above it means nothing.
  std::vector<double> factor_;
  const size_t n_;
};

class NormalEquations {
 public:
  NormalEquations(size_t unknowns, double prior_deviation);

  // Adds a measurement. The row has one coefficient for each unknown.
  void Add(absl::Span<const double> row, double target, double weight);

  // Adds so many times the diagonal to itself: steps become shorter, towards the steepest descent.
  void Damp(double share);

  std::vector<double> Solve() const;

  // Returns the standard deviation of each unknown, weights being inverse variances of the targets.
  std::vector<double> Deviations() const;

 private:
  const size_t unknowns_;
  // The matrix of the normal equations, stored row by row.
  std::vector<double> matrix_;
  std::vector<double> right_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_NORMAL_EQUATIONS_H_
