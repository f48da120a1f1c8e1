// What bounds a node of a workload, by what its exporter said of it: one rule for work of profiles
// and for nodes of traces that were exported from them.
#ifndef CRITICAL_PATH_NODE_BOUND_H_
#define CRITICAL_PATH_NODE_BOUND_H_

#include "absl/strings/string_view.h"
#include "critical_path/path_graph.h"

namespace meridian {

// `op_kind` is one of chakra_export/xspace/work_nodes.h, or empty. Collectives without a
// counterpart count as communication though they are exported as computation.
BoundBy BoundByOf(absl::string_view op_kind, bool on_host, bool communicates);

}  // namespace meridian

#endif  // CRITICAL_PATH_NODE_BOUND_H_
