// SPDX-License-Identifier: Apache-2.0
// A run without its hosts, for simulators of devices, which have none. What the hosts passed on
// stays: work that was launched after its thread had waited for other work waits for that.
//
//   thread    [launch a] . . waits for a . . [launch b]
//   stream 7        [a]------------------+
//   stream 16                            +--sync--> [b]
//
// A thread knows what it waited for, and what a thread that it waited for knew.
#ifndef CHAKRA_EXPORT_RUN_HOST_FOLDING_H_
#define CHAKRA_EXPORT_RUN_HOST_FOLDING_H_

#include <vector>

#include "chakra_export/run/run_graph.h"

namespace meridian {

// `order` is a GlobalOrder of the graph. Returns it without the host's nodes; their edges are gone,
// the nodes themselves stay in the graph.
std::vector<NodeIndex> FoldHosts(const std::vector<NodeIndex>& order, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_HOST_FOLDING_H_
