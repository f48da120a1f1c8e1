#include "astra_bridge/calibration/calibrated_model.h"

#include "astra_bridge/calibration/correction_points.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {

absl::StatusOr<CalibratedModel> FitModel(const Fabric& start,
                                         absl::Span<const TransferCell> cells) {
  CalibratedModel model;
  ASSIGN_OR_RETURN(model.parameters, FitParameters(start, cells));
  ASSIGN_OR_RETURN(const std::vector<double> engine_ns,
                   EngineTimesNs(model.parameters.fabric, cells));
  ASSIGN_OR_RETURN(const std::vector<double> least_engine_ns,
                   LeastEngineTimesNs(model.parameters.fabric, cells));
  const PointsByKind points = MakeCorrectionPoints(cells, engine_ns, least_engine_ns);
  model.penalty = ChoosePenalty(points);
  model.corrections = FitCorrections(points, model.penalty.penalty);
  return model;
}

absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells) {
  ASSIGN_OR_RETURN(std::vector<double> times_ns, EngineTimesNs(fabric, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    times_ns[i] = corrections.CorrectedNs(cells[i].kind, cells[i].bytes, times_ns[i]);
  }
  return times_ns;
}

}  // namespace meridian
