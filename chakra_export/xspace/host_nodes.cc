#include "chakra_export/xspace/host_nodes.h"

#include <algorithm>
#include <map>
#include <utility>

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
                                 const RunGraph& graph) {
  const RunClock clock(profile.base_ns);
  std::map<uint64_t, Launch> launches;
  for (const NodeIndex node : nodes) {
    const RunNode& work = graph.nodes[node];
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

void AddRank(const ProfileWork& profile, int64_t rank, absl::Span<const NodeIndex> nodes,
             RunGraph* graph) {
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
        if (waited) AddWaitForKernel(gap, last_work, graph);
        before = gap;
      }
    }
    const NodeIndex call = AddTimedNode(launch.name, thread, launch.start_ns,
                                        std::max(launch.start_ns, launch.end_ns), graph);
    if (before != kNoNodeIndex) graph->edges.push_back({call, before, EdgeKind::kProgram});
    // A host's call is in the step of what it launched, and the gap before it, too.
    graph->nodes[call].step = graph->nodes[launch.work[0]].step;
    if (before != kNoNodeIndex && graph->nodes[before].op_kind == kHostGapOpKind) {
      graph->nodes[before].step = graph->nodes[call].step;
    }
    threads[launch.thread] = call;
    for (const NodeIndex node : launch.work) {
      graph->edges.push_back({node, call, EdgeKind::kLaunch});
      if (last_work == kNoNodeIndex || graph->nodes[node].end_ns > graph->nodes[last_work].end_ns) {
        last_work = node;
      }
    }
  }
}

}  // namespace

void AddHostNodes(const std::vector<const ProfileWork*>& profile_of_rank, RunGraph* graph) {
  std::vector<std::vector<NodeIndex>> nodes(profile_of_rank.size());
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    nodes[static_cast<size_t>(graph->nodes[node].resource.rank)].push_back(node);
  }
  // At most a call and a gap for each.
  graph->nodes.reserve(3 * graph->nodes.size());
  for (size_t rank = 0; rank < profile_of_rank.size(); ++rank) {
    if (profile_of_rank[rank] == nullptr) continue;
    AddRank(*profile_of_rank[rank], static_cast<int64_t>(rank), nodes[rank], graph);
  }
}

}  // namespace meridian
