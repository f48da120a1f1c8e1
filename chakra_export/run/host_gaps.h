// SPDX-License-Identifier: Apache-2.0
// Time in which a device had nothing to do because its host was not ready, as nodes of the device:
//
//   measured    [kernel a]          [kernel b]
//   graph       [kernel a]-[ gap   ]-[kernel b]
//                               launch
//
// A gap lasts from the end of the computation before it, or of what its node waits for if that is
// later, to its node's start. Work of which nobody knows the launch (XLA:CPU, TPU) may have waited
// for any work of its rank that had ended. Gaps shorter than a microsecond are carried along until
// they make one, so that a replay never drifts from what was measured.
#ifndef CHAKRA_EXPORT_RUN_HOST_GAPS_H_
#define CHAKRA_EXPORT_RUN_HOST_GAPS_H_

#include <vector>

#include "chakra_export/run/run_graph.h"

namespace meridian {

// Adds gaps before device work. Where the host's call that launched it is there, only those that
// are longer than a device takes to start (inferred_waits.h). `order` is a GlobalOrder of the graph
// with all its edges. Returns the order with the gaps in it, each right before its node.
//
// The run begins with the earliest start of all ranks, if these have one clock; a rank that starts
// later has a gap before what it begins with. A rank whose first node communicates has a gap before
// it in any case, if only an empty one: some simulators cannot send at time 0.
std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_HOST_GAPS_H_
