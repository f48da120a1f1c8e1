// SPDX-License-Identifier: Apache-2.0
// From the transfers of runs to a network that gives their times, with what it is worth:
//
//   transfers -> cells -> physics -> corrections      what is written
//                  \-> the same without some cells    what it would have predicted of them
//
// What is held out is always a whole size, kind or group: repeats of a cell, and neighbours of it
// in other kinds, know too much about each other.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/holdout.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

struct CalibrationOptions {
  // Shape of the network, and the values of what the transfers do not tell. Default: links between
  // all ranks, in two levels where runs have groups within and across nodes.
  std::optional<Fabric> topology;
  Holdout holdout = Holdout::kSize;
  // Fit only to transfers of these bytes, and hold out all others; empty: fit to all.
  std::vector<int64_t> sizes;
  FitProgress progress;
};

struct Calibration {
  // The network is as large as the largest run.
  Fabric fabric;
  Corrections corrections;
  CalibrationReport report;
};

// InvalidArgument when there is nothing to calibrate with: no transfers, a single size, runs on
// different devices, groups within and across nodes whose levels cannot be told, or --sizes that do
// not occur.
absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_
