#include "workload_model/models/curve_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "Eigen/Dense"
#include "absl/strings/str_cat.h"
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

// Returns the solution of those rows and columns of g x = h; nullopt when these are singular.
std::optional<VectorXd> SolvePart(const MatrixXd& g, const VectorXd& h,
                                  const std::vector<Eigen::Index>& part) {
  const auto size = static_cast<Eigen::Index>(part.size());
  MatrixXd matrix(size, size);
  VectorXd right(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    right[i] = h[part[static_cast<size_t>(i)]];
    for (Eigen::Index j = 0; j < size; ++j) {
      matrix(i, j) = g(part[static_cast<size_t>(i)], part[static_cast<size_t>(j)]);
    }
  }
  const Eigen::LLT<MatrixXd> cholesky(matrix);
  if (cholesky.info() != Eigen::Success || cholesky.matrixLLT().diagonal().minCoeff() < 1e-6) {
    return std::nullopt;
  }
  return cholesky.solve(right);
}

// Goes towards the candidate as far as no free coefficient becomes negative; those that become 0 are
// not free any more. Returns whether it got there.
bool StepTowards(const VectorXd& candidate, VectorXd* solution, std::vector<Eigen::Index>* free) {
  double share = 1;
  for (size_t i = 0; i < free->size(); ++i) {
    const double old_value = (*solution)[(*free)[i]];
    const double new_value = candidate[static_cast<Eigen::Index>(i)];
    if (new_value <= 0 && old_value > new_value) {
      share = std::min(share, old_value / (old_value - new_value));
    }
  }
  for (size_t i = 0; i < free->size(); ++i) {
    double& value = (*solution)[(*free)[i]];
    value += share * (candidate[static_cast<Eigen::Index>(i)] - value);
  }
  if (share >= 1) return true;
  const auto is_zero = [&](Eigen::Index i) {
    if ((*solution)[i] > 1e-14) return false;
    (*solution)[i] = 0;
    return true;
  };
  free->erase(std::remove_if(free->begin(), free->end(), is_zero), free->end());
  return false;
}

// Solves min |W^0.5 (X b - z)| with b >= 0 as Lawson and Hanson do, on the normal equations scaled to
// a unit diagonal.
VectorXd NonNegativeLeastSquares(const MatrixXd& x, const VectorXd& z, const VectorXd& weights) {
  const Eigen::Index count = x.cols();
  MatrixXd g = x.transpose() * weights.asDiagonal() * x;
  VectorXd h = x.transpose() * weights.asDiagonal() * z;
  VectorXd scale(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    scale[i] = g(i, i) > 0 ? 1 / std::sqrt(g(i, i)) : 0;
  }
  g = scale.asDiagonal() * g * scale.asDiagonal();
  h = scale.asDiagonal() * h;
  VectorXd solution = VectorXd::Zero(count);
  std::vector<Eigen::Index> free;
  const double threshold = 1e-10 * h.cwiseAbs().maxCoeff();
  std::set<Eigen::Index> refused;
  for (int step = 0; step < 4 * count + 8; ++step) {
    const VectorXd gradient = h - g * solution;
    Eigen::Index enters = -1;
    for (Eigen::Index i = 0; i < count; ++i) {
      const bool is_free = std::find(free.begin(), free.end(), i) != free.end();
      if (is_free || refused.count(i) > 0 || gradient[i] <= threshold) continue;
      if (enters < 0 || gradient[i] > gradient[enters]) enters = i;
    }
    if (enters < 0) break;
    free.push_back(enters);
    while (!free.empty()) {
      const std::optional<VectorXd> candidate = SolvePart(g, h, free);
      if (!candidate.has_value()) {
        refused.insert(free.back());
        free.pop_back();
      } else if (StepTowards(*candidate, &solution, &free)) {
        break;
      }
    }
  }
  return scale.asDiagonal() * solution;
}

// How errors weigh.
enum class Loss {
  // log(predicted / measured), wild ones less.
  kLogarithmic,
  // predicted / measured - 1, all alike.
  kRelative,
};

// Fits the columns to the values, which are positive, by least squares that are weighted anew with
// each iteration.
VectorXd FitColumns(const MatrixXd& x, const VectorXd& y, Loss loss) {
  VectorXd fitted = y, coefficients = VectorXd::Zero(x.cols());
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    VectorXd target = y, weights(y.size());
    std::vector<double> distances;
    for (Eigen::Index i = 0; i < y.size(); ++i) {
      const double scale = loss == Loss::kRelative ? y[i] : fitted[i];
      weights[i] = 1 / (scale * scale);
      const double error = std::log(y[i] / fitted[i]);
      distances.push_back(std::abs(error));
      if (loss == Loss::kLogarithmic) {
        target[i] = fitted[i] * std::clamp(1 + error, 0.2, 3.0);
      }
    }
    if (loss == Loss::kLogarithmic && iteration > 0) {
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
               double least_value, Loss loss, const FitOptions& options) {
  Model model;
  model.set_type(std::string(kNormal));
  model.set_linear_size(options.linear_size);
  double least_size = std::numeric_limits<double>::max();
  for (const MeasuredPoint& point : points) {
    least_size = std::min(least_size, point.cell.size);
    model.set_most_u(std::max(model.most_u(), ShareOf(options.linear_size, point.cell)));
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
  const VectorXd coefficients = FitColumns(x.leftCols(kept), y, loss);
  for (Eigen::Index j = 0; j < coefficients.size(); ++j) {
    model.add_coefficients(coefficients[j] / largest[j]);
  }
  return model;
}

// Solves x b = y by least squares with Huber's loss; nullopt when the columns are not independent.
std::optional<VectorXd> FitRobustly(const MatrixXd& x, const VectorXd& y) {
  VectorXd weights = VectorXd::Ones(y.size()), coefficients;
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    const VectorXd roots = weights.cwiseSqrt();
    Eigen::ColPivHouseholderQR<MatrixXd> solver(roots.asDiagonal() * x);
    solver.setThreshold(1e-13);
    if (solver.rank() < x.cols()) return std::nullopt;
    coefficients = solver.solve(roots.asDiagonal() * y);
    const VectorXd errors = (x * coefficients - y).cwiseAbs();
    const double deviation = DeviationOf({errors.begin(), errors.end()});
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      weights[i] = std::min(1.0, kHuber * deviation / std::max(errors[i], kLeastValue));
    }
  }
  return coefficients;
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
                const FitOptions& options) {
  Model model = FitTerms(points, terms, kLeastValue, Loss::kLogarithmic, options);
  return model.terms_size() == 1 ? ConstantModel(model.coefficients(0)) : model;
}

Model FitCount(absl::Span<const MeasuredPoint> points, const FitOptions& options) {
  if (IsConstant(points) || points.size() < 4) return FitConstant(points);
  static const auto& terms =
      *new std::vector<std::string>{"1", "s - s0", "sqrt n - 1", "(sqrt n - 1)(s - s0)"};
  return FitTerms(points, terms, kZeroCount, Loss::kRelative, options);
}

std::optional<TripCount> FitTrips(absl::Span<const MeasuredPoint> points) {
  const auto says_all = [&](const Model& model, double tolerance) {
    return std::all_of(points.begin(), points.end(), [&](const MeasuredPoint& point) {
      return std::abs(EvaluateModel(model, point.cell) - point.value) < tolerance;
    });
  };
  if (const Model constant = ConstantModel(points[0].value); says_all(constant, kWhole)) {
    return TripCount{constant, ""};
  }
  // By how natural they are: whole numbers, or whole parts of n, with a whole number more; other exact
  // ones; rounded ones. Of those alike the one with the smallest numbers.
  std::map<std::pair<int, double>, std::vector<Model>> found;
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
      found[{is_natural ? 0 : 1, numbers}].push_back(model);
    } else if (term == "lg n" && values.size() > 2 && says_all(model, kSameTrips)) {
      found[{2, numbers}].push_back(model);
    }
  }
  if (found.empty()) return std::nullopt;
  // Others that are as natural say the same here, and something else elsewhere.
  const auto best = found.begin(), next = std::next(best);
  std::string also;
  if (best->second.size() > 1) {
    also = best->second[1].terms(1);
  } else if (next != found.end() && next->first.first == best->first.first) {
    also = next->second[0].terms(1);
  }
  return TripCount{best->second[0], also};
}

Model FitShare(absl::Span<const MeasuredShare> points) {
  double taken = 0, all = 0;
  for (const MeasuredShare& point : points) {
    taken += point.taken;
    all += point.all;
  }
  const Model constant = ConstantModel(all > 0 ? taken / all : 0);
  if (!(taken > 0) || taken >= all || points.size() < 3) return constant;
  const auto likelihood = [&](const Model& model) {
    double sum = 0;
    for (const MeasuredShare& point : points) {
      const double share = std::clamp(EvaluateModel(model, point.cell), 1e-9, 1 - 1e-9);
      sum += point.taken * std::log(share) + (point.all - point.taken) * std::log(1 - share);
    }
    return sum;
  };
  // Newton's steps, from the constant; a little weight on small coefficients keeps them finite where
  // the cells separate.
  constexpr double kRidge = 1e-3;
  VectorXd c = VectorXd::Zero(3);
  c[0] = std::log(taken / (all - taken));
  for (int step = 0; step < kMaxIterations; ++step) {
    MatrixXd hessian = kRidge * MatrixXd::Identity(3, 3);
    VectorXd gradient = -kRidge * c;
    for (const MeasuredShare& point : points) {
      const Eigen::Vector3d x(1, point.cell.size, std::log2(point.cell.machines));
      const double share = 1 / (1 + std::exp(-c.dot(x)));
      gradient += (point.taken - point.all * share) * x;
      hessian += point.all * share * (1 - share) * x * x.transpose();
    }
    c += hessian.ldlt().solve(gradient);
  }
  Model model;
  model.set_type(std::string(kLogistic));
  for (double coefficient : c) model.add_coefficients(coefficient);
  const double of_coefficients = std::log(all);
  const bool is_better =
      CheckModel(model).ok() && likelihood(model) > likelihood(constant) + of_coefficients;
  return is_better ? model : constant;
}

absl::StatusOr<Model> FitType(absl::Span<const MeasuredPoint> points, const std::string& type,
                              int order, const FitOptions& options) {
  if (type == kConstant) return FitConstant(points);
  if (type == kNormal) return FitNormal(points, AllTerms(), options);
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
  // Columns are scaled to at most 1: those of high powers span many decades.
  MatrixXd x(points.size(), powers.size());
  VectorXd y(points.size()), largest(powers.size());
  for (Eigen::Index j = 0; j < x.cols(); ++j) {
    const auto [size, machines] = powers[static_cast<size_t>(j)];
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const WorkloadCell& cell = points[static_cast<size_t>(i)].cell;
      x(i, j) = std::pow(cell.size, size) * std::pow(cell.machines, machines);
    }
    largest[j] = std::max(x.col(j).cwiseAbs().maxCoeff(), std::numeric_limits<double>::min());
    x.col(j) /= largest[j];
  }
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const double value = std::max(points[static_cast<size_t>(i)].value, kLeastValue);
    y[i] = type == kExponential ? std::log(value) : 1;
    // Relative errors: each row divided by what was measured.
    if (type != kExponential) x.row(i) /= value;
  }
  const std::optional<VectorXd> coefficients = FitRobustly(x, y);
  if (!coefficients.has_value()) {
    return InvalidArgument("the cells do not tell the coefficients of a model of type ", type,
                           " apart: it takes more numbers of nodes, or sizes");
  }
  for (Eigen::Index j = 0; j < x.cols(); ++j) {
    model.add_coefficients((*coefficients)[j] / largest[j]);
  }
  return model;
}

ChosenModel ChooseModel(absl::Span<const MeasuredPoint> points, const FitOptions& options) {
  const std::vector<Fold> folds = FoldsOf(points);
  if (folds.empty() || IsConstant(points)) {
    return {FitNormal(points, Ladder()[0], options), std::nullopt};
  }
  // What each form loses on each fold, forms from the simplest on.
  std::vector<std::vector<double>> losses;
  for (const std::vector<std::string>& terms : Ladder()) {
    // Two cells for a coefficient.
    if (terms.size() > 1 && 2 * terms.size() > points.size()) break;
    std::vector<double>& of_form = losses.emplace_back();
    for (const Fold& fold : folds) {
      of_form.push_back(FoldLoss(FitNormal(fold.fitted, terms, options), fold.left_out));
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
    if (mean <= error) {
      return {FitNormal(points, Ladder()[form], options), Mean(losses[form])};
    }
  }
  return {FitNormal(points, AllTerms(), options), std::nullopt};
}

double PowerOfKinds(absl::Span<const std::pair<CellKind, double>> values, const CellKind& asked) {
  const auto row = [](const CellKind& kind) {
    return Eigen::RowVector3d(1, std::log(static_cast<double>(kind.threads)),
                              std::log(static_cast<double>(kind.ranks_per_machine)));
  };
  MatrixXd x(values.size(), 3);
  VectorXd y(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    x.row(static_cast<Eigen::Index>(i)) = row(values[i].first);
    y[static_cast<Eigen::Index>(i)] = std::log(std::max(values[i].second, kLeastValue));
  }
  // The shortest solution: powers that nothing tells are 0.
  const VectorXd powers = x.completeOrthogonalDecomposition().solve(y);
  return std::exp(row(asked).dot(powers));
}

}  // namespace meridian
