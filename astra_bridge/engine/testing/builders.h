// SPDX-License-Identifier: Apache-2.0
// Small networks, systems and workloads for tests.
#ifndef ASTRA_BRIDGE_ENGINE_TESTING_BUILDERS_H_
#define ASTRA_BRIDGE_ENGINE_TESTING_BUILDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// Returns a dimension of 50 GiB/s and 500 ns per link unless told otherwise.
NetworkDimension Dimension(BlockShape shape, int32_t npus, double gibibytes_per_second = 50,
                           double latency_ns = 500);

NetworkConfig Network(std::vector<NetworkDimension> dimensions);

// Endpoint delay 10 ns, one chunk, free reductions; the algorithms are AstraSim's names, one per
// dimension, for all collectives.
SystemConfig SystemWith(const std::vector<std::string>& algorithms);

WorkloadNode ComputeNode(uint64_t id, int64_t duration_ns);
WorkloadNode CollectiveNode(uint64_t id, CollectiveKind op, int64_t bytes,
                            int32_t group = kWorldGroup);
WorkloadNode SendNode(uint64_t id, int32_t to_rank, int64_t bytes, int32_t tag = 0);
// An access to remote memory.
WorkloadNode MemoryNode(uint64_t id, int64_t bytes);
WorkloadNode ReceiveNode(uint64_t id, int32_t from_rank, int64_t bytes, int32_t tag = 0);

// So many ranks, each with that one node.
Workload EveryRank(int32_t ranks, const WorkloadNode& node);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TESTING_BUILDERS_H_
