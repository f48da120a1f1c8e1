// SPDX-License-Identifier: Apache-2.0
// The host's part of a run: the calls that launched device work, and the time between them.
//
//   thread 0   [call]-[ gap ]-[call]-[ gap ]-[call]       program order
//                 | launch        |      ^
//   stream 7      [kernel]        [kernel]| sync: the device was idle when the next call came
#ifndef CHAKRA_EXPORT_XSPACE_HOST_NODES_H_
#define CHAKRA_EXPORT_XSPACE_HOST_NODES_H_

#include <vector>

#include "chakra_export/run/run_graph.h"
#include "chakra_export/xspace/device_work.h"

namespace meridian {

// Adds a node for each call that launched work of the graph, and gaps between the calls of a
// thread. A call lasts until it returns or its work starts, whichever comes first. There is a
// profile for each rank, null for none; those of devices without calls (CPU) add nothing.
void AddHostNodes(const std::vector<const ProfileWork*>& profile_of_rank, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HOST_NODES_H_
