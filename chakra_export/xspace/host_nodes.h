// SPDX-License-Identifier: Apache-2.0
// The host's part of a run. Either as nodes of its own, the calls that launched device work and the
// time between them:
//
//   thread 0   [call]-[ gap ]-[call]-[ gap ]-[call]       program order
//                 | launch        |      ^
//   stream 7      [kernel]        [kernel]| sync: the device was idle when the next call came
//
// Or, since simulators of devices have no host, as computation of the device: the time in which it
// had nothing to do because its host was not ready,
//
//   measured    [kernel a]          [kernel b]
//   graph       [kernel a]-[ gap   ]-[kernel b]
//                     sync     launch
//
// A gap lasts from the end of the computation before it, or of what its node waits for if that is
// later, to its node's start. When the node was launched only after everything else on the device
// had ended, the host is taken to have waited for the last of that. Shorter gaps than a microsecond
// are carried along until they make one, so that a replay never drifts from what was measured.
#ifndef CHAKRA_EXPORT_XSPACE_HOST_NODES_H_
#define CHAKRA_EXPORT_XSPACE_HOST_NODES_H_

#include <vector>

#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/work_graph.h"

namespace meridian {

// Adds a node for each call that launched work of the graph, and gaps between the calls of a
// thread. A call lasts until it returns or its work starts, whichever comes first. There is a
// profile for each rank, null for none; those of devices without calls (CPU) add nothing.
void AddHostNodes(const std::vector<const ProfileWork*>& profile_of_rank, WorkGraph* graph);

// Adds gaps of devices. `order` is a GlobalOrder of the graph with all its edges. Returns the order
// with the gaps in it, each right before its node. The run begins with the earliest start of all
// ranks; a rank that starts later has a gap before its first node. A rank whose first node
// communicates has a gap before it in any case, if only an empty one: some simulators cannot send
// at time 0.
std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, WorkGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HOST_NODES_H_
