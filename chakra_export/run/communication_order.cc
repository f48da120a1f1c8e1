#include "chakra_export/run/communication_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

bool IsCollective(const RunNode& node) { return node.type == ChakraProtoMsg::COMM_COLL_NODE; }

// Nodes that come at once: one, or the members of a collective.
class Joints {
 public:
  explicit Joints(const RunGraph& graph) : of_node_(graph.nodes.size()) {
    absl::flat_hash_map<uint32_t, uint32_t> collectives;
    const std::map<int64_t, int64_t> begins_ns = BeginsNs(graph);
    for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
      const RunNode& work = graph.nodes[node];
      const auto fresh = static_cast<uint32_t>(times_ns_.size());
      const bool is_collective = IsCollective(work);
      const uint32_t joint =
          is_collective ? collectives.emplace(work.instance, fresh).first->second : fresh;
      if (joint == fresh) {
        times_ns_.push_back(!graph.has_one_clock ? work.start_ns - begins_ns.at(work.resource.rank)
                            : is_collective      ? work.instance_start_ns
                                                 : work.start_ns);
      }
      of_node_[node] = joint;
    }
    begins_.assign(times_ns_.size() + 1, 0);
    for (const uint32_t joint : of_node_) ++begins_[joint + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
    members_.resize(of_node_.size());
    for (NodeIndex node = 0; node < of_node_.size(); ++node) {
      members_[next[of_node_[node]]++] = node;
    }
  }

  size_t size() const { return times_ns_.size(); }
  uint32_t Of(NodeIndex node) const { return of_node_[node]; }
  // Returns when the joint began.
  int64_t time_ns(uint32_t joint) const { return times_ns_[joint]; }
  absl::Span<const NodeIndex> Members(uint32_t joint) const {
    return absl::MakeConstSpan(members_).subspan(begins_[joint],
                                                 begins_[joint + 1] - begins_[joint]);
  }

 private:
  // Returns when each rank began, where ranks have clocks of their own.
  static std::map<int64_t, int64_t> BeginsNs(const RunGraph& graph) {
    std::map<int64_t, int64_t> begins_ns;
    for (const RunNode& node : graph.nodes) {
      if (graph.has_one_clock) break;
      int64_t& begin_ns = begins_ns.emplace(node.resource.rank, node.start_ns).first->second;
      begin_ns = std::min(begin_ns, node.start_ns);
    }
    return begins_ns;
  }

  std::vector<uint32_t> of_node_;
  std::vector<int64_t> times_ns_;
  // Where the members of each joint begin; one entry more, the end of the last one's.
  std::vector<uint32_t> begins_;
  std::vector<NodeIndex> members_;
};

// Which joints wait for a joint, by edges and since a receive waits for its send.
class JointEdges {
 public:
  JointEdges(const RunGraph& graph, const Joints& joints) : waiting_(joints.size()) {
    const std::vector<std::pair<NodeIndex, NodeIndex>> messages = Messages(graph);
    const auto for_each = [&](auto visit) {
      for (const DependencyEdge& edge : graph.edges) {
        visit(joints.Of(edge.source), joints.Of(edge.node));
      }
      for (const auto& [send, receive] : messages) visit(joints.Of(send), joints.Of(receive));
    };
    begins_.assign(joints.size() + 1, 0);
    for_each([&](uint32_t source, uint32_t target) {
      ++begins_[source + 1];
      ++waiting_[target];
    });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    targets_.resize(begins_.back());
    for_each([&](uint32_t source, uint32_t target) { targets_[next[source]++] = target; });
  }

  absl::Span<const uint32_t> From(uint32_t joint) const {
    return absl::MakeConstSpan(targets_).subspan(begins_[joint],
                                                 begins_[joint + 1] - begins_[joint]);
  }
  // By joint: how many edges lead to it.
  std::vector<uint32_t> waiting() const { return waiting_; }

 private:
  // Returns the sends and their receives.
  static std::vector<std::pair<NodeIndex, NodeIndex>> Messages(const RunGraph& graph) {
    absl::flat_hash_map<uint32_t, NodeIndex> sends;
    for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
      if (graph.nodes[node].type == ChakraProtoMsg::COMM_SEND_NODE) {
        sends[graph.nodes[node].instance] = node;
      }
    }
    std::vector<std::pair<NodeIndex, NodeIndex>> messages;
    for (NodeIndex node = 0; node < graph.nodes.size() && !sends.empty(); ++node) {
      if (graph.nodes[node].type != ChakraProtoMsg::COMM_RECV_NODE) continue;
      const auto send = sends.find(graph.nodes[node].instance);
      if (send != sends.end()) messages.emplace_back(send->second, node);
    }
    return messages;
  }

  std::vector<uint32_t> waiting_;
  // Where the edges of each joint begin; one entry more, the end of the last one's.
  std::vector<size_t> begins_;
  std::vector<uint32_t> targets_;
};

// Names a joint that never came, since it waits for itself through others, or for one that does.
absl::Status DescribeDeadlock(const RunGraph& graph, const Joints& joints,
                              const std::vector<uint32_t>& waiting) {
  std::string ranks;
  const RunNode* stuck = nullptr;
  for (uint32_t joint = 0; joint < joints.size() && stuck == nullptr; ++joint) {
    if (waiting[joint] == 0 || joints.Members(joint).size() < 2) continue;
    for (const NodeIndex node : joints.Members(joint)) {
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

}  // namespace

absl::StatusOr<std::vector<NodeIndex>> GlobalOrder(const RunGraph& graph) {
  const Joints joints(graph);
  const JointEdges edges(graph, joints);
  std::vector<uint32_t> waiting = edges.waiting();
  using Entry = std::tuple<int64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (uint32_t joint = 0; joint < joints.size(); ++joint) {
    if (waiting[joint] == 0) ready.push({joints.time_ns(joint), joint});
  }
  std::vector<NodeIndex> order;
  order.reserve(graph.nodes.size());
  while (!ready.empty()) {
    const uint32_t joint = std::get<1>(ready.top());
    ready.pop();
    const absl::Span<const NodeIndex> members = joints.Members(joint);
    order.insert(order.end(), members.begin(), members.end());
    for (const uint32_t target : edges.From(joint)) {
      if (--waiting[target] == 0) ready.push({joints.time_ns(target), target});
    }
  }
  if (order.size() < graph.nodes.size()) return DescribeDeadlock(graph, joints, waiting);
  return order;
}

void AddCommunicationOrder(const std::vector<NodeIndex>& order, RunGraph* graph) {
  std::map<int64_t, NodeIndex> last;
  for (const NodeIndex node : order) {
    const RunNode& work = graph->nodes[node];
    if (!IsCollective(work)) continue;
    const auto [it, is_first] = last.emplace(work.resource.rank, node);
    if (is_first) continue;
    graph->edges.push_back({node, it->second, EdgeKind::kControl});
    it->second = node;
  }
}

}  // namespace meridian
