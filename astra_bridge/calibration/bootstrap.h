// Intervals of fitted parameters by resampling: points of evidence (evidence.h) are drawn with
// replacement, each with its cells, and the parameters that fit the drawn ones best are collected.
// Points are drawn as a whole since what a model misses differs from point to point, not from
// repeat to repeat; how repeats scatter is in the cells' residuals already.
//
//   end of the interval = value * exp(widening * quantile of the drawn changes of its logarithm)
//
// with the fit's widening: draws know neither how few they are drawn from nor that neighbours are
// wrong together.
#ifndef ASTRA_BRIDGE_CALIBRATION_BOOTSTRAP_H_
#define ASTRA_BRIDGE_CALIBRATION_BOOTSTRAP_H_

#include <cstdint>
#include <vector>

#include "astra_bridge/calibration/parameter_fit.h"

namespace meridian {

struct ParameterInterval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  int draws = 400;
  // Equal seeds, equal intervals, on all machines.
  uint64_t seed = 1;
};

// Returns the intervals of the identifiable parameters, in their order. The engine is taken to be
// as the fit found it: log time changes with log parameters as the sensitivities say.
std::vector<ParameterInterval> BootstrapIntervals(const ParameterFit& fit,
                                                  const BootstrapOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_BOOTSTRAP_H_
