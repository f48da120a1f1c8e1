#include "chakra_export/graph/graph_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/topological_order.h"

namespace meridian {
namespace {

// A description names so many nodes at either end.
constexpr size_t kNamedAtEachEnd = 4;

// Returns an order of as many nodes as have one; `waiting` is left with how many dependencies of
// each node are not in it.
std::vector<NodeIndex> OrderWhatCanBe(const ExecutionGraph& graph, std::vector<uint32_t>* waiting) {
  const SuccessorIndex successors(graph);
  std::vector<NodeIndex> nodes(graph.node_count());
  absl::c_iota(nodes, 0);
  waiting->resize(nodes.size());
  for (const NodeIndex node : nodes) {
    (*waiting)[node] = static_cast<uint32_t>(graph.dependencies(node).size());
  }
  return TopologicalOrder(std::move(nodes), waiting, [&](NodeIndex node, const auto& visit) {
    for (const NodeIndex next : successors.Of(node)) visit(next);
  });
}

// Every node that waits for something has a dependency that waits, too: going back from one to the
// next must come round.
std::vector<NodeIndex> CycleAmong(const ExecutionGraph& graph,
                                  const std::vector<uint32_t>& waiting) {
  const auto first = absl::c_find_if(waiting, [](uint32_t n) { return n > 0; });
  if (first == waiting.end()) return {};
  std::vector<NodeIndex> walk;
  std::vector<bool> visited(waiting.size(), false);
  auto node = static_cast<NodeIndex>(first - waiting.begin());
  while (!visited[node]) {
    visited[node] = true;
    walk.push_back(node);
    const absl::Span<const NodeIndex> sources = graph.dependencies(node);
    node = *absl::c_find_if(sources, [&](NodeIndex source) { return waiting[source] > 0; });
  }
  return std::vector<NodeIndex>(absl::c_find(walk, node), walk.end());
}

}  // namespace

absl::StatusOr<std::vector<NodeIndex>> TopologicalOrder(const ExecutionGraph& graph) {
  std::vector<uint32_t> waiting;
  std::vector<NodeIndex> order = OrderWhatCanBe(graph, &waiting);
  if (order.size() == graph.node_count()) return order;
  return FailedPrecondition("a cycle: ", DescribeCycle(graph, CycleAmong(graph, waiting)));
}

std::vector<NodeIndex> FindCycle(const ExecutionGraph& graph) {
  std::vector<uint32_t> waiting;
  OrderWhatCanBe(graph, &waiting);
  return CycleAmong(graph, waiting);
}

std::string DescribeCycle(const ExecutionGraph& graph, absl::Span<const NodeIndex> cycle) {
  std::string text = graph.Describe(cycle[0]);
  absl::string_view separator = " waits for ";
  for (size_t i = 1; i <= cycle.size(); ++i) {
    const bool hidden = i > kNamedAtEachEnd && i + kNamedAtEachEnd <= cycle.size();
    if (hidden) {
      const size_t count = cycle.size() - 2 * kNamedAtEachEnd;
      if (i == kNamedAtEachEnd + 1) absl::StrAppend(&text, separator, count, " more");
    } else {
      absl::StrAppend(&text, separator, graph.Describe(cycle[i % cycle.size()]));
    }
    separator = hidden ? ", of which the last waits for " : ", which waits for ";
  }
  return text;
}

namespace {

constexpr uint32_t kNoChain = std::numeric_limits<uint32_t>::max();

// Where a node lies: on which chain of its rank, and at which position of the chain, from 1.
struct ChainPlace {
  uint32_t chain = kNoChain;
  uint32_t position = 0;
};

class Reducer {
 public:
  // `order` holds all nodes, each after what it waits for.
  Reducer(const ExecutionGraph& graph, const std::vector<NodeIndex>& order, size_t max_chains)
      : graph_(graph),
        max_chains_(max_chains),
        successors_left_(graph.node_count(), 0),
        places_(graph.node_count()),
        slots_(graph.node_count()),
        extended_(graph.node_count(), false),
        implied_(graph.dependency_count(), false),
        first_edge_(graph.node_count() + 1, 0) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      first_edge_[node + 1] =
          first_edge_[node] + static_cast<uint32_t>(graph.dependencies(node).size());
      for (const NodeIndex source : graph.dependencies(node)) ++successors_left_[source];
    }
    for (const NodeIndex node : order) Place(node);
    for (const NodeIndex node : order) Visit(node);
  }

  bool IsImplied(NodeIndex node, size_t position) const {
    return implied_[first_edge_[node] + position];
  }

 private:
  // Puts the node behind one of its dependencies that ends a chain, else on a chain of its own.
  void Place(NodeIndex node) {
    for (const NodeIndex source : graph_.dependencies(node)) {
      const ChainPlace& before = places_[source];
      if (before.chain == kNoChain || extended_[source]) continue;
      extended_[source] = true;
      places_[node] = {before.chain, before.position + 1};
      return;
    }
    // Ranks have no edges between them, so each numbers its chains from 0.
    uint32_t& count = chains_[graph_.rank(node)];
    if (count == max_chains_) return;
    places_[node] = {count++, 1};
    most_chains_ = std::max(most_chains_, count);
  }

  void Visit(NodeIndex node) {
    const absl::Span<const NodeIndex> sources = graph_.dependencies(node);
    slots_[node] = TakeSlot();
    uint32_t* reach = ReachOf(node);
    std::fill_n(reach, most_chains_, 0);
    for (const NodeIndex source : sources) MergeReach(source, reach);
    for (size_t i = 0; i < sources.size(); ++i) {
      const ChainPlace& place = places_[sources[i]];
      if (place.chain == kNoChain) continue;
      implied_[first_edge_[node] + i] = reach[place.chain] >= place.position;
    }
    for (const NodeIndex source : sources) AddPlace(source, reach);
    AddPlace(node, reach);
    for (const NodeIndex source : sources) {
      if (--successors_left_[source] == 0) free_slots_.push_back(slots_[source]);
    }
    if (successors_left_[node] == 0) free_slots_.push_back(slots_[node]);
  }

  uint32_t TakeSlot() {
    if (free_slots_.empty()) {
      reaches_.resize(reaches_.size() + most_chains_);
      return slot_count_++;
    }
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  uint32_t* ReachOf(NodeIndex node) { return &reaches_[size_t{slots_[node]} * most_chains_]; }

  // Takes over what is strictly above the source, so that a dependency shows in the node's reach
  // exactly when another one lies below it. The dependencies themselves are added afterwards.
  void MergeReach(NodeIndex source, uint32_t* to) {
    const uint32_t* from = ReachOf(source);
    const ChainPlace& place = places_[source];
    for (uint32_t chain = 0; chain < most_chains_; ++chain) {
      // The source's own entry is itself; above it on its chain is its predecessor there.
      const uint32_t reach = chain == place.chain ? place.position - 1 : from[chain];
      to[chain] = std::max(to[chain], reach);
    }
  }

  void AddPlace(NodeIndex node, uint32_t* reach) const {
    const ChainPlace& place = places_[node];
    if (place.chain == kNoChain) return;
    reach[place.chain] = std::max(reach[place.chain], place.position);
  }

  const ExecutionGraph& graph_;
  const size_t max_chains_;
  // By node: how many successors are to come, its place, and its slot.
  std::vector<uint32_t> successors_left_;
  std::vector<ChainPlace> places_;
  std::vector<uint32_t> slots_;
  // By slot, which a node has while successors are to come: how far up each chain its ancestors and
  // itself reach.
  std::vector<uint32_t> reaches_;
  std::vector<uint32_t> free_slots_;
  uint32_t slot_count_ = 0;
  // By node: whether another one follows it on its chain.
  std::vector<bool> extended_;
  // By edge: whether others imply it; and by node its first edge.
  std::vector<bool> implied_;
  std::vector<uint32_t> first_edge_;
  // How many chains each rank has, and the most that one has.
  std::map<int64_t, uint32_t> chains_;
  uint32_t most_chains_ = 0;
};

}  // namespace

absl::StatusOr<size_t> RemoveTransitiveEdges(ExecutionGraph* graph, size_t max_chains) {
  MERIDIAN_CHECK(max_chains > 0);
  ASSIGN_OR_RETURN(const std::vector<NodeIndex> order, TopologicalOrder(*graph));
  const Reducer reducer(*graph, order, max_chains);
  return graph->RetainDependencies(
      [&](NodeIndex node, size_t position) { return !reducer.IsImplied(node, position); });
}

}  // namespace meridian
