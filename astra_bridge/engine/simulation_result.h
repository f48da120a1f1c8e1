// SPDX-License-Identifier: Apache-2.0
// What a simulation found.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "chakra_export/graph/rank_activity.h"

namespace meridian {

struct NodeTime {
  int32_t rank = 0;
  // Id of the workload's node.
  uint64_t id = 0;
  int64_t issue_ns = 0;
  int64_t finish_ns = 0;
};

struct SimulationResult {
  // When each rank is done, by rank.
  std::vector<int64_t> finish_ns;
  // What each did until then, by rank. Empty when the engine does not tell.
  std::vector<RankActivity> activity;
  // Times of all nodes by rank, and within a rank in the order of its nodes.
  std::vector<NodeTime> nodes;

  // Returns when the last rank is done.
  int64_t makespan_ns() const { return finish_ns.empty() ? 0 : *absl::c_max_element(finish_ns); }
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
