// SPDX-License-Identifier: Apache-2.0
// Latency, bandwidth and overhead of a network, each by the transfers that tell it:
//
//   time of a cell = overhead + sum over dimensions of (steps x latency + bytes / bandwidth)
//
// Where all cells are as simple as that (5 % off in the mean), all numbers are fitted at once. Else
//
//   bandwidth            by the large: cells within kLargeSpan of the largest of their series that take
//                        ten times as long as small ones
//   latency, overhead    by the small: cells that take at most twice as long as small ones, less what
//                        their bytes take
//
// four times in turn. Steps and bytes of a cell are the engine's own. An overhead is told
// only where cells have different numbers of steps; else it is part of the latency. The sum of
// relative errors is minimised, not that of their squares: a cache, a burst that a shaped link lets
// through or a retransmission moves some cells far, and those must not move the fit.
//
// A series is the cells that differ in bytes alone. Intervals come from fits to series drawn with
// replacement (to cells where there are few series), so they show how far kinds and groups
// disagree.
#ifndef ASTRA_BRIDGE_CALIBRATION_PHYSICS_H_
#define ASTRA_BRIDGE_CALIBRATION_PHYSICS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Sizes that tell bandwidth are at most so many times smaller than the largest.
inline constexpr double kLargeSpan = 8;

struct Physics {
  // The network that was given, with the fitted numbers.
  Fabric fabric;
  // What every collective costs once.
  double overhead_ns = 0;
  // Latency and bandwidth of each dimension, then the overhead. One is not identifiable when no
  // transfer tells it, and has the value that was given; or when its interval spans more than a factor
  // of six, and has the value that fits best.
  std::vector<CalibratedParameter> parameters;
  // Cells have one number of steps each way only, so that the overhead is in the latency.
  bool latency_includes_overhead = false;
};

// Fits to at least one cell. What no cell tells keeps the value of `start`. Intervals cost two hundred
// fits.
absl::StatusOr<Physics> FitPhysics(const Fabric& start, absl::Span<const TransferCell> cells,
                                   bool with_intervals = false);

// Returns how many times longer than the engine says the cell takes on a network whose ranks have
// one port each: pairs of a fully connected network have links of their own there, so that a rank
// would send to all others at once at full rate. 1 for all but all-to-all, and on networks of
// several levels, where all-to-all has no say in the fit.
double PortFactor(const Fabric& fabric, const TransferCell& cell);

// Returns how long each cell takes alone: overhead + PortFactor x the engine's time.
absl::StatusOr<std::vector<double>> PhysicalTimesNs(const Physics& physics,
                                                    absl::Span<const TransferCell> cells);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PHYSICS_H_
