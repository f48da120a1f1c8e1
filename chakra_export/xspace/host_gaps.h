// The time in which a device had nothing to do because its host was not ready. Simulators of
// devices have no host, so it becomes computation of its own:
//
//   measured    [kernel a]          [kernel b]
//   graph       [kernel a]-[ gap   ]-[kernel b]
//                     sync     launch
//
// A gap lasts from the end of the computation before it, or of what its node waits for if that is
// later, to its node's start. When the node was launched only after everything else on the device
// had ended, the host is taken to have waited for the last of that. Shorter gaps than a microsecond
// are carried along until they make one, so that a replay never drifts from what was measured.
#ifndef CHAKRA_EXPORT_XSPACE_HOST_GAPS_H_
#define CHAKRA_EXPORT_XSPACE_HOST_GAPS_H_

#include <vector>

#include "chakra_export/xspace/work_graph.h"

namespace meridian {

// `order` is a GlobalOrder of the graph with all its edges. Returns the order with the gaps in it,
// each right before its node. The run begins with the earliest start of all ranks; a rank that
// starts later has a gap before its first node. A rank whose first node communicates has a gap
// before it in any case, if only an empty one: some simulators cannot send at time 0.
std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, WorkGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HOST_GAPS_H_
