#include "chakra_export/run/host_folding.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace meridian {
namespace {

// Of each stream the last work that is known to have ended.
using Knowledge = absl::flat_hash_map<ResourceIndex, NodeIndex>;

class Folder {
 public:
  explicit Folder(RunGraph* graph)
      : graph_(*graph),
        sources_(graph->edges, graph->nodes.size()),
        place_(graph->nodes.size()),
        version_(graph->nodes.size()) {
    std::map<Resource, ResourceIndex> indices;
    resource_.reserve(graph_.nodes.size());
    for (const RunNode& node : graph_.nodes) {
      const auto next = static_cast<ResourceIndex>(indices.size());
      resource_.push_back(indices.emplace(node.resource, next).first->second);
    }
    knowledge_.resize(indices.size(), {Knowledge()});
    known_to_stream_.resize(indices.size());
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
  bool Learn(ResourceIndex stream, NodeIndex work, Knowledge* knowledge) const {
    const auto [it, is_new] = knowledge->try_emplace(stream, work);
    if (!is_new && place_[it->second] >= place_[work]) return false;
    it->second = work;
    return true;
  }

  // A thread learns seldom, so that a new copy for each time is cheap.
  void PassHostNode(NodeIndex node) {
    Knowledge learned;
    for (const DependencyEdge& edge : sources_.Of(node)) {
      const ResourceIndex other = resource_[edge.source];
      if (!graph_.nodes[edge.source].IsOnHost()) {
        Learn(other, edge.source, &learned);
      } else if (other != resource_[node]) {
        for (const auto& [stream, work] : knowledge_[other][version_[edge.source]]) {
          Learn(stream, work, &learned);
        }
      }
    }
    std::vector<Knowledge>& versions = knowledge_[resource_[node]];
    if (!learned.empty()) {
      Knowledge next = versions.back();
      bool is_new = false;
      for (const auto& [stream, work] : learned) is_new |= Learn(stream, work, &next);
      if (is_new) versions.push_back(std::move(next));
    }
    version_[node] = static_cast<uint32_t>(versions.size() - 1);
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
    Seen& seen = seen_[{thread, stream}];
    const bool is_same_kernel = seen.kernel == graph_.nodes[node].kernel;
    if (version_[call] <= seen.version && !is_same_kernel) return;
    if (!is_same_kernel) {
      seen = {version_[call], graph_.nodes[node].kernel, {}};
      for (const auto& [other, work] : knowledge_[thread][seen.version]) {
        if (other == stream) continue;
        if (Learn(other, work, &known_to_stream_[stream])) seen.learned.push_back(work);
      }
    }
    for (const NodeIndex work : seen.learned) AddWaitForKernel(node, work);
  }

  // A kernel may have run as several nodes, which stand together.
  void AddWaitForKernel(NodeIndex node, NodeIndex work) {
    const uint32_t kernel = graph_.nodes[work].kernel;
    NodeIndex first = work;
    while (first > 0 && graph_.nodes[first - 1].kernel == kernel) --first;
    for (NodeIndex i = first; i < graph_.nodes.size() && graph_.nodes[i].kernel == kernel; ++i) {
      graph_.edges.push_back({node, i, EdgeKind::kSync});
    }
  }

  // What a thread knew when it last launched work of a stream, and what the stream learned then.
  struct Seen {
    uint32_t version = 0;
    uint32_t kernel = RunNode::kNoKernel;
    std::vector<NodeIndex> learned;
  };

  RunGraph& graph_;
  const EdgesByNode sources_;
  // By node: its place in the order, its resource, and of a host's node which of the versions of
  // its thread's knowledge it had.
  std::vector<uint32_t> place_;
  std::vector<ResourceIndex> resource_;
  std::vector<uint32_t> version_;
  // By resource: all that a thread ever knew, from nothing on; and what a stream knows.
  std::vector<std::vector<Knowledge>> knowledge_;
  std::vector<Knowledge> known_to_stream_;
  // By thread and stream.
  absl::flat_hash_map<std::pair<ResourceIndex, ResourceIndex>, Seen> seen_;
};

}  // namespace

std::vector<NodeIndex> FoldHosts(const std::vector<NodeIndex>& order, RunGraph* graph) {
  return Folder(graph).Run(order);
}

}  // namespace meridian
