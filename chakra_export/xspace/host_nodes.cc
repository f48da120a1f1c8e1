#include "chakra_export/xspace/host_nodes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

// A call and what it launched.
struct Launch {
  absl::string_view name;
  int64_t thread = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::vector<NodeIndex> work;
};

// Returns the calls of one rank in the order of their starts.
std::vector<Launch> FindLaunches(const ProfileWork& profile, absl::Span<const NodeIndex> nodes,
                                 const WorkGraph& graph) {
  const RunClock clock(profile.base_ns);
  std::map<uint64_t, Launch> launches;
  for (const NodeIndex node : nodes) {
    const WorkNode& work = graph.nodes[node];
    if (work.work == nullptr || !work.work->correlation.has_value()) continue;
    const auto call = profile.calls.find(*work.work->correlation);
    if (call == profile.calls.end()) continue;
    Launch& launch = launches[call->first];
    launch.name = call->second.name;
    launch.thread = call->second.thread;
    launch.start_ns = clock.ToUnixNs(call->second.start_ps);
    launch.end_ns = clock.ToUnixNs(call->second.end_ps);
    // On clocks that disagree work may seem to start before its launch.
    if (work.start_ns >= launch.start_ns) launch.work.push_back(node);
  }
  std::vector<Launch> sorted;
  for (auto& [correlation, launch] : launches) {
    if (launch.work.empty()) continue;
    for (const NodeIndex node : launch.work) {
      launch.end_ns = std::min(launch.end_ns, graph.nodes[node].start_ns);
    }
    sorted.push_back(std::move(launch));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
  return sorted;
}

NodeIndex AddHostNode(absl::string_view name, const Resource& thread, int64_t start_ns,
                      int64_t end_ns, WorkGraph* graph) {
  WorkNode node;
  node.name = name;
  node.resource = thread;
  node.start_ns = start_ns;
  node.end_ns = end_ns;
  node.duration_ns = end_ns - start_ns;
  graph->nodes.push_back(node);
  return static_cast<NodeIndex>(graph->nodes.size() - 1);
}

NodeIndex AddGapNode(const Resource& resource, int64_t start_ns, int64_t end_ns, WorkGraph* graph) {
  const NodeIndex gap = AddHostNode(kHostGapOpKind, resource, start_ns, end_ns, graph);
  graph->nodes[gap].op_kind = kHostGapOpKind;
  return gap;
}

void AddRank(const ProfileWork& profile, int64_t rank, absl::Span<const NodeIndex> nodes,
             WorkGraph* graph) {
  // The last node of each thread.
  std::map<int64_t, NodeIndex> threads;
  // The last to end of all work launched so far.
  NodeIndex last_work = kNoNodeIndex;
  for (const Launch& launch : FindLaunches(profile, nodes, *graph)) {
    const Resource thread{rank, ResourceKind::kHostThread, launch.thread};
    const auto previous = threads.find(launch.thread);
    NodeIndex before = previous == threads.end() ? kNoNodeIndex : previous->second;
    if (before != kNoNodeIndex) {
      const int64_t call_end_ns = graph->nodes[before].end_ns;
      const bool waited = last_work != kNoNodeIndex &&
                          graph->nodes[last_work].end_ns <= launch.start_ns &&
                          graph->nodes[last_work].end_ns > call_end_ns;
      const int64_t gap_start_ns = waited ? graph->nodes[last_work].end_ns : call_end_ns;
      if (gap_start_ns < launch.start_ns) {
        const NodeIndex gap = AddGapNode(thread, gap_start_ns, launch.start_ns, graph);
        graph->edges.push_back({gap, before, EdgeKind::kProgram});
        if (waited) graph->edges.push_back({gap, last_work, EdgeKind::kSync});
        before = gap;
      }
    }
    const NodeIndex call = AddHostNode(launch.name, thread, launch.start_ns,
                                       std::max(launch.start_ns, launch.end_ns), graph);
    if (before != kNoNodeIndex) graph->edges.push_back({call, before, EdgeKind::kProgram});
    threads[launch.thread] = call;
    for (const NodeIndex node : launch.work) {
      graph->edges.push_back({node, call, EdgeKind::kLaunch});
      if (last_work == kNoNodeIndex || graph->nodes[node].end_ns > graph->nodes[last_work].end_ns) {
        last_work = node;
      }
    }
  }
}

constexpr int64_t kMinGapNs = 1000;

class GapMaker {
 public:
  explicit GapMaker(WorkGraph* graph)
      : graph_(graph),
        sources_(graph->edges, graph->nodes.size()),
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
  // Of the nodes of a rank that have been placed, the computation and the node that end last;
  // kNoNodeIndex for none.
  struct Rank {
    NodeIndex last_computation = kNoNodeIndex;
    NodeIndex last = kNoNodeIndex;
  };

  int64_t EndNs(NodeIndex node) const { return replayed_end_ns_[node]; }

  // Returns the gap that the node needs, if any.
  std::optional<NodeIndex> Place(NodeIndex node) {
    const WorkNode work = graph_->nodes[node];
    if (const auto twin = communications_.find(work.work); twin != communications_.end()) {
      // A send and its receive are one kernel: one gap is enough.
      if (twin->second != kNoNodeIndex) {
        graph_->edges.push_back({node, twin->second, EdgeKind::kLaunch});
      }
      replayed_end_ns_[node] = work.end_ns;
      return std::nullopt;
    }
    Rank& rank = ranks_[static_cast<size_t>(work.resource.rank)];
    const bool is_first = rank.last == kNoNodeIndex;
    // What the gap begins with.
    NodeIndex before = rank.last_computation;
    const auto take_later = [&](NodeIndex other) {
      if (other != kNoNodeIndex && (before == kNoNodeIndex || EndNs(other) > EndNs(before)))
        before = other;
    };
    for (const DependencyEdge& edge : sources_.Of(node)) take_later(edge.source);
    const bool host_waited = HostWaited(work, rank.last);
    if (host_waited) take_later(rank.last);
    const int64_t ready_ns = before == kNoNodeIndex ? begin_ns_ : EndNs(before);
    const bool is_early_message = is_first && work.IsCommunication();
    std::optional<NodeIndex> gap;
    int64_t start_ns = ready_ns;
    if (work.start_ns - ready_ns >= kMinGapNs || is_early_message) {
      gap = AddGap(node, ready_ns, std::max<int64_t>(0, work.start_ns - ready_ns));
      if (before != kNoNodeIndex) {
        EdgeKinds kinds = host_waited ? EdgeKind::kSync : EdgeKind::kProgram;
        // What the node waited for, the gap waits for now.
        for (const DependencyEdge& edge : sources_.Of(node)) {
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
    } else if (rank.last_computation == kNoNodeIndex ||
               EndNs(node) > EndNs(rank.last_computation)) {
      rank.last_computation = node;
    }
    if (work.IsCommunication()) communications_[work.work] = gap.value_or(kNoNodeIndex);
    if (rank.last == kNoNodeIndex || EndNs(node) > EndNs(rank.last)) rank.last = node;
    return gap;
  }

  // True when the device had been idle before the node was launched.
  bool HostWaited(const WorkNode& work, NodeIndex last) const {
    if (last == kNoNodeIndex) return false;
    const DeviceWork& device_work = *work.work;
    // On the device's clock the launch lies as long before the start as it did when measured.
    const int64_t launch_ns =
        device_work.launch_ps.has_value()
            ? work.start_ns - (device_work.start_ps - *device_work.launch_ps) / 1000
            : work.start_ns;
    return launch_ns >= graph_->nodes[last].end_ns;
  }

  NodeIndex AddGap(NodeIndex node, int64_t start_ns, int64_t duration_ns) {
    const int64_t end_ns = start_ns + duration_ns;
    const NodeIndex gap = AddGapNode(graph_->nodes[node].resource, start_ns, end_ns, graph_);
    graph_->edges.push_back({node, gap, EdgeKind::kLaunch});
    replayed_end_ns_.push_back(end_ns);
    return gap;
  }

  WorkGraph* graph_;
  // What each node waits for, gaps aside.
  const EdgesByNode sources_;
  // When a replay would end each node.
  std::vector<int64_t> replayed_end_ns_;
  std::vector<Rank> ranks_;
  // The gap before each kernel that communicates; kNoNodeIndex for none.
  absl::flat_hash_map<const DeviceWork*, NodeIndex> communications_;
  int64_t begin_ns_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

void AddHostNodes(const std::vector<const ProfileWork*>& profile_of_rank, WorkGraph* graph) {
  std::vector<std::vector<NodeIndex>> nodes(profile_of_rank.size());
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    nodes[static_cast<size_t>(graph->nodes[node].resource.rank)].push_back(node);
  }
  for (size_t rank = 0; rank < profile_of_rank.size(); ++rank) {
    if (profile_of_rank[rank] == nullptr) continue;
    AddRank(*profile_of_rank[rank], static_cast<int64_t>(rank), nodes[rank], graph);
  }
}

std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, WorkGraph* graph) {
  return GapMaker(graph).Run(order);
}

}  // namespace meridian
