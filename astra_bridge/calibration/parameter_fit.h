// SPDX-License-Identifier: Apache-2.0
// Latency, bandwidth and endpoint delay that bring the engine's times nearest to the measured ones.
//
//   residual of a cell = log(measured / engine)         errors count by ratio: times span decades
//   minimise  sum Huber(residual / deviation)           over the logarithms of the parameters
//
// by damped Gauss-Newton steps against the engine itself, from assumed values: what was given is
// only what parameters keep that the cells do not tell.
//
// What cells tell. Each parameter's deviation is computed beside an unknown efficiency of every
// kind (with mean 1), which is what corrections will give it: then one size and one group say
// nothing about either latency or bandwidth, large sizes alone nothing about latency. Beyond
// kMaxLogDeviation a parameter keeps what was given, and the others are fitted again. It is not
// certain then: it may be as slow as the slowest fitted one of its sort, so of two latencies of
// which only the sum is seen neither is told.
//
// The endpoint delay is added to every message as latency is to every hop, and mostly only their
// sum is seen. It is kept, and counts as known then: latency stands for both. It is fitted only
// where cells tell it from latency even beside an unknown overhead of every kind: if they would
// tell one as large as that latency, all is fitted again with it; if it is not told then, it is the
// first to be given up, before any other parameter is judged.
//
// What too few cells tell. The deviations of what is fitted are widened as evidence.h says, with
// the fitted parameters and the efficiencies as unknowns; beyond kMaxLogDeviation, so always when
// no freedom is left, a parameter has the value that fits best but is not identifiable.
//
// Intervals come from resampling: points of evidence are drawn with replacement, each with its
// cells, and the parameters that fit the drawn ones best are collected. Points are drawn as a whole
// since what a model misses differs from point to point, not from repeat to repeat; how repeats
// scatter is in the cells' residuals already.
//
//   end of the interval = value * exp(widening * quantile of the drawn changes of its logarithm)
//
// with the fit's widening: draws know neither how few they are drawn from nor that neighbours are
// wrong together.
#ifndef ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_
#define ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Beyond this standard deviation of a parameter's logarithm it is not identifiable: its interval
// would span more than a factor of two either way.
inline constexpr double kMaxLogDeviation = 0.35;

struct FittedParameter {
  EngineParameter parameter;
  double value = 0;
  // The cells do not tell the parameter: it has the value that was given.
  bool kept = false;
  // False for one that is kept, and for one that has the value that fits best though too few cells
  // vouch for it.
  bool identifiable = false;
  // The parameter is a latency that is told only together with what a collective costs once, as
  // always when groups have one size: steps x latency + overhead is all that is seen.
  bool includes_overhead = false;
  // Standard deviation of the logarithm of the value, widened; for a parameter that is kept, the
  // deviation for which it was given up.
  double log_deviation = 0;
};

struct ParameterFit {
  // The fabric that was given, with the fitted values.
  Fabric fabric;
  // The fitted parameters, in the order of ParametersOf.
  std::vector<FittedParameter> parameters;
  // The cells that were fitted to: of sizes of a kind and group that are nearer to each other than
  // kSameSizeFactor the smallest only.
  std::vector<TransferCell> cells;
  // The engine's time of each of these cells.
  std::vector<double> engine_ns;
  // By cell, then by parameter in the order of those that are not kept: d log(engine time) /
  // d log(parameter).
  std::vector<std::vector<double>> sensitivities;
  // How far cells lie from the engine's times by what the engine does not model: a robust standard
  // deviation of the residuals.
  double model_deviation = 0;
  // By how much deviations and intervals were widened, at least 1; infinity when no freedom is
  // left.
  double widening = 1;

  // Return log(measured / engine) of a cell, given by its position, and its standard deviation.
  double ResidualOf(size_t cell) const;
  double DeviationOf(size_t cell) const;
};

// Fits to at least one cell.
absl::StatusOr<ParameterFit> FitParameters(const Fabric& given,
                                           absl::Span<const TransferCell> cells);

struct ParameterInterval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  int draws = 400;
  // Equal seeds give equal intervals, on all machines.
  uint64_t seed = 1;
};

// Returns the intervals of the identifiable parameters, in their order. The engine is taken to be
// as the fit found it: log time changes with log parameters as the sensitivities say.
std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit,
                                                  const BootstrapOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_
