// SPDX-License-Identifier: Apache-2.0
// Another timing with the corrections of a calibration.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_

#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Returns what corrections ask about an edge that is alone: a message goes one way.
TransferTraits TraitsOf(const CommEdge& edge);

NetworkTiming CorrectedTiming(NetworkTiming timing, Corrections corrections);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
