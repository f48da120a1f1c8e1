#include "chakra_export/xspace/communication_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

// Nodes that come at once: one, or the members of a collective.
struct Joints {
  explicit Joints(const WorkGraph& graph) : of_node(graph.nodes.size()) {
    absl::flat_hash_map<uint32_t, uint32_t> collectives;
    for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
      const WorkNode& work = graph.nodes[node];
      uint32_t joint = static_cast<uint32_t>(members.size());
      int64_t time_ns = work.start_ns;
      if (work.type == ChakraProtoMsg::COMM_COLL_NODE) {
        joint = collectives.emplace(work.instance, joint).first->second;
        time_ns = work.instance_start_ns;
      }
      if (joint == members.size()) {
        members.emplace_back();
        times_ns.push_back(time_ns);
      }
      members[joint].push_back(node);
      of_node[node] = joint;
    }
  }

  // The joint of each node.
  std::vector<uint32_t> of_node;
  // By joint: its nodes, and when it began.
  std::vector<std::vector<NodeIndex>> members;
  std::vector<int64_t> times_ns;
};

// Returns pairs of source and target: those of edges and those from sends to receives.
std::vector<std::pair<uint32_t, uint32_t>> JointEdges(const WorkGraph& graph,
                                                      const Joints& joints) {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DependencyEdge& edge : graph.edges) {
    edges.push_back({joints.of_node[edge.source], joints.of_node[edge.node]});
  }
  std::map<uint32_t, NodeIndex> sends;
  for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].type == ChakraProtoMsg::COMM_SEND_NODE) {
      sends[graph.nodes[node].instance] = node;
    }
  }
  for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].type != ChakraProtoMsg::COMM_RECV_NODE) continue;
    const auto send = sends.find(graph.nodes[node].instance);
    if (send != sends.end()) edges.push_back({joints.of_node[send->second], joints.of_node[node]});
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

// Names a joint that never came, since it waits for itself through others, or for one that does.
absl::Status DescribeDeadlock(const WorkGraph& graph, const Joints& joints,
                              const std::vector<uint32_t>& waiting) {
  std::string ranks;
  const WorkNode* stuck = nullptr;
  for (uint32_t joint = 0; joint < joints.members.size() && stuck == nullptr; ++joint) {
    if (waiting[joint] == 0 || joints.members[joint].size() < 2) continue;
    for (const NodeIndex node : joints.members[joint]) {
      stuck = &graph.nodes[node];
      absl::StrAppend(&ranks, ranks.empty() ? "" : ", ", stuck->resource.rank);
    }
  }
  if (stuck == nullptr) return absl::InternalError("the nodes of a rank wait for each other");
  return absl::FailedPreconditionError(absl::StrCat(
      "collective ", std::string(stuck->name), " at ", stuck->instance_start_ns, " ns of ranks ",
      ranks,
      " waits for itself: the ranks run their collectives in different orders; the profiles may "
      "not be of one run"));
}

// True for communication that takes a simulator's slot.
bool TakesSlot(const WorkNode& node) {
  return node.IsCommunication() && node.type != ChakraProtoMsg::COMM_RECV_NODE;
}

}  // namespace

absl::StatusOr<std::vector<NodeIndex>> GlobalOrder(const WorkGraph& graph) {
  const Joints joints(graph);
  const std::vector<std::pair<uint32_t, uint32_t>> edges = JointEdges(graph, joints);
  std::vector<uint32_t> waiting(joints.members.size(), 0);
  for (const auto& edge : edges) ++waiting[edge.second];
  using Entry = std::tuple<int64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (uint32_t joint = 0; joint < joints.members.size(); ++joint) {
    if (waiting[joint] == 0) ready.push({joints.times_ns[joint], joint});
  }
  std::vector<NodeIndex> order;
  while (!ready.empty()) {
    const uint32_t joint = std::get<1>(ready.top());
    ready.pop();
    const std::vector<NodeIndex>& members = joints.members[joint];
    order.insert(order.end(), members.begin(), members.end());
    auto edge = std::lower_bound(edges.begin(), edges.end(), std::make_pair(joint, uint32_t{0}));
    for (; edge != edges.end() && edge->first == joint; ++edge) {
      if (--waiting[edge->second] == 0) ready.push({joints.times_ns[edge->second], edge->second});
    }
  }
  if (order.size() < graph.nodes.size()) return DescribeDeadlock(graph, joints, waiting);
  return order;
}

void AddCommunicationOrder(const std::vector<NodeIndex>& order, WorkGraph* graph) {
  std::map<int64_t, NodeIndex> last;
  for (const NodeIndex node : order) {
    const WorkNode& work = graph->nodes[node];
    if (!TakesSlot(work)) continue;
    const auto [it, is_first] = last.emplace(work.resource.rank, node);
    if (is_first) continue;
    graph->edges.push_back({node, it->second, EdgeKind::kControl});
    it->second = node;
  }
}

void AddObservedCommunicationOrder(const std::vector<NodeIndex>& order, WorkGraph* graph) {
  struct Placed {
    NodeIndex node = 0;
    // The last end of this node and all before it on the rank.
    int64_t last_end_ns = 0;
  };
  std::map<int64_t, std::vector<Placed>> ranks;
  for (const NodeIndex node : order) {
    const WorkNode& work = graph->nodes[node];
    if (!TakesSlot(work)) continue;
    std::vector<Placed>& placed = ranks[work.resource.rank];
    for (size_t i = placed.size(); i-- > 0;) {
      const WorkNode& before = graph->nodes[placed[i].node];
      if (before.end_ns > work.start_ns) continue;
      graph->edges.push_back({node, placed[i].node, EdgeKind::kControl});
      // It has waited for all that came before it.
      if (i == 0 || placed[i - 1].last_end_ns <= before.start_ns) break;
    }
    const int64_t last_end_ns = placed.empty() ? work.end_ns : placed.back().last_end_ns;
    placed.push_back({node, std::max(last_end_ns, work.end_ns)});
  }
}

}  // namespace meridian
