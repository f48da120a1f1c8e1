#include "astra_bridge/calibration/bootstrap.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

#include "astra_bridge/calibration/normal_equations.h"
#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

constexpr double kHuberBound = 1.345;
constexpr double kPriorLogDeviation = 10;
constexpr int kReweightings = 6;

// The standard library's distributions differ between implementations; the modulus is off by less
// than 2^-40 here.
size_t DrawBelow(size_t count, std::mt19937_64* random) { return (*random)() % count; }

double DrawMedian(const std::vector<double>& values, std::mt19937_64* random) {
  std::vector<double> drawn(values.size());
  for (double& value : drawn) value = values[DrawBelow(values.size(), random)];
  return Median(std::move(drawn));
}

struct DrawnCell {
  size_t cell = 0;
  double residual = 0;
  double deviation = 0;
};

// By how much the logarithms of the parameters move.
std::vector<double> SolveDrawn(const ParameterFit& fit, const std::vector<DrawnCell>& drawn,
                               size_t unknowns) {
  std::vector<double> change(unknowns);
  for (int i = 0; i < kReweightings; ++i) {
    NormalEquations equations(unknowns, kPriorLogDeviation);
    for (const DrawnCell& cell : drawn) {
      const std::vector<double>& row = fit.sensitivities[cell.cell];
      double left = cell.residual;
      for (size_t p = 0; p < unknowns; ++p) left -= row[p] * change[p];
      equations.Add(
          row, cell.residual,
          HuberWeight(left / cell.deviation, kHuberBound) / (cell.deviation * cell.deviation));
    }
    change = equations.Solve();
  }
  return change;
}

}  // namespace

std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit,
                                                  absl::Span<const TransferCell> cells,
                                                  const BootstrapOptions& options) {
  std::vector<double> values;
  for (const FittedParameter& parameter : fit.parameters) {
    if (parameter.identifiable) values.push_back(parameter.value);
  }
  std::mt19937_64 random(options.seed);
  std::vector<std::vector<double>> changes(values.size());
  for (int draw = 0; draw < options.draws && !values.empty(); ++draw) {
    std::vector<DrawnCell> drawn(cells.size());
    for (DrawnCell& cell : drawn) {
      cell.cell = DrawBelow(cells.size(), &random);
      const double median_ns = DrawMedian(cells[cell.cell].transfers_ns, &random);
      cell.residual = std::log(median_ns / fit.engine_ns[cell.cell]);
      cell.deviation = std::hypot(cells[cell.cell].relative_error, fit.model_deviation);
    }
    const std::vector<double> change = SolveDrawn(fit, drawn, values.size());
    for (size_t p = 0; p < values.size(); ++p) changes[p].push_back(change[p]);
  }
  std::vector<ParameterInterval> intervals;
  for (size_t p = 0; p < values.size(); ++p) {
    const double tail = (1 - options.coverage) / 2;
    intervals.push_back({values[p] * std::exp(Quantile(changes[p], tail)),
                         values[p] * std::exp(Quantile(changes[p], 1 - tail))});
  }
  return intervals;
}

}  // namespace meridian
