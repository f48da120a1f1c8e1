// SPDX-License-Identifier: Apache-2.0
// What communication costs in seconds, by the simulator in process. The participants of comm edges are
// devices of the network.
#ifndef ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
#define ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Returns how many seconds the edge takes alone on its network, until its last participant is done. An
// edge that moves nothing takes 0 s. One that cannot run there (a device the network does not have) is
// InvalidArgument and names the edge.
using NetworkTiming = std::function<absl::StatusOr<double>(const CommEdge& edge)>;

// Returns the timing of the embedded engine. A cache keeps times for other processes, under the text of
// all that they depend on: the program, congestion, contents of the fabric, and kind, bytes, algorithm and
// participants of the edge; null: nothing is kept.
NetworkTiming EmbeddedTiming(std::shared_ptr<const FabricSet> fabrics, Congestion congestion,
                             std::shared_ptr<TimingCache> cache = nullptr);

// Returns what each edge takes alone. Edges that differ in nothing but their id and the name of their
// group are timed once; `progress` is told how many have been timed.
absl::StatusOr<std::vector<double>> EstimateEdges(const NetworkTiming& timing,
                                                  absl::Span<const CommEdge> edges,
                                                  absl::FunctionRef<void(uint64_t)> progress);

// Returns what corrections ask about an edge that is alone: a message goes one way.
TransferTraits TraitsOf(const CommEdge& edge);

// Returns a timing with the corrections of a calibration.
NetworkTiming CorrectedTiming(NetworkTiming timing, Corrections corrections);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
