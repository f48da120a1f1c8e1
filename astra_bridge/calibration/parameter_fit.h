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
// What too few cells tell. A few cells, or many that are wrong in the same way, tell little about
// how far the fitted numbers may be off:
//
//   points   cells, of which those of one kind and size that the engine gives the same time count
//            once
//   free     = points - unknowns, which are the fitted parameters and the efficiencies
//   c        = (1 + r) / (1 - r), r the correlation of neighbouring sizes' residuals, from 0 on:
//              what the model misses, it misses at the next size, too
//   widening = sqrt(points / free) * sqrt(c) * t(free / c) / 1.96
//
// by which standard deviations and the ends of intervals are moved outwards. The first root makes
// up for the freedom that the fit has used, the second is that of a mean of values of a first-order
// autoregression, and t is Student's 95 % quantile. Beyond kMaxLogDeviation, so always when no
// freedom is left, a parameter has the value that fits best but is not identifiable.
//
// Intervals come from resampling: points are drawn with replacement, each with its
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
  // d log(engine time) / d log(parameter), indexed by cell, then by parameter; 0 for those that are
  // kept.
  std::vector<std::vector<double>> sensitivities;
  // How far cells lie from the engine's times by what the engine does not model: a robust standard
  // deviation of the residuals.
  double model_deviation = 0;
  // By how much deviations and intervals were widened, at least 1; infinity when no freedom is
  // left.
  double widening = 1;
};

// Fits to at least one cell.
absl::StatusOr<ParameterFit> FitParameters(const Fabric& given,
                                           absl::Span<const TransferCell> cells);

struct ParameterInterval {
  double low = 0;
  double high = 0;
};

// Returns the intervals of the identifiable parameters, in their order. The engine is taken to be
// as the fit found it: log time changes with log parameters as the sensitivities say. Equal seeds
// give equal intervals, on all machines.
std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit, uint64_t seed = 1);

// Returns the positions of the cells of each point, e.g. those of groups {0,1} and {2,3} together
// when both are alike in the network. engine_ns is by cell.
std::vector<std::vector<size_t>> EvidencePoints(absl::Span<const TransferCell> cells,
                                                absl::Span<const double> engine_ns);

// Returns the correlation between the residuals of neighbouring sizes of the same kind and group,
// after the mean of each kind is taken out, from 0 to 0.9. Residuals are by cell, in units of their
// deviations; those beyond two of them count as two. A fit of u unknowns leaves n residuals about
// u / n less correlated than the errors were, which is added again. Strong correlation is still
// found too weak where it has only one or two series of sizes to show in: intervals of 95 % were
// seen to hold 87 % then.
double NeighbourCorrelation(absl::Span<const TransferCell> cells,
                            absl::Span<const double> residuals, size_t unknowns);

// Returns the widening, at least 1; infinity when not one degree of freedom is left.
double Widening(size_t points, size_t unknowns, double correlation);

// Returns Student's t with P(|T| <= t) = 0.95, to a thousandth of it. There is at least one degree
// of freedom, not necessarily a whole number of them.
double StudentQuantile95(double degrees_of_freedom);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_
