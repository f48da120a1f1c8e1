// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_TOPOLOGICAL_ORDER_H_
#define XLA_PROFILER_BASE_TOPOLOGICAL_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace meridian {

// Sorts nodes so that each comes after all that lead to it, generation by generation: first those
// to which nothing leads, in the order of `nodes`, then those that the ones before complete.
//
// `waiting` says for each node how many edges lead to it. Afterwards it says how many of them come
// from nodes without a place: some for a node that is on a cycle or behind one, and such nodes are
// not returned. visit_successors(node, visit) calls visit(successor) for each edge that leaves the
// node. Takes linear time.
template <typename VisitSuccessors>
std::vector<uint32_t> TopologicalOrder(std::vector<uint32_t> nodes, std::vector<uint32_t>* waiting,
                                       const VisitSuccessors& visit_successors) {
  const size_t count = nodes.size();
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](uint32_t node) { return (*waiting)[node] > 0; }),
              nodes.end());
  nodes.reserve(count);
  for (size_t done = 0; done < nodes.size(); ++done) {
    visit_successors(nodes[done], [&](uint32_t next) {
      if (--(*waiting)[next] == 0) nodes.push_back(next);
    });
  }
  return nodes;
}

// Sorts them chain by chain: each as soon as the last before it was placed. Who walks over a large
// graph in this order finds most of what it needs where it was last.
template <typename VisitSuccessors>
std::vector<uint32_t> TopologicalChains(std::vector<uint32_t> nodes, std::vector<uint32_t>* waiting,
                                        const VisitSuccessors& visit_successors) {
  std::vector<uint32_t> sorted, ready;
  sorted.reserve(nodes.size());
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if ((*waiting)[*node] == 0) ready.push_back(*node);
  }
  while (!ready.empty()) {
    sorted.push_back(ready.back());
    ready.pop_back();
    visit_successors(sorted.back(), [&](uint32_t next) {
      if (--(*waiting)[next] == 0) ready.push_back(next);
    });
  }
  return sorted;
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TOPOLOGICAL_ORDER_H_
