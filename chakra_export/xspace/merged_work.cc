#include "chakra_export/xspace/merged_work.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "chakra_export/xspace/device_work.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Made-up nodes, communication and access to memory have no place in a joint node.
bool CanJoin(const RunNode& node) {
  return node.type == ChakraProtoMsg::COMP_NODE && node.work != nullptr;
}

bool IsOneInstruction(const RunNode& a, const RunNode& b) {
  return a.resource == b.resource && a.op_kind == b.op_kind && !a.work->hlo_op.empty() &&
         std::tie(a.work->run_id, a.work->program, a.work->hlo_op) ==
             std::tie(b.work->run_id, b.work->program, b.work->hlo_op);
}

bool IsOneStep(const RunNode& a, const RunNode& b) {
  return a.resource.rank == b.resource.rank &&
         std::tie(a.work->step, a.work->run_id) == std::tie(b.work->step, b.work->run_id);
}

// (rank, time) of every end of communication.
std::set<std::pair<int64_t, int64_t>> CommunicationEnds(const RunGraph& graph) {
  std::set<std::pair<int64_t, int64_t>> ends;
  for (const RunNode& node : graph.nodes) {
    if (node.IsCommunication()) ends.insert({node.resource.rank, node.end_ns});
  }
  return ends;
}

}  // namespace

void MergeWork(WorkGranularity granularity, RunGraph* graph) {
  if (granularity == WorkGranularity::kKernel) return;
  const std::set<std::pair<int64_t, int64_t>> ends = CommunicationEnds(*graph);
  std::vector<NodeIndex> places(graph->nodes.size());
  std::vector<RunNode> merged;
  // The last piece of the last merged node: like is compared with like.
  const RunNode* last_piece = nullptr;
  for (NodeIndex i = 0; i < graph->nodes.size(); ++i) {
    const RunNode& node = graph->nodes[i];
    bool joins = last_piece != nullptr && CanJoin(*last_piece) && CanJoin(node) &&
                 (granularity == WorkGranularity::kStep ? IsOneStep(*last_piece, node)
                                                        : IsOneInstruction(*last_piece, node));
    if (joins) {
      const auto end = ends.upper_bound({node.resource.rank, merged.back().start_ns});
      joins = end == ends.end() || *end > std::make_pair(node.resource.rank, node.start_ns);
    }
    if (joins) {
      RunNode& joint = merged.back();
      joint.end_ns = std::max(joint.end_ns, node.end_ns);
      joint.duration_ns = joint.end_ns - joint.start_ns;
      joint.pieces += node.pieces;
      joint.operations = SaturateToInt64(absl::int128(joint.operations) + node.operations);
      joint.bytes = SaturateToInt64(absl::int128(joint.bytes) + node.bytes);
      if (granularity == WorkGranularity::kStep) {
        joint.op_kind = kStepOpKind;
        joint.instruction = nullptr;
      }
    } else {
      merged.push_back(node);
    }
    last_piece = &node;
    places[i] = static_cast<NodeIndex>(merged.size() - 1);
  }
  std::vector<DependencyEdge> edges;
  for (const DependencyEdge& edge : graph->edges) {
    const DependencyEdge moved{places[edge.node], places[edge.source], edge.kinds};
    if (moved.node != moved.source) edges.push_back(moved);
  }
  graph->nodes = std::move(merged);
  graph->edges = std::move(edges);
}

}  // namespace meridian
