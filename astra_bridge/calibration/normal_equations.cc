#include "astra_bridge/calibration/normal_equations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "xla_profiler/base/check.h"

namespace meridian {

NormalEquations::NormalEquations(size_t unknowns, double prior_deviation)
    : unknowns_(unknowns), matrix_(unknowns * unknowns), right_(unknowns) {
  for (size_t i = 0; i < unknowns; ++i) {
    matrix_[i * unknowns_ + i] = 1 / (prior_deviation * prior_deviation);
  }
}

void NormalEquations::Add(absl::Span<const double> row, double target, double weight) {
  MERIDIAN_CHECK(row.size() == unknowns_);
  for (size_t i = 0; i < unknowns_; ++i) {
    right_[i] += weight * row[i] * target;
    for (size_t j = 0; j < unknowns_; ++j) {
      matrix_[i * unknowns_ + j] += weight * row[i] * row[j];
    }
  }
}

void NormalEquations::Damp(double share) {
  for (size_t i = 0; i < unknowns_; ++i) matrix_[i * unknowns_ + i] *= 1 + share;
}

std::vector<double> NormalEquations::Factor() const {
  std::vector<double> factor(unknowns_ * unknowns_);
  for (size_t i = 0; i < unknowns_; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix_[i * unknowns_ + j];
      for (size_t k = 0; k < j; ++k) sum -= factor[i * unknowns_ + k] * factor[j * unknowns_ + k];
      if (i == j) {
        // The prior makes it positive; rounding may not leave it so.
        factor[i * unknowns_ + i] = std::sqrt(std::max(sum, 1e-12 * matrix_[i * unknowns_ + i]));
      } else {
        factor[i * unknowns_ + j] = sum / factor[j * unknowns_ + j];
      }
    }
  }
  return factor;
}

std::vector<double> NormalEquations::SolveFactored(const std::vector<double>& factor,
                                                   std::vector<double> right) const {
  for (size_t i = 0; i < unknowns_; ++i) {
    for (size_t k = 0; k < i; ++k) right[i] -= factor[i * unknowns_ + k] * right[k];
    right[i] /= factor[i * unknowns_ + i];
  }
  for (size_t i = unknowns_; i-- > 0;) {
    for (size_t k = i + 1; k < unknowns_; ++k) right[i] -= factor[k * unknowns_ + i] * right[k];
    right[i] /= factor[i * unknowns_ + i];
  }
  return right;
}

std::vector<double> NormalEquations::Solve() const { return SolveFactored(Factor(), right_); }

std::vector<double> NormalEquations::Deviations() const {
  const std::vector<double> factor = Factor();
  std::vector<double> deviations(unknowns_);
  for (size_t i = 0; i < unknowns_; ++i) {
    std::vector<double> unit(unknowns_);
    unit[i] = 1;
    deviations[i] = std::sqrt(SolveFactored(factor, std::move(unit))[i]);
  }
  return deviations;
}

}  // namespace meridian
