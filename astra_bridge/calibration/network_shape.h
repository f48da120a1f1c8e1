// SPDX-License-Identifier: Apache-2.0
// Which shape of a network, and which algorithms, predict measured cells best that they were not
// fitted to.
#ifndef ASTRA_BRIDGE_CALIBRATION_NETWORK_SHAPE_H_
#define ASTRA_BRIDGE_CALIBRATION_NETWORK_SHAPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// How well a shape of the network predicts cells that it was not fitted to.
struct ShapeScore {
  // The shape, and the algorithms that go best with it.
  Fabric start;
  std::vector<HeldOutError> errors;

  // Returns the mean of |log(predicted / measured)|; 0 where nothing was held out.
  double MeanError() const;
};

// Returns the shapes that a network of so many ranks may have, the best first: each pair of ranks
// by itself (FullyConnected), behind a switch, in a ring. Sizes, numbers of ranks and placements
// are held out in turn. Hosts stand behind switches that do not hold messages up, so that each pair
// is taken to be by itself unless another shape is measurably better; a ring is looked at only
// where groups of near and of far ranks were measured, for then neighbours must be cheaper than
// strangers. Each kind has the algorithm whose times change with the number and places of ranks as
// measured.
absl::StatusOr<std::vector<ShapeScore>> CompareShapes(int32_t ranks,
                                                      absl::Span<const TransferCell> cells);

// Returns the shape as large as so many ranks, with reductions that cost nothing unless it says
// what they cost.
Fabric StartOf(const Fabric& shape, int32_t ranks);

// Fits without sizes, numbers of ranks and placements in turn, and returns what these were off by.
absl::StatusOr<std::vector<HeldOutError>> FindHeldOutErrors(const Fabric& start,
                                                            absl::Span<const TransferCell> cells);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_NETWORK_SHAPE_H_
