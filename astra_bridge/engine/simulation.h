// The embedded network engine: runs a workload on a network, with the times that AstraSim's
// analytical backends give, to the nanosecond.
//
//   Workload workload;
//   workload.ranks.resize(8);
//   for (RankWorkload& rank : workload.ranks) rank.Add(AllReduceNode(/*bytes=*/1 << 20));
//   ASSIGN_OR_RETURN(const SimulationResult result, Simulate(workload, network, system, {}));
//   result.finish_ns[3];
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/engine/corrections.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

enum class Congestion : uint8_t {
  // Messages share links: each goes from link to link, one at a time on each.
  kAware,
  // Messages never slow each other down.
  kUnaware,
};

struct SimulationOptions {
  Congestion congestion = Congestion::kAware;
  // How many collectives and sends a rank may run at once. AstraSim: 1.
  int32_t comm_streams = 1;
  // Null: none. Applied to collectives that no other message meets on the network.
  const Corrections* corrections = nullptr;
  // Fill in SimulationResult::nodes and ::links.
  bool node_times = false;
  bool link_use = false;
  // Take no short cuts. They are exact: this is for tests of that, and for comparison.
  bool events_only = false;
};

struct NodeTime {
  int32_t rank = 0;
  uint64_t id = 0;
  int64_t issue_ns = 0;
  int64_t finish_ns = 0;
};

// What went over a link. Devices from the number of NPUs on are switches.
struct LinkUse {
  int32_t dimension = 0;
  int32_t from_device = 0;
  int32_t to_device = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
  // How long it was sending.
  int64_t busy_ns = 0;
};

struct SimulationResult {
  // By rank.
  std::vector<int64_t> finish_ns;
  // By rank, and within a rank in the order of its nodes.
  std::vector<NodeTime> nodes;
  // Links that were used, by dimension and devices. Only congestion-aware.
  std::vector<LinkUse> links;
  // Collectives that corrections were applied to, and those that met other messages.
  int64_t corrected_collectives = 0;
  int64_t uncorrected_collectives = 0;

  // Returns when the last rank is done.
  int64_t makespan_ns() const;
};

// Runs the workload to its end. What has no end or no meaning is InvalidArgument, with the source
// and key, or the rank and node, at fault: in a deadlock, the nodes that wait for each other.
absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_H_
