// What a simulation found.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "astra_bridge/engine/link_use.h"
#include "astra_bridge/engine/send_matcher.h"
#include "astra_bridge/engine/transfer_log.h"

namespace meridian {

struct NodeTime {
  int32_t rank = 0;
  uint64_t id = 0;
  int64_t issue_ns = 0;
  int64_t finish_ns = 0;
};

struct SimulationResult {
  // By rank.
  std::vector<int64_t> finish_ns;
  // By rank, and within a rank in the order of its nodes.
  std::vector<NodeTime> nodes;
  // Links that were used, by dimension and devices. Only congestion-aware.
  std::vector<LinkUse> links;
  // Collectives that tie all their members together, and messages of sends; no broadcasts.
  TransferLog transfers;
  UnreceivedMessages unreceived_messages;

  // Returns when the last rank is done.
  int64_t makespan_ns() const {
    return finish_ns.empty() ? 0 : *std::max_element(finish_ns.begin(), finish_ns.end());
  }
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
