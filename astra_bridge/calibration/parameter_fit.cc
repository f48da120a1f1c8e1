#include "astra_bridge/calibration/parameter_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/normal_equations.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Beyond this standard deviation of a parameter's logarithm it is not identifiable: its interval
// would span more than a factor of two either way.
constexpr double kMaxLogDeviation = 0.35;
constexpr double kFirstModelDeviation = 0.3;
constexpr double kLeastModelDeviation = 0.05;

// The share of a cost by which it is changed for its derivative: enough to show beside rounding to
// nanoseconds.
constexpr double kStep = 0.05;
// A delay is in whole nanoseconds, so it is changed by at least this.
constexpr double kLeastDelayStepNs = 1000;

constexpr int kMaxSteps = 60;
constexpr int kMaxDampings = 12;
constexpr int kScaleRounds = 3;
constexpr double kMaxLogStep = 2;
constexpr double kDoneBelow = 1e-5;
// Steps that gain less than this share of the loss are the last: along what cells do not tell,
// steps are long and gain nothing.
constexpr double kLeastGain = 1e-6;

// No network that is built lies beyond these.
constexpr double kMinValue = 1e-3;
constexpr double kMaxValue = 1e9;

constexpr double kHuberBound = 1.345;
// Deviation of the logarithms of parameters where nothing else speaks for them.
constexpr double kPriorLogDeviation = 10;

constexpr int kDraws = 400;
constexpr int kReweightings = 6;
// 95 % of the draws lie between this share and one less it.
constexpr double kDrawTail = 0.025;

constexpr double kMaxResidual = 2;
constexpr double kMaxCorrelation = 0.9;

constexpr double kInside = 0.95;
// Student's quantile of this share with all freedom.
constexpr double kNormalQuantile95 = 1.959964;
constexpr double kHalfPi = 1.5707963267948966;
// How many pieces the density is summed in.
constexpr size_t kPieces = 4000;
// From here on it is the normal quantile plus the first term of the expansion in 1 / freedom.
constexpr double kNearlyNormal = 500;

// Numbers indexed by cell, then by parameter.
using Matrix = std::vector<std::vector<double>>;

// Huber's weight of a residual in units of its standard deviation: within the bound the fit is
// least squares; beyond it residuals count by their size, not by its square.
double HuberWeight(double standardised_residual) {
  const double size = std::abs(standardised_residual);
  return size <= kHuberBound ? 1 : kHuberBound / size;
}

// The loss that HuberWeight minimises.
double HuberLoss(double standardised_residual) {
  const double size = std::abs(standardised_residual);
  return size <= kHuberBound ? size * size / 2 : kHuberBound * (size - kHuberBound / 2);
}

// The positions of cells that differ only in bytes, by bytes.
using SizeSeries = std::map<int64_t, size_t>;

std::map<CellKey, SizeSeries> FindSizeSeries(absl::Span<const TransferCell> cells) {
  std::map<CellKey, SizeSeries> found;
  for (size_t i = 0; i < cells.size(); ++i) {
    CellKey key = KeyOf(cells[i]);
    std::get<int64_t>(key) = 0;
    found[std::move(key)][cells[i].bytes] = i;
  }
  return found;
}

// Leaves out cells whose sizes are too near the next smaller one of the same kind and group.
std::vector<TransferCell> ThinSizes(absl::Span<const TransferCell> cells) {
  std::set<size_t> taken;
  for (const auto& [key, series] : FindSizeSeries(cells)) {
    double next_bytes = 0;
    for (const auto& [bytes, position] : series) {
      if (static_cast<double>(bytes) < next_bytes) continue;
      taken.insert(position);
      next_bytes = kSameSizeFactor * static_cast<double>(bytes);
    }
  }
  std::vector<TransferCell> result;
  for (size_t i : taken) result.push_back(cells[i]);
  return result;
}

// Returns what a parameter makes times grow with, in proportion: latency and delay, or time per
// byte. It is its own inverse.
double CostOf(const EngineParameter& parameter, double value) {
  return parameter.kind == EngineParameter::Kind::kBandwidth ? 1 / value : value;
}

double ResidualOf(const TransferCell& cell, double engine_ns) {
  return std::log(cell.median_ns / engine_ns);
}

// Returns the standard deviation of a residual.
double DeviationOf(const TransferCell& cell, double model_deviation) {
  return std::hypot(cell.relative_error, model_deviation);
}

// Returns the equations of how the logarithms of the parameters are to change so that these cells,
// given by their positions, fit best, with the weights that residuals have after a first change.
NormalEquations EquationsOf(const ParameterFit& fit, const std::vector<size_t>& cells,
                            const std::vector<double>& change) {
  NormalEquations equations(change.size(), kPriorLogDeviation);
  for (size_t cell : cells) {
    const std::vector<double>& row = fit.sensitivities[cell];
    const double residual = ResidualOf(fit.cells[cell], fit.engine_ns[cell]);
    const double deviation = DeviationOf(fit.cells[cell], fit.model_deviation);
    double left = residual;
    for (size_t p = 0; p < row.size(); ++p) left -= row[p] * change[p];
    equations.Add(row, residual, HuberWeight(left / deviation) / (deviation * deviation));
  }
  return equations;
}

class Fitter {
 public:
  Fitter(const Fabric& given, absl::Span<const TransferCell> cells) : given_(given) {
    fit_.cells = ThinSizes(cells);
    for (const EngineParameter& parameter : ParametersOf(given)) {
      fit_.parameters.emplace_back().parameter = parameter;
    }
    for (const TransferCell& cell : cells) kinds_.insert(cell.kind);
  }

  absl::StatusOr<ParameterFit> Fit() {
    delay().kept = true;
    RETURN_IF_ERROR(FitTold());
    ASSIGN_OR_RETURN(const bool delay_may_be_told, DelayMayBeTold());
    if (delay_may_be_told) {
      for (FittedParameter& fitted : fit_.parameters) fitted.kept = false;
      RETURN_IF_ERROR(FitTold());
    }
    RETURN_IF_ERROR(JudgeFitted());
    ASSIGN_OR_RETURN(fit_.sensitivities, SensitivitiesTo(FittedCosts()));
    for (FittedParameter& fitted : fit_.parameters) {
      fitted.value = ParameterValue(fit_.fabric, fitted.parameter);
    }
    return std::move(fit_);
  }

 private:
  // The endpoint delay is the last of the parameters.
  FittedParameter& delay() { return fit_.parameters.back(); }

  size_t CountFitted() const {
    return std::count_if(fit_.parameters.begin(), fit_.parameters.end(),
                         [](const FittedParameter& fitted) { return !fitted.kept; });
  }

  absl::Status FitTold() {
    for (bool given_up = true; given_up;) {
      RETURN_IF_ERROR(FitAll());
      ASSIGN_OR_RETURN(given_up, GiveUpUntold());
    }
    return absl::OkStatus();
  }

  // Fits what is not kept from the start, since parameters that are not told may have led the
  // others astray.
  absl::Status FitAll() {
    fit_.fabric = WithAssumedParameters(given_);
    for (const FittedParameter& fitted : fit_.parameters) {
      if (!fitted.kept) continue;
      SetParameterValue(fitted.parameter, ParameterValue(given_, fitted.parameter), &fit_.fabric);
    }
    fit_.model_deviation = kFirstModelDeviation;
    ASSIGN_OR_RETURN(fit_.engine_ns, EngineTimesNs(fit_.fabric, fit_.cells));
    for (int round = 0; round < kScaleRounds; ++round) {
      RETURN_IF_ERROR(Descend());
      fit_.model_deviation = ResidualDeviation();
    }
    return absl::OkStatus();
  }

  // Returns the residuals of the cells with these engine times, in units of their deviations.
  std::vector<double> StandardisedResiduals(const std::vector<double>& engine_ns) const {
    std::vector<double> residuals;
    for (size_t i = 0; i < fit_.cells.size(); ++i) {
      residuals.push_back(ResidualOf(fit_.cells[i], engine_ns[i]) /
                          DeviationOf(fit_.cells[i], fit_.model_deviation));
    }
    return residuals;
  }

  double Loss(const std::vector<double>& engine_ns) const {
    double loss = 0;
    for (double residual : StandardisedResiduals(engine_ns)) loss += HuberLoss(residual);
    return loss;
  }

  double ResidualDeviation() const {
    std::vector<double> sizes;
    for (size_t i = 0; i < fit_.cells.size(); ++i) {
      sizes.push_back(std::abs(ResidualOf(fit_.cells[i], fit_.engine_ns[i])));
    }
    return std::max(kLeastModelDeviation, kDeviationsPerMedianDistance * Median(std::move(sizes)));
  }

  // Steps down until steps or gains are negligible.
  absl::Status Descend() {
    std::vector<size_t> all_cells(fit_.cells.size());
    std::iota(all_cells.begin(), all_cells.end(), 0);
    double damping = 1e-3;
    for (int step = 0; step < kMaxSteps && CountFitted() > 0; ++step) {
      ASSIGN_OR_RETURN(fit_.sensitivities, SensitivitiesTo(FittedCosts()));
      const double loss = Loss(fit_.engine_ns);
      double gain = 0, step_size = 0;
      for (int tries = 0; tries < kMaxDampings && gain <= 0; ++tries) {
        NormalEquations equations =
            EquationsOf(fit_, all_cells, std::vector<double>(fit_.parameters.size()));
        equations.Damp(damping);
        Fabric candidate = Moved(equations.Solve(), &step_size);
        ASSIGN_OR_RETURN(std::vector<double> engine_ns, EngineTimesNs(candidate, fit_.cells));
        gain = loss - Loss(engine_ns);
        damping = gain > 0 ? std::max(damping / 10, 1e-9) : damping * 10;
        if (gain <= 0) continue;
        fit_.fabric = std::move(candidate);
        fit_.engine_ns = std::move(engine_ns);
      }
      if (gain <= kLeastGain * loss || step_size < kDoneBelow) break;
    }
    return absl::OkStatus();
  }

  Fabric Moved(const std::vector<double>& change, double* step_size) const {
    Fabric moved = fit_.fabric;
    *step_size = 0;
    for (size_t p = 0; p < change.size(); ++p) {
      if (fit_.parameters[p].kept) continue;
      const EngineParameter& parameter = fit_.parameters[p].parameter;
      const double bounded = std::clamp(change[p], -kMaxLogStep, kMaxLogStep);
      const double value = ParameterValue(fit_.fabric, parameter) * std::exp(bounded);
      SetParameterValue(parameter, std::clamp(value, kMinValue, kMaxValue), &moved);
      *step_size = std::max(*step_size, std::abs(bounded));
    }
    return moved;
  }

  // Returns d log(time) / d log(parameter), by cell and parameter, where changes of a parameter's
  // cost are in units of its scale; 0 where that is 0. With costs as scales it is what it says.
  absl::StatusOr<Matrix> SensitivitiesTo(const std::vector<double>& scales) const {
    Matrix sensitivities(fit_.cells.size(), std::vector<double>(scales.size()));
    for (size_t p = 0; p < scales.size(); ++p) {
      if (scales[p] == 0) continue;
      const EngineParameter& parameter = fit_.parameters[p].parameter;
      double step = kStep * scales[p];
      if (parameter.kind == EngineParameter::Kind::kEndpointDelay) {
        step = std::max(step, kLeastDelayStepNs);
      }
      Fabric fabric = fit_.fabric;
      SetParameterValue(parameter, CostOf(parameter, Cost(parameter) + step), &fabric);
      ASSIGN_OR_RETURN(const std::vector<double> engine_ns, EngineTimesNs(fabric, fit_.cells));
      const double sign = parameter.kind == EngineParameter::Kind::kBandwidth ? -1 : 1;
      for (size_t i = 0; i < fit_.cells.size(); ++i) {
        const double base_ns = fit_.engine_ns[i];
        sensitivities[i][p] = sign * (engine_ns[i] - base_ns) / base_ns * scales[p] / step;
      }
    }
    return sensitivities;
  }

  double Cost(const EngineParameter& parameter) const {
    return CostOf(parameter, ParameterValue(fit_.fabric, parameter));
  }

  double LargestFittedCost(EngineParameter::Kind kind) const {
    double largest = 0;
    for (const FittedParameter& fitted : fit_.parameters) {
      if (fitted.kept || fitted.parameter.kind != kind) continue;
      largest = std::max(largest, Cost(fitted.parameter));
    }
    return largest;
  }

  // Returns the costs of the parameters, 0 for those that are kept.
  std::vector<double> FittedCosts() const {
    std::vector<double> costs;
    for (const FittedParameter& fitted : fit_.parameters) {
      costs.push_back(fitted.kept ? 0 : Cost(fitted.parameter));
    }
    return costs;
  }

  // Returns the units that the parameters' uncertainties are counted in: their own costs, or the
  // largest fitted one of its sort for one that is kept. A kept endpoint delay is known.
  std::vector<double> Scales() const {
    std::vector<double> scales = FittedCosts();
    for (size_t p = 0; p + 1 < scales.size(); ++p) {
      const EngineParameter& parameter = fit_.parameters[p].parameter;
      if (!fit_.parameters[p].kept) continue;
      scales[p] = std::max(Cost(parameter), LargestFittedCost(parameter.kind));
    }
    return scales;
  }

  // Returns the deviations of all parameters in units of the scales, not widened, beside an unknown
  // efficiency of every kind, where the last kind's is what makes their sum zero, and if asked for
  // an unknown overhead of every kind. What is kept is not certain, either: what can only be told
  // once something else is known has not been told.
  absl::StatusOr<std::vector<double>> Deviations(const std::vector<double>& scales,
                                                 bool overheads) const {
    ASSIGN_OR_RETURN(Matrix rows, SensitivitiesTo(scales));
    // The shortest engine time of each kind, in units of which its overhead is counted.
    std::map<CollectiveKind, double> least_ns;
    for (size_t i = 0; i < fit_.cells.size(); ++i) {
      double& least = least_ns.try_emplace(fit_.cells[i].kind, fit_.engine_ns[i]).first->second;
      least = std::min(least, fit_.engine_ns[i]);
    }
    const size_t first_efficiency = fit_.parameters.size();
    const size_t first_overhead = first_efficiency + kinds_.size() - 1;
    const size_t unknowns = fit_.parameters.size() + KindUnknowns(overheads);
    NormalEquations equations(unknowns, kPriorLogDeviation);
    for (size_t i = 0; i < fit_.cells.size(); ++i) {
      std::vector<double>& row = rows[i];
      row.resize(unknowns);
      const auto kind = kinds_.find(fit_.cells[i].kind);
      const size_t column = std::distance(kinds_.begin(), kind);
      if (column + 1 < kinds_.size()) {
        row[first_efficiency + column] = 1;
      } else {
        std::fill(row.begin() + first_efficiency, row.begin() + first_overhead, -1);
      }
      if (overheads) row[first_overhead + column] = least_ns[*kind] / fit_.engine_ns[i];
      const double deviation = DeviationOf(fit_.cells[i], fit_.model_deviation);
      equations.Add(row, 0, 1 / (deviation * deviation));
    }
    // The cost of a kept parameter is uncertain by the largest of its sort.
    for (size_t p = 0; p + 1 < fit_.parameters.size(); ++p) {
      if (!fit_.parameters[p].kept) continue;
      std::vector<double> row(unknowns);
      row[p] = 1;
      equations.Add(row, 0, /*weight=*/1);
    }
    std::vector<double> deviations = equations.Deviations();
    deviations.resize(fit_.parameters.size());
    return deviations;
  }

  size_t KindUnknowns(bool overheads) const {
    return kinds_.size() - 1 + (overheads ? kinds_.size() : 0);
  }

  double WideningBeside(bool overheads) const {
    const size_t unknowns = CountFitted() + KindUnknowns(overheads);
    return Widening(
        EvidencePoints(fit_.cells, fit_.engine_ns).size(), unknowns,
        NeighbourCorrelation(fit_.cells, StandardisedResiduals(fit_.engine_ns), unknowns));
  }

  // Whether an endpoint delay as large as the latency that stands for both would be told if nothing
  // but it were missing from the model: whether it is worth fitting.
  absl::StatusOr<bool> DelayMayBeTold() {
    std::vector<double> scales = Scales();
    scales.back() = LargestFittedCost(EngineParameter::Kind::kLatency);
    const double model_deviation = std::exchange(fit_.model_deviation, kLeastModelDeviation);
    ASSIGN_OR_RETURN(const std::vector<double> deviations, Deviations(scales, /*overheads=*/true));
    fit_.model_deviation = model_deviation;
    return deviations.back() <= kMaxLogDeviation;
  }

  // Leaves out of the next fit what is not told: the endpoint delay alone, else all of it, since of
  // two that cannot be told from each other neither is known, though each would be if the other
  // were. Returns false when all that are left are told.
  absl::StatusOr<bool> GiveUpUntold() {
    if (!delay().kept) {
      ASSIGN_OR_RETURN(const std::vector<double> deviations,
                       Deviations(Scales(), /*overheads=*/true));
      delay().kept = deviations.back() * WideningBeside(/*overheads=*/true) > kMaxLogDeviation;
      if (delay().kept) return true;
    }
    ASSIGN_OR_RETURN(const std::vector<double> deviations,
                     Deviations(Scales(), /*overheads=*/false));
    bool given_up = false;
    for (size_t p = 0; p < deviations.size(); ++p) {
      if (fit_.parameters[p].kept || deviations[p] <= kMaxLogDeviation) continue;
      fit_.parameters[p].kept = true;
      given_up = true;
    }
    return given_up;
  }

  absl::Status JudgeFitted() {
    ASSIGN_OR_RETURN(const std::vector<double> deviations,
                     Deviations(Scales(), /*overheads=*/false));
    ASSIGN_OR_RETURN(const std::vector<double> beside_overheads,
                     Deviations(Scales(), /*overheads=*/true));
    fit_.widening = WideningBeside(/*overheads=*/false);
    const double widening_beside_overheads = WideningBeside(/*overheads=*/true);
    for (size_t p = 0; p < deviations.size(); ++p) {
      FittedParameter& fitted = fit_.parameters[p];
      if (fitted.kept) continue;
      fitted.identifiable = fit_.widening * deviations[p] <= kMaxLogDeviation;
      fitted.includes_overhead = fitted.parameter.kind == EngineParameter::Kind::kLatency &&
                                 widening_beside_overheads * beside_overheads[p] > kMaxLogDeviation;
    }
    return absl::OkStatus();
  }

  const Fabric& given_;
  // The kinds of the cells: each is a column of the equations.
  std::set<CollectiveKind> kinds_;
  // What is found so far.
  ParameterFit fit_;
};

}  // namespace

absl::StatusOr<ParameterFit> FitParameters(const Fabric& given,
                                           absl::Span<const TransferCell> cells) {
  return Fitter(given, cells).Fit();
}

std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit, uint64_t seed) {
  const std::vector<std::vector<size_t>> points = EvidencePoints(fit.cells, fit.engine_ns);
  std::mt19937_64 random(seed);
  std::vector<std::vector<double>> changes(fit.parameters.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<size_t> drawn;
    for (size_t i = 0; i < points.size(); ++i) {
      // The standard library's distributions differ between implementations; the modulus is off by
      // less than 2^-40 here.
      const std::vector<size_t>& cells = points[random() % points.size()];
      drawn.insert(drawn.end(), cells.begin(), cells.end());
    }
    std::vector<double> change(fit.parameters.size());
    for (int i = 0; i < kReweightings; ++i) change = EquationsOf(fit, drawn, change).Solve();
    for (size_t p = 0; p < change.size(); ++p) changes[p].push_back(change[p]);
  }
  std::vector<ParameterInterval> intervals;
  for (size_t p = 0; p < fit.parameters.size(); ++p) {
    if (!fit.parameters[p].identifiable) continue;
    const auto end = [&](double share) {
      return fit.parameters[p].value * std::exp(fit.widening * Quantile(changes[p], share));
    };
    intervals.push_back({end(kDrawTail), end(1 - kDrawTail)});
  }
  return intervals;
}

std::vector<std::vector<size_t>> EvidencePoints(absl::Span<const TransferCell> cells,
                                                absl::Span<const double> engine_ns) {
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, std::vector<size_t>> by_point;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_point[{cells[i].kind, cells[i].bytes, std::llround(engine_ns[i])}].push_back(i);
  }
  std::vector<std::vector<size_t>> points;
  points.reserve(by_point.size());
  for (auto& [key, members] : by_point) points.push_back(std::move(members));
  return points;
}

double NeighbourCorrelation(absl::Span<const TransferCell> cells,
                            absl::Span<const double> residuals, size_t unknowns) {
  std::vector<double> centred(residuals.begin(), residuals.end());
  std::array<double, kTimedKinds> sums{}, counts{};
  for (size_t i = 0; i < cells.size(); ++i) {
    centred[i] = std::clamp(centred[i], -kMaxResidual, kMaxResidual);
    sums[static_cast<size_t>(cells[i].kind)] += centred[i];
    counts[static_cast<size_t>(cells[i].kind)] += 1;
  }
  double variance = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t kind = static_cast<size_t>(cells[i].kind);
    centred[i] -= sums[kind] / counts[kind];
    variance += centred[i] * centred[i] / static_cast<double>(cells.size());
  }
  double products = 0, pairs = 0;
  for (const auto& [key, series] : FindSizeSeries(cells)) {
    for (auto next = series.begin(), last = next++; next != series.end(); last = next++) {
      products += centred[last->second] * centred[next->second];
      ++pairs;
    }
  }
  if (pairs == 0 || variance == 0) return 0;
  const double taken = static_cast<double>(unknowns) / static_cast<double>(cells.size());
  const double correlation = products / pairs / variance + taken;
  return std::clamp(correlation, 0.0, kMaxCorrelation);
}

double Widening(size_t points, size_t unknowns, double correlation) {
  if (points <= unknowns) return std::numeric_limits<double>::infinity();
  const double free = static_cast<double>(points - unknowns);
  const double common = (1 + correlation) / (1 - correlation);
  if (free < common) return std::numeric_limits<double>::infinity();
  return std::sqrt(static_cast<double>(points) / free * common) * StudentQuantile95(free / common) /
         kNormalQuantile95;
}

// With T = sqrt(freedom) tan(a) the density of the angle is proportional to cos(a)^(freedom - 1),
// which is bounded and ends at pi / 2: summed by the rule of midpoints until the share is reached.
double StudentQuantile95(double degrees_of_freedom) {
  MERIDIAN_CHECK(degrees_of_freedom >= 1);
  if (degrees_of_freedom > kNearlyNormal) {
    const double z = kNormalQuantile95;
    return z + z * (z * z + 1) / (4 * degrees_of_freedom);
  }
  const double step = kHalfPi / static_cast<double>(kPieces);
  std::vector<double> densities(kPieces);
  double total = 0;
  for (size_t i = 0; i < kPieces; ++i) {
    const double angle = (static_cast<double>(i) + 0.5) * step;
    densities[i] = std::pow(std::cos(angle), degrees_of_freedom - 1);
    total += densities[i];
  }
  double below = 0;
  size_t i = 0;
  while (below + densities[i] < kInside * total) below += densities[i++];
  const double position = static_cast<double>(i) + (kInside * total - below) / densities[i];
  return std::sqrt(degrees_of_freedom) * std::tan(position * step);
}

}  // namespace meridian
