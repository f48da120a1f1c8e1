// SPDX-License-Identifier: Apache-2.0
// The short cuts: when all members of an algorithm start at once, do the same at the same times, and
// the order of events within an instant makes no difference, one of them is enough.
//
//   all:   0 -> 1 -> 2 -> ... -> n-1 -> 0        n * messages
//   here:  0 -> itself                           messages
#ifndef ASTRA_BRIDGE_ENGINE_RING_LOCKSTEP_H_
#define ASTRA_BRIDGE_ENGINE_RING_LOCKSTEP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// How a message gets from a member to the next, for all members alike and on links that no other
// member uses.
struct RingStep {
  // How many links are in a row; 0: the network knows no congestion, messages take crossing_ns.
  int32_t links = 0;
  // How long a message takes over one link, and how long that link is busy with it.
  int64_t crossing_ns = 0;
  int64_t sending_ns = 0;

  friend bool operator==(const RingStep& a, const RingStep& b) {
    return a.links == b.links && a.crossing_ns == b.crossing_ns && a.sending_ns == b.sending_ns;
  }
};

// Returns the member that gets what a member sends that far (ReceiverOf); members are ranks, or
// positions in a group.
int32_t MemberAhead(const CollectivePhase& phase, int32_t member, int32_t distance);

// Returns how long a collective lasts whose members all start at once, whatever else happens and in
// whatever order the events of an instant happen. Nullopt when that has to be simulated: members
// may differ, or order may matter. A rank does not communicate beside the collective. If the network
// is congestion-aware, a rank has one chunk under way at a time, groups have their links to
// themselves, and no message of the run changes its dimension on the way.
std::optional<int64_t> OrderFreeDurationNs(const CollectivePlan& plan, const GroupTable& groups,
                                           uint32_t group, const Topology& topology,
                                           const LinkNetwork& network, const SystemConfig& system);

// Returns how long a collective lasts whose members all start at once on links that messages share
// fairly, and that nothing else uses (GroupsWithOwnLinks). Nullopt when it is not one ring, or its messages
// take different times.
std::optional<int64_t> FairRingNs(const CollectivePlan& plan, const GroupTable& groups,
                                  uint32_t group, const LinkNetwork& network,
                                  const SystemConfig& system);

// Returns for each group of a workload on a network of links whether its collectives take the same
// time whatever else happens: each message from a member to the next has links that no other message
// of the workload takes. All collectives must be rings; else no group has.
std::vector<bool> GroupsWithOwnLinks(const Workload& workload, const GroupTable& groups,
                                     const NetworkConfig& network, LinkPaths& paths,
                                     const SystemConfig& system);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_RING_LOCKSTEP_H_
