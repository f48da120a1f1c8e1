// Measured cells beside the engine's times of them, kind by kind: what corrections are fitted to.
#ifndef ASTRA_BRIDGE_CALIBRATION_CORRECTION_POINTS_H_
#define ASTRA_BRIDGE_CALIBRATION_CORRECTION_POINTS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {

// A cell of one kind, or the geometric mean of a group's cells of neighbouring sizes.
struct CorrectionPoint {
  int64_t bytes = 0;
  // Equal for points of the same group.
  uint32_t group = 0;
  // How many ranks take part; of a transfer between two: in the run.
  int32_t ranks = 0;
  double engine_ns = 0;
  // The engine's time of two ranks for as many bytes: no group takes less. Positive.
  double least_engine_ns = 0;
  double measured_ns = 0;
  double relative_error = 0;
  // As TransferCell::protocol.
  std::string protocol;
};

// By CollectiveKind.
using PointsByKind = std::array<std::vector<CorrectionPoint>, kTimedKinds>;

// Engine times, and those of two ranks, are by cell. At most kMaxSizes sizes of a kind: see
// MergeSizes.
PointsByKind MakeCorrectionPoints(absl::Span<const TransferCell> cells,
                                  absl::Span<const double> engine_ns,
                                  absl::Span<const double> least_engine_ns);

// Returns the points with at most kMaxSizes sizes: as they are, or, where there are more,
// neighbouring sizes merged. A merged size is the geometric mean of its sizes and has one point of
// each group, whose protocol is the one that all of its points have, if any.
std::vector<CorrectionPoint> MergeSizes(const std::vector<CorrectionPoint>& points);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CORRECTION_POINTS_H_
