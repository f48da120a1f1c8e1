#include "astra_bridge/calibration/bootstrap.h"

#include <cmath>
#include <cstddef>
#include <random>

#include "astra_bridge/calibration/evidence.h"
#include "astra_bridge/calibration/normal_equations.h"
#include "astra_bridge/calibration/robust_statistics.h"

namespace meridian {
namespace {

constexpr int kReweightings = 6;
// 95 % of the draws lie inside.
constexpr double kTail = 0.025;

// The standard library's distributions differ between implementations; the modulus is off by less
// than 2^-40 here.
size_t DrawBelow(size_t count, std::mt19937_64* random) { return (*random)() % count; }

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
    NormalEquations equations(unknowns, kParameterPriorLogDeviation);
    for (const DrawnCell& cell : drawn) {
      const std::vector<double>& row = fit.sensitivities[cell.cell];
      double left = cell.residual;
      for (size_t p = 0; p < unknowns; ++p) left -= row[p] * change[p];
      equations.Add(row, cell.residual,
                    HuberWeight(left / cell.deviation, kParameterHuberBound) /
                        (cell.deviation * cell.deviation));
    }
    change = equations.Solve();
  }
  return change;
}

}  // namespace

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
    std::vector<DrawnCell> drawn;
    for (size_t i = 0; i < points.size(); ++i) {
      for (size_t cell : points[DrawBelow(points.size(), &random)]) {
        drawn.push_back({cell, fit.ResidualOf(cell), fit.DeviationOf(cell)});
      }
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
