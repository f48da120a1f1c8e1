// SPDX-License-Identifier: Apache-2.0
// A workload whose transfers (collectives, and messages of sends), each alone on the network, last
// what the corrections of a calibration make of them; together, the network says.
//
//   engine       |latency|== bytes ==|                 E
//   corrected    |overhead|latency|=== more bytes ===|  C = ratio x (E + overhead)
//
// A transfer moves so many more bytes, or fewer, as the ratio says, so that others wait for it as
// much longer; what then lacks to C is overhead, in which its ranks wait and the network is free. One
// that is shorter than the network's latency alone lasts C, and meets nothing on the network.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTED_WORKLOAD_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTED_WORKLOAD_H_

#include <functional>

#include "absl/status/statusor.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// What times of a transfer are multiplied by.
using TransferFactor = std::function<double(const TransferTraits&)>;

// Besides, the time of a transfer is multiplied by its factor; null: by 1. Errors are those of
// Simulate.
absl::StatusOr<Workload> CorrectWorkload(const Workload& workload, const NetworkConfig& network,
                                         const SystemConfig& system, Congestion congestion,
                                         const Corrections& corrections,
                                         const TransferFactor& factor = nullptr);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTED_WORKLOAD_H_
