// Latency, bandwidth and endpoint delay that bring the engine's times nearest to the measured ones.
//
//   residual of a cell = log(measured / engine)         errors count by ratio: times span decades
//   minimise  sum Huber(residual / deviation)           over the logarithms of the parameters
//
// by damped Gauss-Newton steps against the engine itself. Afterwards each parameter's deviation is
// computed as if every kind had an unknown efficiency of its own (with mean 1), which is what the
// corrections will give it: then one size and one group say nothing about either latency or
// bandwidth, large sizes alone nothing about latency. A parameter that the cells do not tell is not
// identifiable: it keeps the value it had at the start.
#ifndef ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_
#define ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/fabric.h"

namespace meridian {

// Beyond this standard deviation of a parameter's logarithm it is not identifiable: its interval
// would span more than a factor of two either way.
inline constexpr double kMaxLogDeviation = 0.35;

struct FittedParameter {
  EngineParameter parameter;
  double value = 0;
  bool identifiable = false;
  // Standard deviation of the logarithm of the value, before it was frozen where it was.
  double log_deviation = 0;
};

struct ParameterFit {
  // The start with the fitted values.
  Fabric fabric;
  // In the order of ParametersOf.
  std::vector<FittedParameter> parameters;
  // By cell.
  std::vector<double> engine_ns;
  // By cell: d log(engine time) / d log(parameter), for the identifiable ones in their order.
  std::vector<std::vector<double>> sensitivities;
  // How far cells lie from the engine's times by what the engine does not model: a robust standard
  // deviation of the residuals.
  double model_deviation = 0;
};

// At least one cell.
absl::StatusOr<ParameterFit> FitParameters(const Fabric& start,
                                           absl::Span<const TransferCell> cells);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PARAMETER_FIT_H_
