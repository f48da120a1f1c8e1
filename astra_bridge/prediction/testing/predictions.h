// SPDX-License-Identifier: Apache-2.0
// Predictions for tests: on which network, with which options.
#ifndef ASTRA_BRIDGE_PREDICTION_TESTING_PREDICTIONS_H_
#define ASTRA_BRIDGE_PREDICTION_TESTING_PREDICTIONS_H_

#include <utility>
#include <vector>

#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// The embedded engine, aware of congestion.
inline TimingSetup EmbeddedSetup(std::vector<NetworkDimension> dimensions) {
  TimingSetup setup;
  setup.fabrics = OneFabric(FabricOf(std::move(dimensions)));
  setup.timing = EmbeddedTiming(setup.fabrics, Congestion::kAware);
  return setup;
}

// A ring of four.
inline TimingSetup RingSetup() { return EmbeddedSetup({Dimension(BlockShape::kRing, 4)}); }

inline IterationOptions SnapshotOptions() {
  IterationOptions options;
  options.mode = TimingMode::kSnapshot;
  return options;
}

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_TESTING_PREDICTIONS_H_
