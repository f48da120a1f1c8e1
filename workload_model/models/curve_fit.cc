#include "workload_model/models/curve_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "Eigen/Dense"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMaxIterations = 25;
constexpr int kDampedFrom = 9;
constexpr double kSettled = 1e-6;
// Huber: errors beyond so many deviations count by their size, not by its square.
constexpr double kHuber = 1.345;
constexpr double kLeastDeviation = 0.02;
// What is 0 has no logarithm.
constexpr double kLeastValue = 1e-3;
// A count of 0 among others.
constexpr double kZeroCount = 0.5;
constexpr double kSingular = 1e-10;
// A model says a count of trips when it is that exactly, or to the nearest whole number.
constexpr double kWhole = 1e-6;
constexpr double kSameTrips = 0.499;

const std::vector<std::string>& AllTerms() {
  static const auto& terms = *new std::vector<std::string>{"1", "lg n", "u^0.5", "u", "u^1.5"};
  return terms;
}

const std::vector<std::vector<std::string>>& Ladder() {
  static const auto& ladder = *new std::vector<std::vector<std::string>>{
      {"1"},     {"1", "lg n"}, {"1", "u"}, {"1", "lg n", "u"}, {"1", "lg n", "u^0.5", "u"},
      AllTerms()};
  return ladder;
}

// Returns the standard deviation that distances from the truth mean, wild ones aside.
double DeviationOf(const std::vector<double>& distances) {
  return std::max(kLeastDeviation, kDeviationsPerMedianDistance * Median(distances));
}

// Solves min |W^0.5 (X b - z)| with b >= 0: the most negative coefficient is left out until there is
// none. Columns are of one scale.
VectorXd NonNegativeLeastSquares(const MatrixXd& x, const VectorXd& z, const VectorXd& weights) {
  const VectorXd roots = weights.cwiseSqrt();
  const MatrixXd weighted = roots.asDiagonal() * x;
  const VectorXd target = roots.asDiagonal() * z;
  std::vector<Eigen::Index> kept(static_cast<size_t>(x.cols()));
  std::iota(kept.begin(), kept.end(), 0);
  VectorXd solution = VectorXd::Zero(x.cols());
  while (!kept.empty()) {
    const MatrixXd part = weighted(Eigen::all, kept);
    const VectorXd coefficients = part.completeOrthogonalDecomposition().solve(target);
    Eigen::Index least = 0;
    if (coefficients.minCoeff(&least) >= 0) {
      solution(kept) = coefficients;
      break;
    }
    kept.erase(kept.begin() + least);
  }
  return solution;
}

// Fits the columns to the values, which are positive: log(predicted / measured) with Huber's loss, by
// least squares that are weighted anew with each iteration.
VectorXd FitColumns(const MatrixXd& x, const VectorXd& y) {
  VectorXd fitted = y, coefficients = VectorXd::Zero(x.cols());
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    VectorXd target(y.size()), weights(y.size());
    std::vector<double> distances;
    for (Eigen::Index i = 0; i < y.size(); ++i) {
      weights[i] = 1 / (fitted[i] * fitted[i]);
      const double error = std::log(y[i] / fitted[i]);
      distances.push_back(std::abs(error));
      target[i] = fitted[i] * std::clamp(1 + error, 0.2, 3.0);
    }
    if (iteration > 0) {
      const double deviation = DeviationOf(distances);
      for (Eigen::Index i = 0; i < y.size(); ++i) {
        const double distance = distances[static_cast<size_t>(i)];
        if (distance > kHuber * deviation) weights[i] *= kHuber * deviation / distance;
      }
    }
    coefficients = NonNegativeLeastSquares(x, target, weights);
    VectorXd next = x * coefficients;
    double change = 0;
    for (Eigen::Index i = 0; i < y.size(); ++i) {
      next[i] = std::max(next[i], kLeastValue * y[i]);
      if (iteration >= kDampedFrom) next[i] = (next[i] + fitted[i]) / 2;
      change = std::max(change, std::abs(next[i] / fitted[i] - 1));
    }
    fitted = next;
    if (change < kSettled) break;
  }
  return coefficients;
}

// Fits the terms that change from point to point, and the constant.
Model FitTerms(absl::Span<const MeasuredPoint> points, absl::Span<const std::string> terms,
               double least_value, bool linear_size) {
  Model model;
  model.set_type(std::string(kNormal));
  model.set_linear_size(linear_size);
  double least_size = std::numeric_limits<double>::max();
  for (const MeasuredPoint& point : points) {
    least_size = std::min(least_size, point.cell.size);
    model.set_most_u(std::max(model.most_u(), ShareOf(linear_size, point.cell)));
  }
  model.set_least_size(least_size);
  for (const std::string& term : terms) model.add_terms(term);
  MatrixXd x(points.size(), terms.size());
  VectorXd y(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const std::vector<double> values = NormalTerms(model, points[i].cell);
    for (size_t j = 0; j < values.size(); ++j) {
      x(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = values[j];
    }
    y[static_cast<Eigen::Index>(i)] = std::max(points[i].value, least_value);
  }
  VectorXd largest(terms.size());
  Eigen::Index kept = 0;
  model.clear_terms();
  for (Eigen::Index j = 0; j < x.cols(); ++j) {
    const std::string& term = terms[static_cast<size_t>(j)];
    const double most = x.col(j).maxCoeff(), least = x.col(j).minCoeff();
    // What is the same everywhere cannot be told from the constant.
    if (term != "1" && !(most - least > kSingular * std::abs(most))) continue;
    largest[kept] = std::max(most, std::numeric_limits<double>::min());
    x.col(kept) = x.col(j) / largest[kept];
    model.add_terms(term);
    ++kept;
  }
  const VectorXd coefficients = FitColumns(x.leftCols(kept), y);
  for (Eigen::Index j = 0; j < coefficients.size(); ++j) {
    model.add_coefficients(coefficients[j] / largest[j]);
  }
  return model;
}

bool IsConstant(absl::Span<const MeasuredPoint> points) {
  return std::all_of(points.begin(), points.end(),
                     [&](const MeasuredPoint& point) { return point.value == points[0].value; });
}

// Points that are fitted, and those that are left out meanwhile.
struct Fold {
  std::vector<MeasuredPoint> fitted;
  std::vector<MeasuredPoint> left_out;
};

std::vector<Fold> FoldsOf(absl::Span<const MeasuredPoint> points) {
  CellSet cells;
  for (const MeasuredPoint& point : points) cells.insert(point.cell);
  std::vector<Fold> folds;
  for (const CellSet& left : CellsToLeaveOut(cells, /*most_together=*/1)) {
    Fold& fold = folds.emplace_back();
    for (const MeasuredPoint& point : points) {
      (left.count(point.cell) > 0 ? fold.left_out : fold.fitted).push_back(point);
    }
  }
  return folds;
}

double FoldLoss(const Model& model, const std::vector<MeasuredPoint>& points) {
  double sum = 0;
  for (const MeasuredPoint& point : points) {
    const double predicted = std::max(EvaluateModel(model, point.cell), kLeastValue);
    sum += std::min(1.0, std::abs(std::log(predicted / std::max(point.value, kLeastValue))));
  }
  return sum / static_cast<double>(points.size());
}

}  // namespace

std::vector<CellSet> CellsToLeaveOut(const CellSet& cells, size_t most_together) {
  constexpr size_t kMaxGroups = 20;
  std::vector<CellSet> sets;
  for (double WorkloadCell::*key : {&WorkloadCell::machines, &WorkloadCell::size}) {
    std::set<double> values;
    for (const WorkloadCell& cell : cells) values.insert(cell.*key);
    if (values.size() < 2) continue;
    const size_t count = std::min(values.size(), kMaxGroups);
    std::map<double, size_t> groups;
    for (double value : values) {
      const size_t position = groups.size();
      groups[value] = position * count / values.size();
    }
    const auto leave_out = [&](size_t first, size_t last) {
      CellSet& set = sets.emplace_back();
      for (const WorkloadCell& cell : cells) {
        const size_t group = groups.at(cell.*key);
        if (group >= first && group <= last) set.insert(cell);
      }
    };
    for (size_t group = 0; group < count; ++group) leave_out(group, group);
    for (size_t largest = 2; largest <= most_together && largest + 2 <= count; ++largest) {
      leave_out(count - largest, count - 1);
    }
  }
  return sets;
}

Model FitConstant(absl::Span<const MeasuredPoint> points) {
  std::vector<double> values;
  for (const MeasuredPoint& point : points) values.push_back(point.value);
  return ConstantModel(Median(values));
}

Model FitNormal(absl::Span<const MeasuredPoint> points, absl::Span<const std::string> terms,
                bool linear_size) {
  Model model = FitTerms(points, terms, kLeastValue, linear_size);
  return model.terms_size() == 1 ? ConstantModel(model.coefficients(0)) : model;
}

Model FitCount(absl::Span<const MeasuredPoint> points, bool linear_size) {
  if (IsConstant(points) || points.size() < 4) return FitConstant(points);
  static const auto& terms =
      *new std::vector<std::string>{"1", "s - s0", "sqrt n - 1", "(sqrt n - 1)(s - s0)"};
  return FitTerms(points, terms, kZeroCount, linear_size);
}

std::optional<Model> FitTrips(absl::Span<const MeasuredPoint> points) {
  const auto says_all = [&](const Model& model, double tolerance) {
    return std::all_of(points.begin(), points.end(), [&](const MeasuredPoint& point) {
      return std::abs(EvaluateModel(model, point.cell) - point.value) < tolerance;
    });
  };
  if (const Model constant = ConstantModel(points[0].value); says_all(constant, kWhole)) {
    return constant;
  }
  // By how natural they are: whole numbers, or whole parts of n, with a whole number more; other exact
  // ones; rounded ones. Of those alike the one with the smallest numbers.
  std::map<std::pair<int, double>, Model> found;
  const auto is_whole = [](double number) {
    return std::abs(number - std::round(number)) < kWhole;
  };
  for (const absl::string_view term : {"sqrt n", "n", "lg n", "s"}) {
    Model model;
    model.set_type(std::string(kNormal));
    model.add_terms("1");
    model.add_terms(std::string(term));
    std::set<double> values;
    for (const MeasuredPoint& point : points) values.insert(NormalTerms(model, point.cell)[1]);
    const auto by_term = [&](const MeasuredPoint& a, const MeasuredPoint& b) {
      return NormalTerms(model, a.cell)[1] < NormalTerms(model, b.cell)[1];
    };
    if (values.size() < 2) continue;
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_term);
    double slope = (most->value - least->value) / (*values.rbegin() - *values.begin());
    double constant = least->value - slope * *values.begin();
    const bool is_natural =
        is_whole(constant) && (is_whole(slope) || (slope > 0 && is_whole(1 / slope)));
    if (is_whole(slope)) slope = std::round(slope);
    if (is_whole(constant)) constant = std::round(constant);
    model.add_coefficients(constant);
    model.add_coefficients(slope);
    const double numbers = std::round((std::abs(slope) + std::abs(constant)) / kWhole) * kWhole;
    if (says_all(model, kWhole)) {
      found.insert({{is_natural ? 0 : 1, numbers}, model});
    } else if (term == "lg n" && values.size() > 2 && says_all(model, kSameTrips)) {
      found.insert({{2, numbers}, model});
    }
  }
  if (found.empty()) return std::nullopt;
  return found.begin()->second;
}

absl::StatusOr<Model> FitType(absl::Span<const MeasuredPoint> points, const std::string& type,
                              int order, bool linear_size) {
  if (type == kConstant) return FitConstant(points);
  if (type == kNormal) return FitNormal(points, AllTerms(), linear_size);
  Model model;
  model.set_type(type);
  // The powers of size and machines in each term: n s, n, s and 1, or those of a polynomial.
  std::vector<std::pair<int, int>> powers = {{1, 1}, {0, 1}, {1, 0}, {0, 0}};
  if (type == kPolynomial) {
    powers.clear();
    for (int sum = 0; sum <= order; ++sum) {
      for (int machines = 0; machines <= sum; ++machines) {
        powers.push_back({sum - machines, machines});
        model.add_terms(absl::StrCat(sum - machines, ",", machines));
      }
    }
  } else if (type != kExponential && type != kBilinear) {
    return InvalidArgument("'", type, "' is no type that can be fitted");
  }
  if (points.size() < powers.size()) {
    return InvalidArgument("there are too few cells for a model of type ", type, ": ",
                           points.size(), " for ", powers.size(), " coefficients");
  }
  MatrixXd x(points.size(), powers.size());
  VectorXd y(points.size());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const MeasuredPoint& point = points[static_cast<size_t>(i)];
    const double value = std::max(point.value, kLeastValue);
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      const auto [size, machines] = powers[static_cast<size_t>(j)];
      x(i, j) = std::pow(point.cell.size, size) * std::pow(point.cell.machines, machines);
    }
    y[i] = type == kExponential ? std::log(value) : 1;
    // Relative errors: each row divided by what was measured.
    if (type != kExponential) x.row(i) /= value;
  }
  // Columns are scaled to at most 1: those of high powers span many decades.
  const VectorXd largest =
      x.colwise().maxCoeff().transpose().cwiseMax(std::numeric_limits<double>::min());
  x *= largest.cwiseInverse().asDiagonal();
  Eigen::ColPivHouseholderQR<MatrixXd> solver(x);
  solver.setThreshold(1e-13);
  if (solver.rank() < x.cols()) {
    return InvalidArgument("the cells do not tell the coefficients of a model of type ", type,
                           " apart: it takes more numbers of nodes, or sizes");
  }
  const VectorXd coefficients = solver.solve(y).cwiseQuotient(largest);
  for (double coefficient : coefficients) model.add_coefficients(coefficient);
  return model;
}

ChosenModel ChooseModel(absl::Span<const MeasuredPoint> points, bool linear_size) {
  const std::vector<Fold> folds = FoldsOf(points);
  if (folds.empty() || IsConstant(points)) {
    return {FitNormal(points, Ladder()[0], linear_size), std::nullopt};
  }
  // What each form loses on each fold, forms from the simplest on.
  std::vector<std::vector<double>> losses;
  for (const std::vector<std::string>& terms : Ladder()) {
    // Two cells for a coefficient.
    if (terms.size() > 1 && 2 * terms.size() > points.size()) break;
    std::vector<double>& of_form = losses.emplace_back();
    for (const Fold& fold : folds) {
      of_form.push_back(FoldLoss(FitNormal(fold.fitted, terms, linear_size), fold.left_out));
    }
  }
  const auto best = std::min_element(
      losses.begin(), losses.end(), [](const auto& a, const auto& b) { return Mean(a) < Mean(b); });
  for (size_t form = 0; form < losses.size(); ++form) {
    std::vector<double> excess;
    for (size_t fold = 0; fold < folds.size(); ++fold) {
      excess.push_back(losses[form][fold] - (*best)[fold]);
    }
    const double mean = Mean(excess);
    double squares = 0;
    for (double value : excess) squares += (value - mean) * (value - mean);
    const double count = static_cast<double>(folds.size());
    const double error = std::sqrt(squares / std::max(1.0, count - 1) / count);
    if (mean <= std::max(error, kSettled)) {
      return {FitNormal(points, Ladder()[form], linear_size), Mean(losses[form])};
    }
  }
  return {FitNormal(points, AllTerms(), linear_size), std::nullopt};
}

}  // namespace meridian
