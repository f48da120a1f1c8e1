#include "astra_bridge/calibration/parameter_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "astra_bridge/calibration/evidence.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/normal_equations.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Median absolute deviation of a normal distribution, as a share of its standard deviation.
constexpr double kDeviationPerMad = 1.4826;
constexpr double kFirstModelDeviation = 0.3;
constexpr double kLeastModelDeviation = 0.05;
// How uncertain the cost of a kept parameter is, in units of the largest of its sort.
constexpr double kKeptDeviation = 1;

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
// Of the logarithms of parameters, where nothing else speaks for them.
constexpr double kPriorLogDeviation = 10;

constexpr int kReweightings = 6;
// 95 % of the draws lie between this share and one less it.
constexpr double kTail = 0.025;

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

// Leaves out cells whose sizes are too near the next smaller one of the same kind and group.
std::vector<TransferCell> ThinSizes(absl::Span<const TransferCell> cells) {
  std::map<CellKey, std::map<int64_t, size_t>> series;
  for (size_t i = 0; i < cells.size(); ++i) {
    CellKey key = KeyOf(cells[i]);
    std::get<int64_t>(key) = 0;
    series[std::move(key)][cells[i].bytes] = i;
  }
  std::set<size_t> taken;
  for (const auto& [key, by_size] : series) {
    double next_bytes = 0;
    for (const auto& [bytes, position] : by_size) {
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
// byte.
double CostOf(const EngineParameter& parameter, double value) {
  return parameter.kind == EngineParameter::Kind::kBandwidth ? 1 / value : value;
}

// Inverts CostOf, which is its own inverse.
double ValueOf(const EngineParameter& parameter, double cost) { return CostOf(parameter, cost); }

// What deviations are computed beside.
enum class Unknowns { kEfficiencies, kEfficienciesAndOverheads };

class Fitter {
 public:
  Fitter(const Fabric& given, absl::Span<const TransferCell> cells)
      : given_(given), cells_(ThinSizes(cells)), fabric_(given), active_(ParametersOf(given)) {
    for (const EngineParameter& parameter : active_) {
      FittedParameter fitted;
      fitted.parameter = parameter;
      parameters_.push_back(fitted);
    }
    NumberKinds();
  }

  absl::StatusOr<ParameterFit> Fit() {
    GiveUp(&delay());
    RETURN_IF_ERROR(FitTold());
    ASSIGN_OR_RETURN(const bool delay_may_be_told, DelayMayBeTold());
    if (delay_may_be_told) {
      active_ = ParametersOf(given_);
      for (FittedParameter& fitted : parameters_) fitted.kept = false;
      RETURN_IF_ERROR(FitTold());
    }
    const double widening = WideningBeside(Unknowns::kEfficiencies);
    RETURN_IF_ERROR(JudgeFitted(widening));
    ASSIGN_OR_RETURN(sensitivities_, SensitivitiesTo(active_));
    for (FittedParameter& fitted : parameters_) {
      fitted.value = ParameterValue(fabric_, fitted.parameter);
    }
    return ParameterFit{
        std::move(fabric_),        std::move(parameters_), std::move(cells_), std::move(engine_ns_),
        std::move(sensitivities_), model_deviation_,       widening};
  }

 private:
  void NumberKinds() {
    kind_columns_.fill(-1);
    for (const TransferCell& cell : cells_) {
      int& column = kind_columns_[static_cast<size_t>(cell.kind)];
      if (column < 0) column = static_cast<int>(kinds_++);
    }
  }

  size_t KindColumn(size_t cell) const {
    return static_cast<size_t>(kind_columns_[static_cast<size_t>(cells_[cell].kind)]);
  }

  FittedParameter& delay() { return parameters_.back(); }
  const FittedParameter& delay() const { return parameters_.back(); }

  absl::Status FitTold() {
    for (bool given_up = true; given_up;) {
      RETURN_IF_ERROR(FitActive());
      ASSIGN_OR_RETURN(given_up, GiveUpUntold());
    }
    return absl::OkStatus();
  }

  // From the start, since parameters that are not told may have led the others astray.
  absl::Status FitActive() {
    fabric_ = WithAssumedParameters(given_);
    for (const FittedParameter& fitted : parameters_) {
      if (!fitted.kept) continue;
      SetParameterValue(fitted.parameter, ParameterValue(given_, fitted.parameter), &fabric_);
    }
    model_deviation_ = kFirstModelDeviation;
    ASSIGN_OR_RETURN(engine_ns_, EngineTimesNs(fabric_, cells_));
    for (int round = 0; round < kScaleRounds; ++round) {
      RETURN_IF_ERROR(Descend());
      model_deviation_ = ResidualDeviation();
    }
    return absl::OkStatus();
  }

  double Residual(size_t cell, const std::vector<double>& engine_ns) const {
    return std::log(cells_[cell].median_ns / engine_ns[cell]);
  }

  double Deviation(size_t cell) const {
    return std::hypot(cells_[cell].relative_error, model_deviation_);
  }

  double Loss(const std::vector<double>& engine_ns) const {
    double loss = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      loss += HuberLoss(Residual(i, engine_ns) / Deviation(i));
    }
    return loss;
  }

  double ResidualDeviation() const {
    std::vector<double> sizes;
    for (size_t i = 0; i < cells_.size(); ++i) {
      sizes.push_back(std::abs(Residual(i, engine_ns_)));
    }
    return std::max(kLeastModelDeviation, kDeviationPerMad * Median(std::move(sizes)));
  }

  // Steps down until steps or gains are negligible.
  absl::Status Descend() {
    double damping = 1e-3;
    for (int step = 0; step < kMaxSteps && !active_.empty(); ++step) {
      ASSIGN_OR_RETURN(sensitivities_, SensitivitiesTo(active_));
      const double loss = Loss(engine_ns_);
      double gain = 0, step_size = 0;
      for (int tries = 0; tries < kMaxDampings && gain <= 0; ++tries) {
        const std::vector<double> change = Step(damping);
        Fabric candidate = Moved(change, &step_size);
        ASSIGN_OR_RETURN(std::vector<double> engine_ns, EngineTimesNs(candidate, cells_));
        gain = loss - Loss(engine_ns);
        damping = gain > 0 ? std::max(damping / 10, 1e-9) : damping * 10;
        if (gain <= 0) continue;
        fabric_ = std::move(candidate);
        engine_ns_ = std::move(engine_ns);
      }
      if (gain <= kLeastGain * loss || step_size < kDoneBelow) break;
    }
    return absl::OkStatus();
  }

  // Returns by how much to change the logarithm of each active parameter.
  std::vector<double> Step(double damping) const {
    NormalEquations equations(active_.size(), kPriorLogDeviation);
    for (size_t i = 0; i < cells_.size(); ++i) {
      const double residual = Residual(i, engine_ns_);
      const double deviation = Deviation(i);
      equations.Add(sensitivities_[i], residual,
                    HuberWeight(residual / deviation) / (deviation * deviation));
    }
    equations.Damp(damping);
    return equations.Solve();
  }

  Fabric Moved(const std::vector<double>& change, double* step_size) const {
    Fabric moved = fabric_;
    *step_size = 0;
    for (size_t p = 0; p < active_.size(); ++p) {
      const double bounded = std::clamp(change[p], -kMaxLogStep, kMaxLogStep);
      const double value = ParameterValue(fabric_, active_[p]) * std::exp(bounded);
      SetParameterValue(active_[p], std::clamp(value, kMinValue, kMaxValue), &moved);
      *step_size = std::max(*step_size, std::abs(bounded));
    }
    return moved;
  }

  // Returns d log(time) / d log(parameter), by cell and parameter.
  absl::StatusOr<std::vector<std::vector<double>>> SensitivitiesTo(
      const std::vector<EngineParameter>& parameters) const {
    std::vector<double> scales;
    for (const EngineParameter& parameter : parameters) scales.push_back(Cost(parameter));
    return SensitivitiesTo(parameters, scales);
  }

  // Returns the same with changes of costs in units of other scales than themselves.
  absl::StatusOr<std::vector<std::vector<double>>> SensitivitiesTo(
      const std::vector<EngineParameter>& parameters, const std::vector<double>& scales) const {
    std::vector<std::vector<double>> sensitivities(cells_.size(),
                                                   std::vector<double>(parameters.size()));
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (scales[p] == 0) continue;
      const EngineParameter& parameter = parameters[p];
      double step = kStep * scales[p];
      if (parameter.kind == EngineParameter::Kind::kEndpointDelay) {
        step = std::max(step, kLeastDelayStepNs);
      }
      Fabric fabric = fabric_;
      SetParameterValue(parameter, ValueOf(parameter, Cost(parameter) + step), &fabric);
      ASSIGN_OR_RETURN(const std::vector<double> engine_ns, EngineTimesNs(fabric, cells_));
      const double sign = parameter.kind == EngineParameter::Kind::kBandwidth ? -1 : 1;
      for (size_t i = 0; i < cells_.size(); ++i) {
        sensitivities[i][p] =
            sign * (engine_ns[i] - engine_ns_[i]) / engine_ns_[i] * scales[p] / step;
      }
    }
    return sensitivities;
  }

  double Cost(const EngineParameter& parameter) const {
    return CostOf(parameter, ParameterValue(fabric_, parameter));
  }

  double LargestCost(EngineParameter::Kind kind) const {
    double largest = 0;
    for (const EngineParameter& parameter : active_) {
      if (parameter.kind == kind) largest = std::max(largest, Cost(parameter));
    }
    return largest;
  }

  // Returns the unit that a parameter's uncertainty is counted in: its own cost, or the largest
  // fitted one of its sort where it is kept. A kept endpoint delay is known.
  double Scale(const FittedParameter& fitted) const {
    const double own = Cost(fitted.parameter);
    if (!fitted.kept) return own;
    if (&fitted == &delay()) return 0;
    return std::max(own, LargestCost(fitted.parameter.kind));
  }

  // Returns the deviations of all parameters' logarithms, not widened, beside what is unknown of
  // every kind; the last kind's efficiency is what makes their sum zero. What is kept is not
  // certain, either: what can only be told once something else is known has not been told.
  absl::StatusOr<std::vector<double>> LogDeviations(Unknowns beside) const {
    std::vector<double> scales;
    for (const FittedParameter& fitted : parameters_) scales.push_back(Scale(fitted));
    return Deviations(scales, beside);
  }

  // Returns deviations in units of the scales, one for each parameter.
  absl::StatusOr<std::vector<double>> Deviations(const std::vector<double>& scales,
                                                 Unknowns beside) const {
    ASSIGN_OR_RETURN(const std::vector<std::vector<double>> sensitivities,
                     SensitivitiesTo(ParametersOf(fabric_), scales));
    const std::vector<double> least_ns = LeastTimesNs();
    const size_t efficiencies = parameters_.size();
    const size_t overheads = efficiencies + kinds_ - 1;
    const size_t unknowns = parameters_.size() + KindUnknowns(beside);
    NormalEquations equations(unknowns, kPriorLogDeviation);
    for (size_t i = 0; i < cells_.size(); ++i) {
      std::vector<double> row(unknowns);
      std::copy(sensitivities[i].begin(), sensitivities[i].end(), row.begin());
      const size_t kind = KindColumn(i);
      if (kind + 1 < kinds_) {
        row[efficiencies + kind] = 1;
      } else {
        std::fill(row.begin() + efficiencies, row.begin() + overheads, -1);
      }
      if (beside == Unknowns::kEfficienciesAndOverheads) {
        row[overheads + kind] = least_ns[kind] / engine_ns_[i];
      }
      const double deviation = Deviation(i);
      equations.Add(row, 0, 1 / (deviation * deviation));
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (!parameters_[p].kept || &parameters_[p] == &delay()) continue;
      std::vector<double> row(unknowns);
      row[p] = 1;
      equations.Add(row, 0, 1 / (kKeptDeviation * kKeptDeviation));
    }
    std::vector<double> deviations = equations.Deviations();
    deviations.resize(parameters_.size());
    return deviations;
  }

  size_t KindUnknowns(Unknowns beside) const {
    return kinds_ - 1 + (beside == Unknowns::kEfficienciesAndOverheads ? kinds_ : 0);
  }

  // Returns by kind column the shortest engine time, in units of which overheads are counted.
  std::vector<double> LeastTimesNs() const {
    std::vector<double> least_ns(kinds_, std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < cells_.size(); ++i) {
      least_ns[KindColumn(i)] = std::min(least_ns[KindColumn(i)], engine_ns_[i]);
    }
    return least_ns;
  }

  double WideningBeside(Unknowns beside) const {
    std::vector<double> residuals;
    for (size_t i = 0; i < cells_.size(); ++i) {
      residuals.push_back(Residual(i, engine_ns_) / Deviation(i));
    }
    const size_t unknowns = active_.size() + KindUnknowns(beside);
    return Widening(EvidencePoints(cells_, engine_ns_).size(), unknowns,
                    NeighbourCorrelation(cells_, residuals, unknowns));
  }

  // Whether an endpoint delay as large as the latency that stands for both would be told if nothing
  // but it were missing from the model: whether it is worth fitting.
  absl::StatusOr<bool> DelayMayBeTold() {
    std::vector<double> scales;
    for (const FittedParameter& fitted : parameters_) scales.push_back(Scale(fitted));
    scales.back() = LargestCost(EngineParameter::Kind::kLatency);
    const double model_deviation = std::exchange(model_deviation_, kLeastModelDeviation);
    ASSIGN_OR_RETURN(const std::vector<double> deviations,
                     Deviations(scales, Unknowns::kEfficienciesAndOverheads));
    model_deviation_ = model_deviation;
    delay().log_deviation = deviations.back();
    return delay().log_deviation <= kMaxLogDeviation;
  }

  // Leaves out of the next fit what is not told: the endpoint delay alone, else all of it, since of
  // two that cannot be told from each other neither is known, though each would be if the other
  // were. Returns false when all that are left are told.
  absl::StatusOr<bool> GiveUpUntold() {
    if (!delay().kept) {
      ASSIGN_OR_RETURN(const std::vector<double> deviations,
                       LogDeviations(Unknowns::kEfficienciesAndOverheads));
      delay().log_deviation =
          deviations.back() * WideningBeside(Unknowns::kEfficienciesAndOverheads);
      if (delay().log_deviation > kMaxLogDeviation) {
        GiveUp(&delay());
        return true;
      }
    }
    ASSIGN_OR_RETURN(const std::vector<double> deviations, LogDeviations(Unknowns::kEfficiencies));
    bool given_up = false;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (parameters_[p].kept || deviations[p] <= kMaxLogDeviation) continue;
      parameters_[p].log_deviation = deviations[p];
      GiveUp(&parameters_[p]);
      given_up = true;
    }
    return given_up;
  }

  void GiveUp(FittedParameter* fitted) {
    fitted->kept = true;
    active_.erase(std::find(active_.begin(), active_.end(), fitted->parameter));
  }

  absl::Status JudgeFitted(double widening) {
    ASSIGN_OR_RETURN(const std::vector<double> deviations, LogDeviations(Unknowns::kEfficiencies));
    ASSIGN_OR_RETURN(const std::vector<double> beside_overheads,
                     LogDeviations(Unknowns::kEfficienciesAndOverheads));
    const double widening_beside_overheads = WideningBeside(Unknowns::kEfficienciesAndOverheads);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      FittedParameter& fitted = parameters_[p];
      if (fitted.kept) continue;
      fitted.log_deviation = widening * deviations[p];
      fitted.identifiable = fitted.log_deviation <= kMaxLogDeviation;
      fitted.includes_overhead = fitted.parameter.kind == EngineParameter::Kind::kLatency &&
                                 widening_beside_overheads * beside_overheads[p] > kMaxLogDeviation;
    }
    return absl::OkStatus();
  }

  const Fabric& given_;
  // The cells that are fitted to, without sizes that are too near to others.
  std::vector<TransferCell> cells_;
  // By CollectiveKind: the number of the kind among those that occur, or -1 for one that does not.
  std::array<int, kTimedKinds> kind_columns_;
  size_t kinds_ = 0;
  Fabric fabric_;
  // The parameters that are still fitted.
  std::vector<EngineParameter> active_;
  std::vector<FittedParameter> parameters_;
  // The engine's times of the cells on fabric_.
  std::vector<double> engine_ns_;
  // By cell and active parameter.
  std::vector<std::vector<double>> sensitivities_;
  double model_deviation_ = kFirstModelDeviation;
};

// The standard library's distributions differ between implementations; the modulus is off by less
// than 2^-40 here.
size_t DrawBelow(size_t count, std::mt19937_64* random) { return (*random)() % count; }

// Returns by how much the logarithms of the fitted parameters move when these cells, given by their
// positions, are all there is.
std::vector<double> SolveDrawn(const ParameterFit& fit, const std::vector<size_t>& drawn,
                               size_t unknowns) {
  std::vector<double> change(unknowns);
  for (int i = 0; i < kReweightings; ++i) {
    NormalEquations equations(unknowns, kPriorLogDeviation);
    for (size_t cell : drawn) {
      const std::vector<double>& row = fit.sensitivities[cell];
      const double residual = fit.ResidualOf(cell);
      const double deviation = fit.DeviationOf(cell);
      double left = residual;
      for (size_t p = 0; p < unknowns; ++p) left -= row[p] * change[p];
      equations.Add(row, residual, HuberWeight(left / deviation) / (deviation * deviation));
    }
    change = equations.Solve();
  }
  return change;
}

}  // namespace

double ParameterFit::ResidualOf(size_t cell) const {
  return std::log(cells[cell].median_ns / engine_ns[cell]);
}

double ParameterFit::DeviationOf(size_t cell) const {
  return std::hypot(cells[cell].relative_error, model_deviation);
}

absl::StatusOr<ParameterFit> FitParameters(const Fabric& given,
                                           absl::Span<const TransferCell> cells) {
  return Fitter(given, cells).Fit();
}

std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit,
                                                  const BootstrapOptions& options) {
  std::vector<const FittedParameter*> fitted;
  bool any_identifiable = false;
  for (const FittedParameter& parameter : fit.parameters) {
    if (!parameter.kept) fitted.push_back(&parameter);
    any_identifiable |= parameter.identifiable;
  }
  if (!any_identifiable) return {};
  const std::vector<std::vector<size_t>> points = EvidencePoints(fit.cells, fit.engine_ns);
  std::mt19937_64 random(options.seed);
  std::vector<std::vector<double>> changes(fitted.size());
  for (int draw = 0; draw < options.draws; ++draw) {
    std::vector<size_t> drawn;
    for (size_t i = 0; i < points.size(); ++i) {
      const std::vector<size_t>& cells = points[DrawBelow(points.size(), &random)];
      drawn.insert(drawn.end(), cells.begin(), cells.end());
    }
    const std::vector<double> change = SolveDrawn(fit, drawn, fitted.size());
    for (size_t p = 0; p < fitted.size(); ++p) changes[p].push_back(change[p]);
  }
  std::vector<ParameterInterval> intervals;
  for (size_t p = 0; p < fitted.size(); ++p) {
    if (!fitted[p]->identifiable) continue;
    const auto end = [&](double share) {
      return fitted[p]->value * std::exp(fit.widening * Quantile(changes[p], share));
    };
    intervals.push_back({end(kTail), end(1 - kTail)});
  }
  return intervals;
}

}  // namespace meridian
