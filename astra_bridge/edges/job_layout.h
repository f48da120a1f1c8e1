// SPDX-License-Identifier: Apache-2.0
// Which devices of its networks the ranks and groups of a job are.
#ifndef ASTRA_BRIDGE_EDGES_JOB_LAYOUT_H_
#define ASTRA_BRIDGE_EDGES_JOB_LAYOUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/edges/comm_edge.h"

namespace meridian {

// Device of each rank. Empty: every rank is the device of the same number.
using RankToDevice = std::map<int32_t, int32_t>;

struct JobLayout {
  // Ranks of each group in the order of the logical ring, by group id.
  std::map<std::string, std::vector<int32_t>> groups;
  // The topology key of each group, by group id, for edges that name none.
  std::map<std::string, std::string> group_topologies;
  RankToDevice rank_to_device;
};

// Gives edges that name only a group its members and topology, and replaces ranks by devices.
// InvalidArgument, naming the edge, for a group that is not known or has other members than the
// edge says, a rank without a device, and two participants on one device.
absl::Status PlaceEdges(const JobLayout& layout, std::vector<CommEdge>* edges);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_EDGES_JOB_LAYOUT_H_
