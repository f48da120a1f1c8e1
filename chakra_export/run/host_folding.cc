#include "chakra_export/run/host_folding.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace meridian {
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

}  // namespace meridian
