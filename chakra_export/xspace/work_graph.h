// The graph of a run while it is being made: nodes of all ranks, edges within ranks, and which
// nodes are one communication. Passes add edges and nodes; ToExecutionGraph ends the making.
//
// A rank's nodes are added in the order of their starts. Every pass up to OrderCommunication adds
// edges from a node to a later one of its rank only, so that no rank has a cycle of its own.
#ifndef CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_
#define CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/xspace/device_work.h"

namespace meridian {

struct WorkNode {
  static constexpr uint32_t kNoInstance = std::numeric_limits<uint32_t>::max();

  absl::string_view name;
  ChakraProtoMsg::NodeType type = ChakraProtoMsg::COMP_NODE;
  Resource resource;
  // Unix time, as measured; kNoTimeNs when nothing was.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // What it takes in a simulation: of communication the transfer without the waiting, where the
  // clocks tell.
  int64_t duration_ns = 0;
  std::optional<Communication> communication;
  // Collectives of one execution have one number on all ranks; a send and its receive, too.
  uint32_t instance = kNoInstance;
  // Of the instance as a whole: when its last member had started, and how long it took from then.
  int64_t instance_start_ns = 0;
  int64_t transfer_ns = 0;
  // What a COMP node is when it is no kernel; empty for kernels.
  absl::string_view op_kind;
  // The first of the pieces that the node stands for, and how many they are; null and 0 for nodes
  // that were made up.
  const DeviceWork* work = nullptr;
  uint32_t pieces = 0;
  // What it ran; null when that is not known, or several.
  const HloInstruction* instruction = nullptr;
  // Of the nodes that one instruction ran as, the one that has its shapes and its cost.
  bool bears_cost = false;
  // What its pieces compute and move, as far as it is known; 0 where another node bears it.
  int64_t operations = 0;
  int64_t bytes = 0;

  bool IsCommunication() const { return communication.has_value(); }
};

struct WorkEdge {
  NodeIndex node = 0;
  NodeIndex source = 0;
  EdgeKinds kinds;
};

struct WorkGraph {
  std::vector<WorkNode> nodes;
  std::vector<WorkEdge> edges;
  // That nodes' communication points to; the first is that of all ranks.
  std::vector<ProcessGroup> groups;
  // Every rank of the run.
  int64_t rank_count = 0;
};

// The edges of each node, in one array; a snapshot.
class WorkSources {
 public:
  explicit WorkSources(const WorkGraph& graph);

  absl::Span<const WorkEdge> Of(NodeIndex node) const {
    return absl::MakeConstSpan(edges_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  std::vector<size_t> begins_;
  std::vector<WorkEdge> edges_;
};

// A stream begins its next work when it has done the last; also where the measured times overlap a
// little, as those of kernels that are launched early do.
void AddStreamOrder(WorkGraph* graph);

// `order` holds every node once; ids count up in that order, from 1 on each rank. Node i of the
// result is order[i].
ExecutionGraph ToExecutionGraph(const WorkGraph& graph, absl::Span<const NodeIndex> order);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_
