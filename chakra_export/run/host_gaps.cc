#include "chakra_export/run/host_gaps.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/dependencies/inferred_waits.h"

namespace meridian {
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
    int64_t first_ns = std::numeric_limits<int64_t>::max();
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
      gap = AddGap(node, ready_ns, start_ns, EdgeKind::kLaunch);
      if (before != kNoNodeIndex) {
        EdgeKinds kinds = EdgeKind::kProgram;
        // What the node waited for, the gap waits for now.
        for (const DependencyEdge& edge : sources_.Of(node)) {
          if (edge.source == before) kinds |= edge.kinds;
        }
        graph_.edges.push_back({*gap, before, kinds});
      }
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
