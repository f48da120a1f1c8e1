// SPDX-License-Identifier: Apache-2.0
// From a graph to Chakra traces, one per rank. ReadEtGraph reads the same graph again.
#ifndef CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_
#define CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/workload_report.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

// Adds to a node what the graph does not hold, or changes what it says; may be null. Called from
// several threads, for nodes of different ranks.
using EtNodeDecorator = std::function<void(NodeIndex node, ChakraProtoMsg::Node* message)>;

// What decides on what nodes of a rank have in common: what ran, its program's part, what it computes
// and moves, its kind as an operation and as a node.
using EtNodeKind =
    std::tuple<const void*, const void*, int64_t, int64_t, absl::string_view, int32_t>;

struct EtDecorators {
  // Adds attributes that differ from node to node, none that `shared` or CompleteForSimulators sets,
  // and nothing else.
  EtNodeDecorator own;
  // Adds, behind these, what nodes of one kind have in common.
  EtNodeDecorator shared;
  // Returns the node's kind, of which `shared` is asked once for each rank; nullopt for a node by
  // itself. Null when all nodes are.
  std::function<std::optional<EtNodeKind>(NodeIndex node)> kind_of;
};

// Writes the traces and the groups of the graph's ranks, which may be some of the workload's, nodes
// in the order of ids. Every edge becomes a data dependency, since not every reader looks at
// control dependencies; the attribute dep_kinds says which they are. Durations are rounded to
// microseconds so that their sum along a resource is never off by more than half of one; the exact
// times are attributes.
// Ids must be unique on a rank, and edges stay within one.
absl::Status AddEtGraph(const ExecutionGraph& graph, const EtDecorators& decorators,
                        EtWorkloadWriter* writer);

// Writes a workload that is in one graph, in place of what is under the prefix
// (EtWorkloadWriter::Commit).
absl::StatusOr<ChakraWorkloadReport> WriteEtWorkload(FileSystem& file_system,
                                                     const ExecutionGraph& graph,
                                                     const std::string& prefix, int64_t rank_count,
                                                     const EtDecorators& decorators = {});

// Returns the groups of the graph apart from that of all ranks.
CommGroups GroupsOf(const ExecutionGraph& graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_ET_GRAPH_WRITER_H_
