// SPDX-License-Identifier: Apache-2.0
// How long the transfers of a workload take with the network to themselves. Each shape (what is
// moved, how much, among ranks at which distances) is simulated once: blocks of a network look the
// same from all of its ranks, so that moving all ranks of a transfer alike changes nothing.
#ifndef ASTRA_BRIDGE_CORRECTIONS_ISOLATED_TRANSFERS_H_
#define ASTRA_BRIDGE_CORRECTIONS_ISOLATED_TRANSFERS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

class IsolatedTransfers {
 public:
  // All must outlive this object.
  IsolatedTransfers(const Workload& workload, const NetworkConfig& network,
                    const SystemConfig& system, Congestion congestion)
      : workload_(workload),
        network_(network),
        system_(system),
        congestion_(congestion),
        topology_(network) {}

  // Returns how long each part of a transfer of the workload takes when all begin at once, with the
  // trees that it had (Transfer::odd_trees). Valid as long as this object is.
  absl::StatusOr<absl::Span<const int64_t>> PartsNs(absl::Span<const TransferPart> parts,
                                                    uint64_t odd_trees = 0);

 private:
  // All that its times depend on: type, collective, bytes, place, algorithms, involved dimensions
  // and odd trees.
  using Shape =
      std::tuple<WorkloadNodeType, CollectiveKind, int64_t, int32_t, int32_t, uint64_t, uint64_t>;

  // Returns a number for how the ranks of the transfer lie to each other.
  int32_t PlaceOf(absl::Span<const TransferPart> parts, const WorkloadNode& node);
  absl::StatusOr<std::vector<int64_t>> Run(absl::Span<const TransferPart> parts,
                                           uint64_t odd_trees) const;

  const Workload& workload_;
  const NetworkConfig& network_;
  const SystemConfig& system_;
  const Congestion congestion_;
  const Topology topology_;
  // Numbers of places, by the coordinates of the ranks less those of the first.
  absl::flat_hash_map<std::vector<int32_t>, int32_t> places_;
  // Numbers of places, by the number of the group.
  absl::flat_hash_map<int32_t, int32_t> places_of_groups_;
  // The time of each part in nanoseconds.
  absl::flat_hash_map<Shape, std::vector<int64_t>> known_ns_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_ISOLATED_TRANSFERS_H_
