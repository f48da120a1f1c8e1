#include "xla_profiler/base/normal_equations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {

CholeskyFactor::CholeskyFactor(std::vector<double> matrix, size_t n)
    : factor_(std::move(matrix)), n_(n) {
  for (size_t j = 0; j < n_; ++j) {
    for (size_t i = j; i < n_; ++i) {
      double sum = At(i, j);
      for (size_t k = 0; k < j; ++k) sum -= At(i, k) * At(j, k);
      // What is positive by definition may not be so once rounded.
      At(i, j) = i == j ? std::sqrt(std::max(sum, 1e-12 * At(i, i))) : sum / At(j, j);
    }
  }
}

std::vector<double> CholeskyFactor::Solve(std::vector<double> right) const {
  for (size_t i = 0; i < n_; ++i) {
    for (size_t k = 0; k < i; ++k) right[i] -= At(i, k) * right[k];
    right[i] /= At(i, i);
  }
  for (size_t i = n_; i-- > 0;) {
    for (size_t k = i + 1; k < n_; ++k) right[i] -= At(k, i) * right[k];
    right[i] /= At(i, i);
  }
  return right;
}

double CholeskyFactor::InverseDiagonal(size_t i) const {
  std::vector<double> unit(n_);
  unit[i] = 1;
  return Solve(std::move(unit))[i];
}

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

std::vector<double> NormalEquations::Solve() const {
  return CholeskyFactor(matrix_, unknowns_).Solve(right_);
}

std::vector<double> NormalEquations::Deviations() const {
  const CholeskyFactor factor(matrix_, unknowns_);
  std::vector<double> deviations;
  for (size_t i = 0; i < unknowns_; ++i) {
    deviations.push_back(std::sqrt(factor.InverseDiagonal(i)));
  }
  return deviations;
}

}  // namespace meridian
