// SPDX-License-Identifier: Apache-2.0
// Fabrics and comm edges for tests.
#ifndef ASTRA_BRIDGE_TESTING_FABRICS_H_
#define ASTRA_BRIDGE_TESTING_FABRICS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/testing/builders.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Returns a fabric with the default system. Different dimensions have different hashes.
Fabric FabricOf(std::vector<NetworkDimension> dimensions);

// Has every collective carried out by this algorithm in every dimension.
void UseAlgorithm(absl::string_view name, Fabric* fabric);

// Returns a set of this one fabric, for all edges.
std::shared_ptr<const FabricSet> OneFabric(Fabric fabric);

// Returns an edge whose id is its canonical text.
CommEdge Edge(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants);

// Returns the ranks 0 to count - 1.
std::vector<int32_t> Ranks(int32_t count);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TESTING_FABRICS_H_
