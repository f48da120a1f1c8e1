#include "astra_bridge/schedule/edge_shapes.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace meridian {

EdgeShapes FindEdgeShapes(absl::Span<const CommEdge> edges) {
  EdgeShapes shapes;
  // Numbered in the order of first use; no edge's text has a line break.
  absl::flat_hash_map<std::string, ShapeIndex> found;
  std::vector<CommEdge> distinct;
  std::vector<EdgeIndex> first_edges;
  for (EdgeIndex edge = 0; edge < edges.size(); ++edge) {
    const auto [it, added] =
        found.emplace(absl::StrCat(CanonicalText(edges[edge]), "\n", edges[edge].topology_key),
                      static_cast<ShapeIndex>(distinct.size()));
    if (added) {
      distinct.push_back(edges[edge]);
      first_edges.push_back(edge);
    }
    shapes.shape_of.push_back(it->second);
  }
  std::vector<size_t> order = CanonicalOrder(distinct);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return distinct[a].topology_key < distinct[b].topology_key;
  });
  std::vector<ShapeIndex> renumbered(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    renumbered[order[i]] = static_cast<ShapeIndex>(i);
    shapes.examples.push_back(first_edges[order[i]]);
  }
  for (ShapeIndex& shape : shapes.shape_of) shape = renumbered[shape];
  return shapes;
}

}  // namespace meridian
