#include "astra_bridge/calibration/parameter_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "astra_bridge/calibration/normal_equations.h"
#include "astra_bridge/calibration/robust_statistics.h"
#include "astra_bridge/calibration/size_ranges.h"
#include "astra_bridge/comm_kind.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

// Of normal residuals, 95 % as efficient as least squares.
constexpr double kHuberBound = 1.345;
// Median absolute deviation of a normal distribution, as a share of its standard deviation.
constexpr double kDeviationPerMad = 1.4826;
constexpr double kFirstModelDeviation = 0.3;
constexpr double kLeastModelDeviation = 0.05;
// Of a parameter's logarithm, for want of anything better: a factor of e^10 either way.
constexpr double kPriorLogDeviation = 10;
// Of one that is kept as it was given: a factor of e either way.
constexpr double kKeptLogDeviation = 1;

// Large enough to show beside rounding to nanoseconds.
constexpr double kLogStep = 0.05;
constexpr double kEndpointStepNs = 1000;

constexpr int kMaxSteps = 60;
constexpr int kMaxDampings = 12;
constexpr int kScaleRounds = 3;
constexpr double kMaxLogStep = 2;
constexpr double kDoneBelow = 1e-5;

// No network that is built lies beyond these.
constexpr double kMinValue = 1e-3;
constexpr double kMaxValue = 1e9;

// Of a kind of more sizes than are looked at one by one. Latency and bandwidth show in far fewer.
constexpr size_t kSizeRanges = 24;

// Returns one cell for each kind, group and range of sizes: the geometric mean, whose bytes are
// those that the engine is to time. Kinds of at most kMaxSizes sizes stay as they are.
std::vector<TransferCell> MergeCells(absl::Span<const TransferCell> cells) {
  std::array<std::set<int64_t>, kCommKinds> sizes;
  for (const TransferCell& cell : cells) sizes[static_cast<size_t>(cell.kind)].insert(cell.bytes);
  std::vector<TransferCell> result;
  std::map<std::tuple<CommKind, size_t, int32_t, std::vector<int32_t>>, std::vector<size_t>>
      to_merge;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::set<int64_t>& of_kind = sizes[static_cast<size_t>(cells[i].kind)];
    if (of_kind.size() <= kMaxSizes) {
      result.push_back(cells[i]);
      continue;
    }
    const SizeRanges ranges(*of_kind.begin(), *of_kind.rbegin(), kSizeRanges);
    to_merge[{cells[i].kind, ranges.RangeOf(cells[i].bytes), cells[i].ranks, cells[i].participants}]
        .push_back(i);
  }
  for (const auto& [key, members] : to_merge) {
    TransferCell merged;
    std::tie(merged.kind, std::ignore, merged.ranks, merged.participants) = key;
    double log_bytes = 0, log_ns = 0, variance = 0;
    for (size_t i : members) {
      log_bytes += std::log(static_cast<double>(cells[i].bytes));
      log_ns += std::log(cells[i].median_ns);
      variance += cells[i].relative_error * cells[i].relative_error;
    }
    const double count = static_cast<double>(members.size());
    merged.bytes = std::llround(std::exp(log_bytes / count));
    merged.median_ns = std::exp(log_ns / count);
    merged.relative_error = std::sqrt(variance) / count;
    result.push_back(std::move(merged));
  }
  return result;
}

class Fitter {
 public:
  Fitter(const Fabric& start, absl::Span<const TransferCell> cells)
      : start_(start),
        all_cells_(cells),
        merged_(MergeCells(cells)),
        cells_(merged_),
        fabric_(start),
        active_(ParametersOf(start)) {
    for (const EngineParameter& parameter : active_) {
      FittedParameter fitted;
      fitted.parameter = parameter;
      fitted.identifiable = true;
      parameters_.push_back(fitted);
    }
  }

  absl::StatusOr<ParameterFit> Fit() {
    for (bool frozen = true; frozen;) {
      RETURN_IF_ERROR(FitActive());
      ASSIGN_OR_RETURN(frozen, FreezeUncertain());
    }
    cells_ = all_cells_;
    ASSIGN_OR_RETURN(engine_ns_, EngineTimesNs(fabric_, cells_));
    ASSIGN_OR_RETURN(sensitivities_, SensitivitiesTo(active_));
    for (FittedParameter& fitted : parameters_) {
      fitted.value = ParameterValue(fabric_, fitted.parameter);
    }
    return ParameterFit{std::move(fabric_), std::move(parameters_), std::move(engine_ns_),
                        std::move(sensitivities_), model_deviation_};
  }

 private:
  // From the start, since parameters that are not identifiable may have led the others astray.
  absl::Status FitActive() {
    fabric_ = start_;
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
      loss += HuberLoss(Residual(i, engine_ns) / Deviation(i), kHuberBound);
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
      double step_size = 0;
      bool better = false;
      for (int tries = 0; tries < kMaxDampings && !better; ++tries) {
        const std::vector<double> change = Step(damping);
        Fabric candidate = Moved(change, &step_size);
        ASSIGN_OR_RETURN(std::vector<double> engine_ns, EngineTimesNs(candidate, cells_));
        better = Loss(engine_ns) < loss;
        damping = better ? std::max(damping / 10, 1e-9) : damping * 10;
        if (!better) continue;
        fabric_ = std::move(candidate);
        engine_ns_ = std::move(engine_ns);
      }
      if (!better || step_size < kDoneBelow) break;
    }
    return absl::OkStatus();
  }

  // By how much to change the logarithm of each active parameter.
  std::vector<double> Step(double damping) const {
    NormalEquations equations(active_.size(), kPriorLogDeviation);
    for (size_t i = 0; i < cells_.size(); ++i) {
      const double residual = Residual(i, engine_ns_);
      const double deviation = Deviation(i);
      equations.Add(sensitivities_[i], residual,
                    HuberWeight(residual / deviation, kHuberBound) / (deviation * deviation));
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

  // By cell and parameter.
  absl::StatusOr<std::vector<std::vector<double>>> SensitivitiesTo(
      const std::vector<EngineParameter>& parameters) const {
    std::vector<std::vector<double>> sensitivities(cells_.size(),
                                                   std::vector<double>(parameters.size()));
    for (size_t p = 0; p < parameters.size(); ++p) {
      const double value = ParameterValue(fabric_, parameters[p]);
      // A delay in whole nanoseconds hardly moves by a share of itself.
      const bool is_delay = parameters[p].kind == EngineParameter::Kind::kEndpointDelay;
      const double stepped = is_delay ? value + kEndpointStepNs : value * std::exp(kLogStep);
      Fabric fabric = fabric_;
      SetParameterValue(parameters[p], stepped, &fabric);
      ASSIGN_OR_RETURN(const std::vector<double> engine_ns, EngineTimesNs(fabric, cells_));
      for (size_t i = 0; i < cells_.size(); ++i) {
        sensitivities[i][p] =
            is_delay ? (engine_ns[i] - engine_ns_[i]) / kEndpointStepNs * value / engine_ns_[i]
                     : std::log(engine_ns[i] / engine_ns_[i]) / kLogStep;
      }
    }
    return sensitivities;
  }

  // Of all parameters' logarithms, beside an unknown efficiency of every kind. The last kind's is
  // what makes their sum zero. What is kept is not certain, either: what can only be told once
  // something else is known has not been told.
  absl::StatusOr<std::vector<double>> LogDeviations() const {
    ASSIGN_OR_RETURN(const std::vector<std::vector<double>> sensitivities,
                     SensitivitiesTo(ParametersOf(fabric_)));
    std::array<int, kCommKinds> columns;
    columns.fill(-1);
    int kinds = 0;
    for (const TransferCell& cell : cells_) {
      int& column = columns[static_cast<size_t>(cell.kind)];
      if (column < 0) column = kinds++;
    }
    const size_t unknowns = parameters_.size() + static_cast<size_t>(kinds - 1);
    NormalEquations equations(unknowns, kPriorLogDeviation);
    for (size_t i = 0; i < cells_.size(); ++i) {
      std::vector<double> row(unknowns);
      std::copy(sensitivities[i].begin(), sensitivities[i].end(), row.begin());
      const int column = columns[static_cast<size_t>(cells_[i].kind)];
      if (column < kinds - 1) {
        row[parameters_.size() + column] = 1;
      } else {
        std::fill(row.begin() + parameters_.size(), row.end(), -1);
      }
      const double deviation = Deviation(i);
      equations.Add(row, 0, 1 / (deviation * deviation));
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (parameters_[p].identifiable) continue;
      std::vector<double> row(unknowns);
      row[p] = 1;
      equations.Add(row, 0, 1 / (kKeptLogDeviation * kKeptLogDeviation));
    }
    std::vector<double> deviations = equations.Deviations();
    deviations.resize(parameters_.size());
    return deviations;
  }

  // Leaves out of the next fit what is not identifiable, all of it: of two that cannot be told from
  // each other neither is known, though each would be if the other were. Returns false when all
  // that are left are identifiable.
  absl::StatusOr<bool> FreezeUncertain() {
    ASSIGN_OR_RETURN(const std::vector<double> deviations, LogDeviations());
    bool frozen = false;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (!parameters_[p].identifiable) continue;
      parameters_[p].log_deviation = deviations[p];
      if (deviations[p] <= kMaxLogDeviation) continue;
      parameters_[p].identifiable = false;
      active_.erase(std::find(active_.begin(), active_.end(), parameters_[p].parameter));
      frozen = true;
    }
    return frozen;
  }

  const Fabric& start_;
  const absl::Span<const TransferCell> all_cells_;
  const std::vector<TransferCell> merged_;
  // The merged, until the fit is done.
  absl::Span<const TransferCell> cells_;
  Fabric fabric_;
  // Those that are still fitted.
  std::vector<EngineParameter> active_;
  std::vector<FittedParameter> parameters_;
  std::vector<double> engine_ns_;
  std::vector<std::vector<double>> sensitivities_;
  double model_deviation_ = kFirstModelDeviation;
};

}  // namespace

absl::StatusOr<ParameterFit> FitParameters(const Fabric& start,
                                           absl::Span<const TransferCell> cells) {
  return Fitter(start, cells).Fit();
}

}  // namespace meridian
