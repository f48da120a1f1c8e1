// SPDX-License-Identifier: Apache-2.0
// A simulated run as a Chrome trace: a process per rank, a thread per resource.
#ifndef ASTRA_BRIDGE_ENGINE_TIMELINE_H_
#define ASTRA_BRIDGE_ENGINE_TIMELINE_H_

#include "absl/status/status.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Writes compute nodes, host compute nodes, communication and receives, each on threads of their
// own: as many as it takes for none to overlap another. The simulation was told to keep node times
// (SimulationOptions::node_times).
absl::Status WriteTimeline(const Workload& workload, const SimulationResult& result,
                           ByteSink* sink);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TIMELINE_H_
