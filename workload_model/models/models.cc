#include "workload_model/models/models.h"

#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int kMaxPower = 8;
// What an unsigned integer of 64 bits does not hold any more.
constexpr double kMaxEmber = 18446744073709551616.0;

// Returns the powers of size and machines of "x,y"; nullopt for other texts.
std::optional<std::pair<int, int>> PowersOf(const std::string& term) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(term, absl::MaxSplits(',', 1));
  int size = 0, machines = 0;
  if (!absl::SimpleAtoi(parts.first, &size) || !absl::SimpleAtoi(parts.second, &machines) ||
      std::min(size, machines) < 0 || std::max(size, machines) > kMaxPower) {
    return std::nullopt;
  }
  return std::make_pair(size, machines);
}

using TermValue = double (*)(const Model& model, const WorkloadCell& cell);

double AboveLeastSize(const Model& m, const WorkloadCell& c) { return c.size - m.least_size(); }

// Beyond the largest share that was fitted, the tangent.
double PowerOfShare(const Model& model, const WorkloadCell& cell) {
  const double u = ShareOf(model.linear_size(), cell), most = model.most_u();
  if (most > 0 && u > most) return std::sqrt(most) * (most + 1.5 * (u - most));
  return std::sqrt(u) * u;
}

// The terms of normal forms by name.
const std::map<absl::string_view, TermValue>& NormalTermValues() {
  using M = const Model&;
  using C = const WorkloadCell&;
  static const auto& values = *new std::map<absl::string_view, TermValue>{
      {"1", [](M, C) { return 1.0; }},
      {"lg n", [](M, C c) { return std::log2(c.machines); }},
      {"u^0.5", [](M m, C c) { return std::sqrt(ShareOf(m.linear_size(), c)); }},
      {"u", [](M m, C c) { return ShareOf(m.linear_size(), c); }},
      {"u^1.5", PowerOfShare},
      {"s - s0", AboveLeastSize},
      {"sqrt n - 1", [](M, C c) { return std::sqrt(c.machines) - 1; }},
      {"(sqrt n - 1)(s - s0)",
       [](M m, C c) { return (std::sqrt(c.machines) - 1) * AboveLeastSize(m, c); }},
      {"n", [](M, C c) { return c.machines; }},
      {"sqrt n", [](M, C c) { return std::sqrt(c.machines); }},
      {"s", [](M, C c) { return c.size; }}};
  return values;
}

// What the formula says, in the order in which the motif adds; of a trace the mean.
double Formula(const Model& model, const WorkloadCell& cell) {
  const auto& c = model.coefficients();
  const double n = cell.machines, s = cell.size;
  if (model.type() == kConstant) return c[0];
  if (model.type() == kExponential) return std::exp(c[0] * n * s + c[1] * n + c[2] * s + c[3]);
  if (model.type() == kBilinear) return c[0] * n * s + c[1] * n + c[2] * s + c[3];
  if (model.type() == kTrace) return std::accumulate(c.begin(), c.end(), 0.0) / c.size();
  double sum = 0;
  if (model.type() == kPolynomial) {
    for (int i = 0; i < c.size(); ++i) {
      const auto [size, machines] = *PowersOf(model.terms(i));
      sum += c[i] * std::pow(s, size) * std::pow(n, machines);
    }
    return sum;
  }
  const std::vector<double> terms = NormalTerms(model, cell);
  return std::inner_product(c.begin(), c.end(), terms.begin(), 0.0);
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
    return InvalidArgument("a model of type ", model.type(), " has ", what);
  };
  for (double coefficient : model.coefficients()) {
    if (!std::isfinite(coefficient)) return wrong("a coefficient that is no finite number");
  }
  if (!std::isfinite(model.most_u()) || !std::isfinite(model.least_size())) {
    return wrong("a bound that is no finite number");
  }
  const int count = model.coefficients_size();
  if (model.type() == kPolynomial || model.type() == kNormal) {
    if (model.terms_size() != count) return wrong("not one coefficient for each term");
    for (const std::string& term : model.terms()) {
      const bool is_known = model.type() == kPolynomial ? PowersOf(term).has_value()
                                                        : NormalTermValues().count(term) > 0;
      if (!is_known) return wrong(absl::StrCat("the unknown term '", term, "'"));
    }
    return absl::OkStatus();
  }
  if (model.terms_size() > 0) return wrong("terms, which only sums have");
  if (model.type() == kTrace) return count > 0 ? absl::OkStatus() : wrong("no values");
  for (const auto& [type, expected] :
       {std::make_pair(kConstant, 1), {kExponential, 4}, {kBilinear, 4}}) {
    if (model.type() != type) continue;
    if (count == expected) return absl::OkStatus();
    return wrong(absl::StrCat(count, " coefficients, not ", expected));
  }
  return InvalidArgument("'", model.type(), "' is no type of model; expected ", kConstant, ", ",
                         kExponential, ", ", kBilinear, ", ", kPolynomial, ", ", kTrace, " or ",
                         kNormal);
}

double ShareOf(bool linear_size, const WorkloadCell& cell) {
  return (linear_size ? cell.size : std::exp2(cell.size)) / cell.machines;
}

std::vector<double> NormalTerms(const Model& model, const WorkloadCell& cell) {
  std::vector<double> values;
  for (const std::string& term : model.terms()) {
    values.push_back(NormalTermValues().at(term)(model, cell));
  }
  return values;
}

double EvaluateModel(const Model& model, const WorkloadCell& cell) {
  const double value = Formula(model, cell);
  // What is no number stays none.
  return value < 0 ? 0 : value;
}

std::string PlainNumber(double number) {
  if (number == std::trunc(number) && std::abs(number) <= kMaxSize) {
    return WithThousands(static_cast<int64_t>(number));
  }
  return absl::StrFormat("%.15g", number);
}

std::string NodesText(double machines) {
  return absl::StrCat(PlainNumber(machines), machines == 1 ? " node" : " nodes");
}

absl::StatusOr<double> EmberValue(const Model& model, double scale, const WorkloadCell& cell) {
  double value = model.type() == kTrace ? model.coefficients(0) : Formula(model, cell);
  value *= scale;
  if (model.type() != kConstant) value = std::nearbyint(value);
  if (model.type() == kPolynomial && value < 0) value = 0;
  if (value >= 0 && value < kMaxEmber) return value;
  return absl::OutOfRangeError(absl::StrCat(
      "a model of type ", model.type(), " is ", value, " for ", NodesText(cell.machines),
      " and size ", PlainNumber(cell.size), ", which the motif cannot hold"));
}

}  // namespace meridian
