#include "chakra_export/xspace/host_gaps.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "chakra_export/xspace/work_nodes.h"

namespace meridian {
namespace {

constexpr int64_t kMinGapNs = 1000;

class GapMaker {
 public:
  explicit GapMaker(WorkGraph* graph)
      : graph_(graph),
        sources_(*graph),
        replayed_end_ns_(graph->nodes.size(), 0),
        ranks_(static_cast<size_t>(graph->rank_count)) {
    for (const WorkNode& node : graph->nodes) {
      if (node.work != nullptr) begin_ns_ = std::min(begin_ns_, node.start_ns);
    }
  }

  std::vector<NodeIndex> Run(const std::vector<NodeIndex>& order) {
    std::vector<NodeIndex> with_gaps;
    for (const NodeIndex node : order) {
      if (graph_->nodes[node].work != nullptr) {
        if (const std::optional<NodeIndex> gap = Place(node)) with_gaps.push_back(*gap);
      } else {
        // Hosts do as measured.
        replayed_end_ns_[node] = graph_->nodes[node].end_ns;
      }
      with_gaps.push_back(node);
    }
    return with_gaps;
  }

 private:
  // Of a rank, as far as nodes have been placed.
  struct Rank {
    NodeIndex last_computation = kNoNode;
    NodeIndex last = kNoNode;
  };

  // When a replay would end the node.
  int64_t EndNs(NodeIndex node) const { return replayed_end_ns_[node]; }

  // Returns the gap that the node needs, if any.
  std::optional<NodeIndex> Place(NodeIndex node) {
    const WorkNode work = graph_->nodes[node];
    if (const auto twin = communications_.find(work.work); twin != communications_.end()) {
      // A send and its receive are one kernel: one gap is enough.
      if (twin->second != kNoNode) {
        graph_->edges.push_back({node, twin->second, DependencyKind::kLaunch});
      }
      replayed_end_ns_[node] = work.end_ns;
      return std::nullopt;
    }
    Rank& rank = ranks_[static_cast<size_t>(work.resource.rank)];
    const bool is_first = rank.last == kNoNode;
    // What the gap begins with.
    NodeIndex before = rank.last_computation;
    const auto take_later = [&](NodeIndex other) {
      if (other != kNoNode && (before == kNoNode || EndNs(other) > EndNs(before))) before = other;
    };
    for (const WorkEdge& edge : sources_.Of(node)) take_later(edge.source);
    const bool host_waited = HostWaited(work, rank.last);
    if (host_waited) take_later(rank.last);
    const int64_t ready_ns = before == kNoNode ? begin_ns_ : EndNs(before);
    const bool is_early_message = is_first && work.IsCommunication();
    std::optional<NodeIndex> gap;
    int64_t start_ns = ready_ns;
    if (work.start_ns - ready_ns >= kMinGapNs || is_early_message) {
      gap = AddGap(node, ready_ns, std::max<int64_t>(0, work.start_ns - ready_ns));
      if (before != kNoNode) {
        DependencyKinds kinds = host_waited ? DependencyKind::kSync : DependencyKind::kProgram;
        // What the node waited for, the gap waits for now.
        for (const WorkEdge& edge : sources_.Of(node)) {
          if (edge.source == before) kinds |= edge.kinds;
        }
        graph_->edges.push_back({*gap, before, kinds});
      }
      start_ns = std::max(ready_ns, work.start_ns);
    }
    // Communication ends when it was measured to, unless it begins too late for that.
    replayed_end_ns_[node] = start_ns + work.duration_ns;
    if (work.IsCommunication()) {
      replayed_end_ns_[node] = std::max(replayed_end_ns_[node], work.end_ns);
    } else if (rank.last_computation == kNoNode || EndNs(node) > EndNs(rank.last_computation)) {
      rank.last_computation = node;
    }
    if (work.IsCommunication()) communications_[work.work] = gap.value_or(kNoNode);
    if (rank.last == kNoNode || EndNs(node) > EndNs(rank.last)) rank.last = node;
    return gap;
  }

  // True when the device had been idle before the node was launched.
  bool HostWaited(const WorkNode& work, NodeIndex last) const {
    if (last == kNoNode) return false;
    const DeviceWork& device_work = *work.work;
    // On the device's clock the launch lies as long before the start as it did when measured.
    const int64_t launch_ns =
        device_work.launch_ps.has_value()
            ? work.start_ns - (device_work.start_ps - *device_work.launch_ps) / 1000
            : work.start_ns;
    return launch_ns >= graph_->nodes[last].end_ns;
  }

  NodeIndex AddGap(NodeIndex node, int64_t start_ns, int64_t duration_ns) {
    WorkNode gap;
    gap.name = kHostGapOpKind;
    gap.op_kind = kHostGapOpKind;
    gap.resource = graph_->nodes[node].resource;
    gap.start_ns = start_ns;
    gap.end_ns = start_ns + duration_ns;
    gap.duration_ns = duration_ns;
    const auto index = static_cast<NodeIndex>(graph_->nodes.size());
    graph_->nodes.push_back(gap);
    graph_->edges.push_back({node, index, DependencyKind::kLaunch});
    replayed_end_ns_.push_back(gap.end_ns);
    return index;
  }

  WorkGraph* graph_;
  const WorkSources sources_;
  std::vector<int64_t> replayed_end_ns_;
  std::vector<Rank> ranks_;
  // The gaps of kernels that communicate; kNoNode for none.
  absl::flat_hash_map<const DeviceWork*, NodeIndex> communications_;
  int64_t begin_ns_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, WorkGraph* graph) {
  return GapMaker(graph).Run(order);
}

}  // namespace meridian
