// What is left between the engine and the measured times, kind by kind: lines in segments of bytes
// (segmented_line.h). How much a segment has to gain to be worth it is found by leaving out whole
// sizes, and whole numbers of ranks, and predicting them.
#ifndef ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_
#define ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_

#include "astra_bridge/calibration/correction_points.h"
#include "astra_bridge/corrections/corrections.h"

namespace meridian {

struct PenaltyChoice {
  double penalty = 0;
  // Mean |log(predicted / measured)| of what was left out, with this penalty; 0 when there was
  // nothing to leave out.
  double error = 0;
};

// Leaves out each size that lies between others, all groups of it, and each number of ranks where
// there are several. Returns the penalty that predicts them best; the largest of equals.
PenaltyChoice ChoosePenalty(const PointsByKind& points);

// Kinds without points get no segments.
Corrections FitCorrections(const PointsByKind& points, double penalty);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CORRECTION_FIT_H_
