#include "chakra_export/xspace/host_nodes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "xla_profiler/base/sorted.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

// A call and what it launched.
struct Launch {
  const HostCall* call = nullptr;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  absl::Span<const NodeIndex> work;
};

struct Launches {
  // In the order of their starts.
  std::vector<Launch> calls;
  // What they launched, call by call.
  std::vector<NodeIndex> work;
};

// Returns the calls of one rank.
Launches FindLaunches(const ProfileWork& profile, absl::Span<const NodeIndex> nodes,
                      const RunGraph& graph) {
  const RunClock clock(profile.base_ns);
  Launches launches;
  for (const NodeIndex node : nodes) {
    const RunNode& work = graph.nodes[node];
    if (work.work == nullptr || work.work->call == nullptr) continue;
    // On clocks that disagree work may seem to start before its launch.
    if (work.start_ns < clock.ToUnixNs(work.work->call->start_ps)) continue;
    launches.work.push_back(node);
  }
  const auto call_of = [&](NodeIndex node) { return graph.nodes[node].work->call; };
  StableSortUnlessSorted(&launches.work,
                         [&](NodeIndex a, NodeIndex b) { return call_of(a) < call_of(b); });
  for (size_t i = 0; i < launches.work.size();) {
    Launch launch;
    launch.call = call_of(launches.work[i]);
    launch.start_ns = clock.ToUnixNs(launch.call->start_ps);
    launch.end_ns = clock.ToUnixNs(launch.call->end_ps);
    const size_t first = i;
    for (; i < launches.work.size() && call_of(launches.work[i]) == launch.call; ++i) {
      launch.end_ns = std::min(launch.end_ns, graph.nodes[launches.work[i]].start_ns);
    }
    launch.work = absl::MakeConstSpan(launches.work).subspan(first, i - first);
    launches.calls.push_back(launch);
  }
  StableSortUnlessSorted(&launches.calls,
                         [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
  return launches;
}

// Returns what a host had waited for when it made a call, or kNoNodeIndex: what was launched last to
// end, if that had; where the host is known to wait, the last that had ended. `by_end` is the rank's
// work, made on demand.
NodeIndex FindAwaited(const Launch& launch, NodeIndex last_work, const Launches& launches,
                      const RunGraph& graph, std::vector<NodeIndex>* by_end) {
  if (last_work == kNoNodeIndex || graph.nodes[last_work].end_ns <= launch.start_ns) {
    return last_work;
  }
  const auto has_waited = [&](NodeIndex node) { return graph.nodes[node].work->host_waited; };
  if (!absl::c_any_of(launch.work, has_waited)) return kNoNodeIndex;
  const auto ends_before = [&](NodeIndex a, NodeIndex b) {
    return graph.nodes[a].end_ns < graph.nodes[b].end_ns;
  };
  if (by_end->empty()) {
    *by_end = launches.work;
    StableSortUnlessSorted(by_end, ends_before);
  }
  const auto after = std::upper_bound(
      by_end->begin(), by_end->end(), launch.start_ns,
      [&](int64_t time_ns, NodeIndex node) { return time_ns < graph.nodes[node].end_ns; });
  return after == by_end->begin() ? kNoNodeIndex : *std::prev(after);
}

void AddRank(const ProfileWork& profile, int64_t rank, absl::Span<const NodeIndex> nodes,
             RunGraph* graph) {
  // The last node of each thread.
  std::map<int64_t, NodeIndex> threads;
  // The last to end of all work launched so far.
  NodeIndex last_work = kNoNodeIndex;
  const Launches launches = FindLaunches(profile, nodes, *graph);
  std::vector<NodeIndex> by_end;
  for (const Launch& launch : launches.calls) {
    const Resource thread{rank, ResourceKind::kHostThread, launch.call->thread};
    const auto previous = threads.find(thread.number);
    NodeIndex before = previous == threads.end() ? kNoNodeIndex : previous->second;
    if (before != kNoNodeIndex) {
      const int64_t call_end_ns = graph->nodes[before].end_ns;
      const NodeIndex awaited = FindAwaited(launch, last_work, launches, *graph, &by_end);
      const bool waited = awaited != kNoNodeIndex && graph->nodes[awaited].end_ns > call_end_ns;
      const int64_t gap_start_ns = waited ? graph->nodes[awaited].end_ns : call_end_ns;
      if (gap_start_ns < launch.start_ns) {
        const NodeIndex gap = AddGapNode(thread, gap_start_ns, launch.start_ns, graph);
        graph->edges.push_back({gap, before, EdgeKind::kProgram});
        if (waited) AddWaitForKernel(gap, awaited, graph);
        before = gap;
      }
    }
    const NodeIndex call =
        AddTimedNode(profile.call_names[launch.call->name], thread, launch.start_ns,
                     std::max(launch.start_ns, launch.end_ns), graph);
    if (before != kNoNodeIndex) graph->edges.push_back({call, before, EdgeKind::kProgram});
    // A host's call is in the step of what it launched, and the gap before it, too.
    graph->nodes[call].step = graph->nodes[launch.work[0]].step;
    if (before != kNoNodeIndex && graph->nodes[before].op_kind == kHostGapOpKind) {
      graph->nodes[before].step = graph->nodes[call].step;
    }
    threads[thread.number] = call;
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
  // At most a call and a gap for each, and later a gap on its device: what is not used takes no
  // memory, and growing would take twice as much.
  graph->nodes.reserve(4 * graph->nodes.size());
  for (size_t rank = 0; rank < profile_of_rank.size(); ++rank) {
    if (profile_of_rank[rank] == nullptr || nodes[rank].empty()) continue;
    AddRank(*profile_of_rank[rank], static_cast<int64_t>(rank), nodes[rank], graph);
  }
}

}  // namespace meridian
