#include "workload_model/models.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr int kMaxPower = 8;
constexpr absl::string_view kNormalTermNames[] = {
    "1", "lg n",   "u^0.5", "u", "u^1.5", "s - s0", "sqrt n - 1", "(sqrt n - 1)(s - s0)",
    "n", "sqrt n", "s"};
// What an unsigned integer of 64 bits does not hold any more.
constexpr double kMaxEmber = 18446744073709551616.0;

// The powers of size and nodes of "x,y".
std::optional<std::pair<int, int>> PowersOf(const std::string& term) {
  const std::vector<std::string> parts = absl::StrSplit(term, ',');
  int size = 0, nodes = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &size) ||
      !absl::SimpleAtoi(parts[1], &nodes) || size < 0 || nodes < 0 || size > kMaxPower ||
      nodes > kMaxPower) {
    return std::nullopt;
  }
  return std::make_pair(size, nodes);
}

double ShareOf(const Model& model, const WorkloadCell& cell) {
  return (model.linear_size() ? cell.size : std::exp2(cell.size)) / cell.nodes;
}

double NormalTerm(absl::string_view term, const Model& model, const WorkloadCell& cell) {
  const double u = ShareOf(model, cell), beyond = cell.size - model.least_size();
  if (term == "lg n") return std::log2(cell.nodes);
  if (term == "u^0.5") return std::sqrt(u);
  if (term == "u") return u;
  if (term == "u^1.5") {
    const double most = model.most_u();
    if (most > 0 && u > most) return std::sqrt(most) * (most + 1.5 * (u - most));
    return std::sqrt(u) * u;
  }
  if (term == "s - s0") return beyond;
  if (term == "sqrt n - 1") return std::sqrt(cell.nodes) - 1;
  if (term == "(sqrt n - 1)(s - s0)") return (std::sqrt(cell.nodes) - 1) * beyond;
  if (term == "n") return cell.nodes;
  if (term == "sqrt n") return std::sqrt(cell.nodes);
  if (term == "s") return cell.size;
  return 1;
}

// What the formula says, in the order in which the motif adds; of a trace the mean.
double Formula(const Model& model, const WorkloadCell& cell) {
  const auto& c = model.coefficients();
  const double n = cell.nodes, s = cell.size;
  if (model.type() == kConstant) return c[0];
  if (model.type() == kExponential) return std::exp(c[0] * n * s + c[1] * n + c[2] * s + c[3]);
  if (model.type() == kBilinear) return c[0] * n * s + c[1] * n + c[2] * s + c[3];
  if (model.type() == kLogistic) {
    return 1 / (1 + std::exp(-(c[0] + c[1] * s + c[2] * std::log2(n))));
  }
  double sum = 0;
  if (model.type() == kPolynomial) {
    for (int i = 0; i < c.size(); ++i) {
      const std::pair<int, int> powers = *PowersOf(model.terms(i));
      sum += c[i] * std::pow(s, powers.first) * std::pow(n, powers.second);
    }
    return sum;
  }
  if (model.type() == kTrace) {
    for (double value : c) sum += value;
    return sum / c.size();
  }
  const std::vector<double> terms = NormalTerms(model, cell);
  for (int i = 0; i < c.size(); ++i) sum += c[i] * terms[static_cast<size_t>(i)];
  return sum;
}

}  // namespace

Model ConstantModel(double value) {
  Model model;
  model.set_type(std::string(kConstant));
  model.add_coefficients(value);
  return model;
}

absl::Status CheckModel(const Model& model) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model of type ", model.type(), " has ", what));
  };
  const int count = model.coefficients_size();
  for (double coefficient : model.coefficients()) {
    if (!std::isfinite(coefficient)) return wrong("a coefficient that is no finite number");
  }
  for (double number : {model.most_u(), model.least_size()}) {
    if (!std::isfinite(number)) return wrong("a bound that is no finite number");
  }
  const bool has_terms = model.type() == kPolynomial || model.type() == kNormal;
  if (has_terms && model.terms_size() != count) return wrong("not one coefficient for each term");
  if (!has_terms && model.terms_size() > 0) return wrong("terms, which only sums have");
  if (model.type() == kConstant) {
    return count == 1 ? absl::OkStatus() : wrong("not one coefficient");
  }
  if (model.type() == kExponential || model.type() == kBilinear) {
    return count == 4 ? absl::OkStatus() : wrong("not four coefficients");
  }
  if (model.type() == kLogistic) {
    return count == 3 ? absl::OkStatus() : wrong("not three coefficients");
  }
  if (model.type() == kTrace) return count > 0 ? absl::OkStatus() : wrong("no values");
  if (!has_terms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", model.type(), "' is no type of model; expected ", kConstant, ", ", kExponential, ", ",
        kBilinear, ", ", kPolynomial, ", ", kTrace, " or ", kNormal));
  }
  for (const std::string& term : model.terms()) {
    const bool is_known = model.type() == kPolynomial
                              ? PowersOf(term).has_value()
                              : std::find(std::begin(kNormalTermNames), std::end(kNormalTermNames),
                                          term) != std::end(kNormalTermNames);
    if (!is_known) return wrong(absl::StrCat("the unknown term '", term, "'"));
  }
  return absl::OkStatus();
}

std::vector<double> NormalTerms(const Model& model, const WorkloadCell& cell) {
  std::vector<double> values;
  for (const std::string& term : model.terms()) values.push_back(NormalTerm(term, model, cell));
  return values;
}

double EvaluateModel(const Model& model, const WorkloadCell& cell) {
  const double value = Formula(model, cell);
  // What is no number stays none.
  return value < 0 ? 0 : value;
}

absl::StatusOr<double> EmberModel::Next(const WorkloadCell& cell) {
  double value = 0;
  if (model_.type() == kTrace) {
    value = model_.coefficients(next_);
    next_ = (next_ + 1) % model_.coefficients_size();
  } else {
    value = Formula(model_, cell);
  }
  value *= scale_;
  if (model_.type() != kConstant) value = std::nearbyint(value);
  if (model_.type() == kPolynomial && value < 0) value = 0;
  if (value >= 0 && value < kMaxEmber) return value;
  return absl::OutOfRangeError(absl::StrCat("a model of type ", model_.type(), " is ", value,
                                            " for ", cell.nodes, " nodes and size ", cell.size,
                                            ", which the motif can not hold"));
}

}  // namespace meridian
