#include "chakra_export/run/run_passes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/buckets.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/dependencies/inferred_waits.h"

namespace meridian {
namespace {

bool IsCollective(const RunNode& node) { return node.type == ChakraProtoMsg::COMM_COLL_NODE; }

// Whether the order of other ranks depends on where the node comes.
bool IsMetByOthers(const RunNode& node) {
  return IsCollective(node) || node.type == ChakraProtoMsg::COMM_SEND_NODE;
}

// Returns when each rank began, where ranks have clocks of their own.
std::map<int64_t, int64_t> BeginsNs(const RunGraph& graph) {
  std::map<int64_t, int64_t> begins_ns;
  for (const RunNode& node : graph.nodes) {
    if (graph.has_one_clock) break;
    int64_t& begin_ns = begins_ns.emplace(node.resource.rank, node.start_ns).first->second;
    begin_ns = std::min(begin_ns, node.start_ns);
  }
  return begins_ns;
}

// Nodes that come at once: one, or the members of a collective; in the graph of one rank also the
// sends of other ranks that it receives from, which have no nodes there.
struct Joints {
  // Of joints that may come next the smallest does: that of the earliest time, then of the first
  // node in a graph of all ranks.
  using Place = std::pair<int64_t, uint64_t>;

  explicit Joints(const RunGraph& graph) {
    absl::flat_hash_map<uint32_t, uint32_t> collectives;
    const std::map<int64_t, int64_t> begins_ns = BeginsNs(graph);
    of_node.reserve(graph.nodes.size());
    places.reserve(graph.nodes.size());
    for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
      const RunNode& work = graph.nodes[node];
      const auto fresh = static_cast<uint32_t>(places.size());
      const uint32_t joint =
          IsCollective(work) ? collectives.emplace(work.instance, fresh).first->second : fresh;
      of_node.push_back(joint);
      if (joint != fresh) continue;
      if (work.type == ChakraProtoMsg::COMM_SEND_NODE) sends[work.instance] = fresh;
      places.emplace_back(!graph.has_one_clock ? work.start_ns - begins_ns.at(work.resource.rank)
                          : IsCollective(work) ? work.instance_start_ns
                                               : work.start_ns,
                          NumberOf(graph, node));
    }
    for (const RunNode& work : graph.nodes) {
      if (graph.outline == nullptr || work.type != ChakraProtoMsg::COMM_RECV_NODE) continue;
      const RunOutline::Meeting& meeting = graph.outline->meetings.at(work.instance);
      sends[work.instance] = static_cast<uint32_t>(places.size());
      places.emplace_back(meeting.start_ns, NumberOf(meeting.rank, meeting.node));
    }
    members = Buckets<NodeIndex>(places.size(), [this](const auto& visit) {
      for (NodeIndex node = 0; node < of_node.size(); ++node) visit(of_node[node], node);
    });
  }

  std::vector<uint32_t> of_node;
  std::vector<Place> places;
  Buckets<NodeIndex> members;
  // The joints of sends, by instance.
  absl::flat_hash_map<uint32_t, uint32_t> sends;

 private:
  // Hosts have their nodes after those of all devices.
  static constexpr uint64_t kHosts = uint64_t{1} << 63;

  static uint64_t NumberOf(int64_t rank, NodeIndex node) {
    return static_cast<uint64_t>(rank) << 32 | node;
  }
  static uint64_t NumberOf(const RunGraph& graph, NodeIndex node) {
    const RunNode& work = graph.nodes[node];
    if (graph.outline == nullptr) return node;
    if (work.IsOnHost()) return kHosts | node;
    if (IsCollective(work)) {
      const RunOutline::Meeting& meeting = graph.outline->meetings.at(work.instance);
      if (meeting.rank != work.resource.rank) return NumberOf(meeting.rank, meeting.node);
    }
    return NumberOf(work.resource.rank, node);
  }
};

// Names a joint that never came, since it waits for itself through others, or for one that does.
absl::Status DescribeDeadlock(const RunGraph& graph, const Joints& joints,
                              const std::vector<uint32_t>& waiting) {
  for (uint32_t joint = 0; joint < waiting.size(); ++joint) {
    const absl::Span<const NodeIndex> members = joints.members.Of(joint);
    if (waiting[joint] == 0 || members.size() < 2) continue;
    const RunNode& stuck = graph.nodes[members.back()];
    const auto append_rank = [&](std::string* out, NodeIndex node) {
      absl::StrAppend(out, graph.nodes[node].resource.rank);
    };
    return FailedPrecondition("collective ", std::string(stuck.name), " at ",
                              stuck.instance_start_ns, " ns of ranks ",
                              absl::StrJoin(members, ", ", append_rank),
                              " waits for itself: the ranks run their collectives in different "
                              "orders; the profiles may not be of one run");
  }
  return absl::InternalError("the nodes of a rank wait for each other");
}

}  // namespace

absl::StatusOr<std::vector<NodeIndex>> GlobalOrder(const RunGraph& graph) {
  const Joints joints(graph);
  // Which joints wait for a joint, by edges and since a receive waits for its send.
  const Buckets<uint32_t> targets(joints.places.size(), [&](const auto& visit) {
    for (const DependencyEdge& edge : graph.edges) {
      visit(joints.of_node[edge.source], joints.of_node[edge.node]);
    }
    for (NodeIndex node = 0; node < graph.nodes.size() && !joints.sends.empty(); ++node) {
      if (graph.nodes[node].type != ChakraProtoMsg::COMM_RECV_NODE) continue;
      const auto send = joints.sends.find(graph.nodes[node].instance);
      if (send != joints.sends.end()) visit(send->second, joints.of_node[node]);
    }
  });
  // How many edges lead to each joint from those that have not come.
  std::vector<uint32_t> waiting(joints.places.size(), 0);
  for (uint32_t joint = 0; joint < waiting.size(); ++joint) {
    for (const uint32_t target : targets.Of(joint)) ++waiting[target];
  }
  using Entry = std::pair<Joints::Place, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (uint32_t joint = 0; joint < waiting.size(); ++joint) {
    if (waiting[joint] == 0) ready.push({joints.places[joint], joint});
  }
  std::vector<NodeIndex> order;
  order.reserve(graph.nodes.size());
  Entry last = ready.empty() ? Entry() : ready.top();
  while (!ready.empty()) {
    const Entry next = ready.top();
    const uint32_t joint = next.second;
    ready.pop();
    const absl::Span<const NodeIndex> members = joints.members.Of(joint);
    // Other ranks cannot know that it had to wait.
    if (graph.outline != nullptr && next < last && !members.empty() &&
        IsMetByOthers(graph.nodes[members[0]])) {
      return FailedPrecondition("the order of a rank's communication depends on other ranks");
    }
    last = std::max(last, next);
    order.insert(order.end(), members.begin(), members.end());
    for (const uint32_t target : targets.Of(joint)) {
      if (--waiting[target] == 0) ready.push({joints.places[target], target});
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

namespace {

class Folder {
 public:
  explicit Folder(RunGraph* graph)
      : graph_(*graph),
        sources_(graph->edges, graph->nodes.size()),
        place_(graph->nodes.size()),
        known_(graph->nodes.size()) {
    std::map<Resource, ResourceIndex> indices;
    resource_.reserve(graph_.nodes.size());
    for (const RunNode& node : graph_.nodes) {
      const auto next = static_cast<ResourceIndex>(indices.size());
      resource_.push_back(indices.emplace(node.resource, next).first->second);
    }
    logs_.resize(indices.size());
    knowledge_.resize(indices.size());
  }

  std::vector<NodeIndex> Run(const std::vector<NodeIndex>& order) {
    graph_.edges.clear();
    std::vector<NodeIndex> without_hosts;
    for (uint32_t i = 0; i < order.size(); ++i) {
      const NodeIndex node = order[i];
      place_[node] = i;
      if (graph_.nodes[node].IsOnHost()) {
        PassHostNode(node);
      } else {
        AddDeviceNode(node);
        without_hosts.push_back(node);
      }
    }
    return without_hosts;
  }

 private:
  // Returns whether the thread or stream did not know yet that the work had ended.
  bool Learn(NodeIndex work, ResourceIndex learner) {
    const auto [it, is_new] = knowledge_[learner].try_emplace(resource_[work], work);
    if (!is_new && place_[it->second] >= place_[work]) return false;
    it->second = work;
    return true;
  }

  void PassHostNode(NodeIndex node) {
    const ResourceIndex thread = resource_[node];
    const auto learn = [&](NodeIndex work) {
      if (Learn(work, thread)) logs_[thread].push_back(work);
    };
    for (const DependencyEdge& edge : sources_.Of(node)) {
      const ResourceIndex other = resource_[edge.source];
      if (!graph_.nodes[edge.source].IsOnHost()) {
        learn(edge.source);
      } else if (other != thread) {
        size_t& told = told_[{other, thread}];
        for (; told < known_[edge.source]; ++told) learn(logs_[other][told]);
      }
    }
    known_[node] = logs_[thread].size();
  }

  void AddDeviceNode(NodeIndex node) {
    for (const DependencyEdge& edge : sources_.Of(node)) {
      if (!graph_.nodes[edge.source].IsOnHost()) {
        graph_.edges.push_back(edge);
      } else {
        AddKnowledgeOf(edge.source, node);
      }
    }
  }

  // Adds edges from what the thread had waited for when it launched the work, as far as the work's
  // stream did not know it yet.
  void AddKnowledgeOf(NodeIndex call, NodeIndex node) {
    const ResourceIndex thread = resource_[call], stream = resource_[node];
    Learned& last = learned_[stream];
    if (last.kernel != graph_.nodes[node].kernel) last = {graph_.nodes[node].kernel, {}};
    size_t& told = told_[{thread, stream}];
    for (; told < known_[call]; ++told) {
      const NodeIndex work = logs_[thread][told];
      if (resource_[work] == stream || !Learn(work, stream)) continue;
      const bool is_known = !last.works.empty() &&
                            graph_.nodes[last.works.back()].kernel == graph_.nodes[work].kernel;
      if (!is_known) last.works.push_back(work);
    }
    for (const NodeIndex work : last.works) AddWaitForKernel(node, work, &graph_);
  }

  // What a stream learned with its last kernel, which may be several nodes.
  struct Learned {
    uint32_t kernel = RunNode::kNoKernel;
    std::vector<NodeIndex> works;
  };

  RunGraph& graph_;
  const EdgesByNode sources_;
  // By node: its place in the order, its resource, and of a host's node how much of its thread's
  // log it knew.
  std::vector<uint32_t> place_;
  std::vector<ResourceIndex> resource_;
  std::vector<size_t> known_;
  // By resource: all work that a thread learned to have ended, in that order; and of each stream
  // the last work that a thread or stream knows to have ended.
  std::vector<std::vector<NodeIndex>> logs_;
  std::vector<absl::flat_hash_map<ResourceIndex, NodeIndex>> knowledge_;
  // By thread and whom it told, a thread or stream: how much of its log.
  absl::flat_hash_map<std::pair<ResourceIndex, ResourceIndex>, size_t> told_;
  absl::flat_hash_map<ResourceIndex, Learned> learned_;
};

}  // namespace

std::vector<NodeIndex> FoldHosts(const std::vector<NodeIndex>& order, RunGraph* graph) {
  return Folder(graph).Run(order);
}

namespace {

constexpr int64_t kMinGapNs = 1000;

class GapMaker {
 public:
  explicit GapMaker(RunGraph* graph)
      : graph_(*graph),
        sources_(graph->edges, graph->nodes.size()),
        replayed_end_ns_(graph->nodes.size(), 0) {}

  std::vector<NodeIndex> Run(const std::vector<NodeIndex>& order) {
    FindBegins(order);
    std::vector<NodeIndex> with_gaps;
    for (const NodeIndex node : order) {
      if (const std::optional<NodeIndex> gap = Place(node)) with_gaps.push_back(*gap);
      with_gaps.push_back(node);
    }
    return with_gaps;
  }

 private:
  struct Rank {
    int64_t begin_ns = std::numeric_limits<int64_t>::max();
    // Of the device's nodes that have been placed, the computation and the node that end last;
    // kNoNodeIndex for none.
    NodeIndex last_computation = kNoNodeIndex;
    NodeIndex last = kNoNodeIndex;
  };

  Rank& RankOf(const RunNode& node) { return ranks_[node.resource.rank]; }
  int64_t EndNs(NodeIndex node) const { return replayed_end_ns_[node]; }

  void FindBegins(const std::vector<NodeIndex>& order) {
    int64_t first_ns =
        graph_.outline == nullptr ? std::numeric_limits<int64_t>::max() : graph_.outline->begin_ns;
    for (const NodeIndex index : order) {
      const RunNode& node = graph_.nodes[index];
      if (!node.IsDeviceWork() && !node.IsOnHost()) continue;
      RankOf(node).begin_ns = std::min(RankOf(node).begin_ns, node.start_ns);
      first_ns = std::min(first_ns, node.start_ns);
    }
    if (!graph_.has_one_clock) return;
    for (auto& [number, rank] : ranks_) rank.begin_ns = first_ns;
  }

  // Returns the gap that the node needs, if any.
  std::optional<NodeIndex> Place(NodeIndex node) {
    if (graph_.nodes[node].IsOnHost()) return PlaceHostNode(node);
    return graph_.nodes[node].IsDeviceWork() ? PlaceWork(node) : std::nullopt;
  }

  // Hosts do as measured, from when they begin.
  std::optional<NodeIndex> PlaceHostNode(NodeIndex node) {
    const RunNode& call = graph_.nodes[node];
    replayed_end_ns_[node] = call.end_ns;
    const int64_t begin_ns = RankOf(call).begin_ns;
    if (!sources_.Of(node).empty() || call.start_ns - begin_ns < kMinGapNs) return std::nullopt;
    return AddGap(node, begin_ns, call.start_ns, EdgeKind::kProgram);
  }

  std::optional<NodeIndex> PlaceWork(NodeIndex node) {
    const RunNode work = graph_.nodes[node];
    if (const auto twin = communications_.find(work.kernel); twin != communications_.end()) {
      // A send and its receive are one kernel: one gap is enough.
      if (twin->second != kNoNodeIndex) {
        graph_.edges.push_back({node, twin->second, EdgeKind::kLaunch});
      }
      replayed_end_ns_[node] = work.end_ns;
      return std::nullopt;
    }
    Rank& rank = RankOf(work);
    const bool is_first = rank.last == kNoNodeIndex;
    // What the gap begins with.
    NodeIndex before = rank.last_computation;
    const auto take_later = [&](NodeIndex other) {
      if (other != kNoNodeIndex && (before == kNoNodeIndex || EndNs(other) > EndNs(before)))
        before = other;
    };
    // When a replay would start the node if there were no gap.
    int64_t start_ns = rank.begin_ns;
    bool is_launched_here = false;
    for (const DependencyEdge& edge : sources_.Of(node)) {
      take_later(edge.source);
      start_ns = std::max(start_ns, EndNs(edge.source));
      is_launched_here |= graph_.nodes[edge.source].IsOnHost();
    }
    if (!work.is_launched && !is_first && graph_.nodes[rank.last].end_ns <= work.start_ns) {
      take_later(rank.last);
    }
    const int64_t ready_ns = before == kNoNodeIndex ? rank.begin_ns : EndNs(before);
    // What was computed beside something else is so again.
    if (!work.IsCommunication()) start_ns = std::min(ready_ns, work.start_ns);
    const bool is_early_message = is_first && work.IsCommunication();
    std::optional<NodeIndex> gap;
    const int64_t min_gap_ns = is_launched_here ? kMaxStartDelayPs / kPsPerNs : kMinGapNs;
    if (work.start_ns - ready_ns >= min_gap_ns || is_early_message) {
      start_ns = std::max(ready_ns, work.start_ns);
      gap = AddGapAfter(before, node, ready_ns, start_ns);
      // The host does one thing after the other: its next gap begins when this one ends.
      if (before == rank.last_computation) rank.last_computation = *gap;
    }
    // Communication ends when it was measured to, unless it begins too late for that.
    replayed_end_ns_[node] = SaturateToInt64(absl::int128(start_ns) + work.duration_ns);
    if (work.IsCommunication()) {
      replayed_end_ns_[node] = std::max(replayed_end_ns_[node], work.end_ns);
      communications_[work.kernel] = gap.value_or(kNoNodeIndex);
    } else if (rank.last_computation == kNoNodeIndex ||
               EndNs(node) > EndNs(rank.last_computation)) {
      rank.last_computation = node;
    }
    if (rank.last == kNoNodeIndex || EndNs(node) > EndNs(rank.last)) rank.last = node;
    return gap;
  }

  // Adds a gap that follows on `before`, kNoNodeIndex for nothing.
  NodeIndex AddGapAfter(NodeIndex before, NodeIndex node, int64_t start_ns, int64_t end_ns) {
    const NodeIndex gap = AddGap(node, start_ns, end_ns, EdgeKind::kLaunch);
    if (before == kNoNodeIndex) return gap;
    EdgeKinds kinds = EdgeKind::kProgram;
    // What the node waited for, the gap waits for now.
    for (const DependencyEdge& edge : sources_.Of(node)) {
      if (edge.source == before) kinds |= edge.kinds;
    }
    graph_.edges.push_back({gap, before, kinds});
    return gap;
  }

  NodeIndex AddGap(NodeIndex node, int64_t start_ns, int64_t end_ns, EdgeKind kind) {
    const NodeIndex gap = AddGapNode(graph_.nodes[node].resource, start_ns, end_ns, &graph_);
    graph_.nodes[gap].step = graph_.nodes[node].step;
    graph_.edges.push_back({node, gap, kind});
    replayed_end_ns_.push_back(end_ns);
    return gap;
  }

  RunGraph& graph_;
  // What each node waits for, gaps aside.
  const EdgesByNode sources_;
  // When a replay would end each node.
  std::vector<int64_t> replayed_end_ns_;
  absl::flat_hash_map<int64_t, Rank> ranks_;
  // The gap before each kernel that communicates; kNoNodeIndex for none.
  absl::flat_hash_map<uint32_t, NodeIndex> communications_;
};

}  // namespace

std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, RunGraph* graph) {
  return GapMaker(graph).Run(order);
}

}  // namespace meridian
