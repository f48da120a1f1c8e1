#include "chakra_export/xspace/work_graph.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Made-up nodes, communication and access to memory have no place in a joint node.
bool CanJoin(const WorkNode& node) {
  return node.type == ChakraProtoMsg::COMP_NODE && node.work != nullptr;
}

bool IsOneInstruction(const WorkNode& a, const WorkNode& b) {
  return a.resource == b.resource && a.op_kind == b.op_kind && !a.work->hlo_op.empty() &&
         std::tie(a.work->run_id, a.work->program, a.work->hlo_op) ==
             std::tie(b.work->run_id, b.work->program, b.work->hlo_op);
}

bool IsOneStep(const WorkNode& a, const WorkNode& b) {
  return a.resource.rank == b.resource.rank &&
         std::tie(a.work->step, a.work->run_id) == std::tie(b.work->step, b.work->run_id);
}

// (rank, time) of every end of communication.
std::set<std::pair<int64_t, int64_t>> CommunicationEnds(const WorkGraph& graph) {
  std::set<std::pair<int64_t, int64_t>> ends;
  for (const WorkNode& node : graph.nodes) {
    if (node.IsCommunication()) ends.insert({node.resource.rank, node.end_ns});
  }
  return ends;
}

}  // namespace

void WorkNode::SetCollective(int64_t comm_size, ChakraProtoMsg::CollectiveCommType kind,
                             GroupIndex group) {
  type = ChakraProtoMsg::COMM_COLL_NODE;
  communication = Communication{comm_size, kind, group};
}

void WorkNode::SetMessage(bool is_send, int64_t comm_size, int64_t source, int64_t target,
                          int32_t tag) {
  type = is_send ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE;
  communication = Communication{comm_size, {}, 0, source, target, tag};
}

ProcessGroupList::ProcessGroupList(int64_t rank_count) : groups_(1) {
  for (int64_t rank = 0; rank < rank_count; ++rank) groups_[0].ranks.push_back(rank);
}

GroupIndex ProcessGroupList::Add(const std::vector<int64_t>& ranks) {
  // ASTRA-sim runs a group of all ranks as it runs the world, whatever its order.
  if (ranks.size() >= groups_[0].ranks.size()) return 0;
  const auto [it, is_new] = known_.emplace(ranks, static_cast<GroupIndex>(groups_.size()));
  if (is_new) groups_.push_back({absl::StrCat(groups_.size()), ranks});
  return it->second;
}

absl::Status ProcessGroupList::Check() const {
  const auto named = static_cast<int64_t>(groups_.size()) - 1;
  if (named <= kMaxGroupNumber) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the run has ", named, " groups; ASTRA-sim tells at most ", kMaxGroupNumber,
                   " apart; export fewer steps with --steps"));
}

void AddStreamOrder(WorkGraph* graph) {
  // Of a stream: the nodes that share the last start, and those that they wait for.
  struct Stream {
    std::vector<NodeIndex> last;
    std::vector<NodeIndex> before;
  };
  std::map<Resource, Stream> streams;
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    const WorkNode& work = graph->nodes[node];
    Stream& stream = streams[work.resource];
    // A send and its receive are one kernel: they begin together.
    const bool is_same_kernel =
        !stream.last.empty() && work.work == graph->nodes[stream.last[0]].work;
    if (!is_same_kernel) {
      stream.before = std::move(stream.last);
      stream.last.clear();
    }
    for (const NodeIndex source : stream.before) {
      graph->edges.push_back({node, source, EdgeKind::kStream});
    }
    stream.last.push_back(node);
  }
}

void MergeWork(WorkGranularity granularity, WorkGraph* graph) {
  if (granularity == WorkGranularity::kKernel) return;
  const std::set<std::pair<int64_t, int64_t>> ends = CommunicationEnds(*graph);
  std::vector<NodeIndex> places(graph->nodes.size());
  std::vector<WorkNode> merged;
  // The last piece of the last merged node: like is compared with like.
  const WorkNode* last_piece = nullptr;
  for (NodeIndex i = 0; i < graph->nodes.size(); ++i) {
    const WorkNode& node = graph->nodes[i];
    bool joins = last_piece != nullptr && CanJoin(*last_piece) && CanJoin(node) &&
                 (granularity == WorkGranularity::kStep ? IsOneStep(*last_piece, node)
                                                        : IsOneInstruction(*last_piece, node));
    if (joins) {
      const auto end = ends.upper_bound({node.resource.rank, merged.back().start_ns});
      joins = end == ends.end() || *end > std::make_pair(node.resource.rank, node.start_ns);
    }
    if (joins) {
      WorkNode& joint = merged.back();
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

ExecutionGraph ToExecutionGraph(const WorkGraph& graph, absl::Span<const NodeIndex> order) {
  ExecutionGraphBuilder builder;
  std::vector<GroupIndex> groups;
  for (const ProcessGroup& group : graph.groups) groups.push_back(builder.AddGroup(group));
  std::map<int64_t, uint64_t> next_id;
  std::vector<NodeIndex> places(graph.nodes.size(), kNoNodeIndex);
  for (const NodeIndex index : order) {
    const WorkNode& work = graph.nodes[index];
    ExecutionNode node;
    node.id = ++next_id[work.resource.rank];
    node.name = work.name;
    node.type = work.type;
    node.resource = builder.AddResource(work.resource);
    node.start_ns = work.start_ns;
    node.duration_ns = work.duration_ns;
    node.communication = work.communication;
    if (node.communication.has_value()) {
      node.communication->group = groups[node.communication->group];
    }
    places[index] = builder.AddNode(node);
  }
  for (const DependencyEdge& edge : graph.edges) {
    builder.AddDependency(places[edge.node], places[edge.source], edge.kinds);
  }
  return std::move(builder).Build();
}

}  // namespace meridian
