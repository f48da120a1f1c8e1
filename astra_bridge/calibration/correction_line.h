// One line through measured times: measured = overhead + slope * engine time.
//
// Errors count by ratio, and outliers no more than Huber's loss lets them. What differs between
// groups of different sizes is the engine's part, so an overhead is zero but for what the points
// show. It may be negative, as for a kind whose steps cost less than those of others, but not by
// more than a small part of the least that the engine charges any group for these bytes: so every
// group, of whatever size, takes its time.
#ifndef ASTRA_BRIDGE_CALIBRATION_CORRECTION_LINE_H_
#define ASTRA_BRIDGE_CALIBRATION_CORRECTION_LINE_H_

#include "absl/types/span.h"
#include "astra_bridge/calibration/correction_points.h"

namespace meridian {

struct CorrectionLine {
  double overhead_ns = 0;
  // One over the efficiency.
  double slope = 1;

  double TimeNs(double engine_ns) const { return overhead_ns + slope * engine_ns; }
};

// Of at least one point; times are positive.
CorrectionLine FitCorrectionLine(absl::Span<const CorrectionPoint> points);

// Returns what the line misses of the point: half its square in standard deviations, and less than
// that for outliers.
double LossOf(const CorrectionLine& line, const CorrectionPoint& point);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CORRECTION_LINE_H_
