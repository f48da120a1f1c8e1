#ifndef CRITICAL_PATH_EDGE_INDEX_H_
#define CRITICAL_PATH_EDGE_INDEX_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "critical_path/path_graph.h"

namespace meridian {

// The edges that leave (&GraphEdge::from) or enter (&GraphEdge::to) each node, in the graph's
// order. Of the graph as it was when this was made.
class EdgeIndex {
 public:
  EdgeIndex(const PathGraph& graph, NodeId GraphEdge::*end)
      : begins_(graph.nodes.size() + 1), edges_(graph.edges.size()) {
    for (const GraphEdge& edge : graph.edges) ++begins_[edge.*end + 1];
    for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    std::vector<EdgeId> next(begins_.begin(), begins_.end() - 1);
    for (EdgeId id = 0; id < graph.edges.size(); ++id) {
      edges_[next[graph.edges[id].*end]++] = id;
    }
  }

  absl::Span<const EdgeId> Of(NodeId node) const {
    return absl::MakeConstSpan(edges_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  // Where each node's edges begin, and one more for the end.
  std::vector<EdgeId> begins_;
  std::vector<EdgeId> edges_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_EDGE_INDEX_H_
