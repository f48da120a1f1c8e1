#include "critical_path/what_if/schedule_simulation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "critical_path/edge_index.h"
#include "xla_profiler/base/status_util.h"

namespace meridian {
namespace {

EdgeKind KindOf(EdgeType type) {
  switch (type) {
    case EdgeType::kOperator:
    case EdgeType::kDependency:
      return EdgeKind::kProgram;
    case EdgeType::kKernelLaunchDelay:
      return EdgeKind::kLaunch;
    case EdgeType::kKernelKernelDelay:
      return EdgeKind::kStream;
    case EdgeType::kSyncDependency:
      return EdgeKind::kSync;
  }
  return EdgeKind::kControl;
}

// Makes the graph that is replayed. Its first nodes are those of the PathGraph. Its times are
// called nanoseconds, but the replay only adds them up: here they count picoseconds.
class GraphConverter {
 public:
  explicit GraphConverter(const PathGraph& graph) : graph_(graph) {}

  ExecutionGraph Convert() {
    const EdgeIndex incoming(graph_, &GraphEdge::to);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      builder_.AddNode(Describe(id, LeastWeight(incoming.Of(id))));
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const int64_t least_ps = LeastWeight(incoming.Of(id));
      for (EdgeId edge : incoming.Of(id)) AddEdge(graph_.edges[edge], least_ps);
    }
    return std::move(builder_).Build();
  }

 private:
  int64_t LeastWeight(absl::Span<const EdgeId> edges) const {
    int64_t least_ps = edges.empty() ? 0 : graph_.edges[edges[0]].weight_ps;
    for (EdgeId id : edges) least_ps = std::min(least_ps, graph_.edges[id].weight_ps);
    return least_ps;
  }

  // Nodes of the window have a resource of their own.
  ExecutionNode Describe(NodeId id, int64_t duration_ps) {
    ExecutionNode node;
    node.id = next_id_++;
    node.duration_ns = duration_ps;
    const GraphEventId event = graph_.nodes[id].event;
    Resource resource;
    if (event == kNoEvent) {
      node.name = "the window";
      resource.number = static_cast<int64_t>(graph_.lanes.size());
    } else {
      node.name = graph_.EventName(event);
      const LaneId lane = graph_.events[event].lane;
      resource.rank = graph_.lanes[lane].rank;
      resource.kind = graph_.lanes[lane].kind == TrackKind::kHost ? ResourceKind::kHostThread
                                                                  : ResourceKind::kStream;
      resource.number = lane;
    }
    node.resource = builder_.AddResource(resource);
    return node;
  }

  void AddEdge(const GraphEdge& edge, int64_t least_ps) {
    const EdgeKind kind = KindOf(edge.type);
    if (edge.weight_ps == least_ps) {
      builder_.AddDependency(edge.to, edge.from, kind);
      return;
    }
    const NodeIndex delay = builder_.AddNode(Describe(edge.to, edge.weight_ps - least_ps));
    builder_.AddDependency(delay, edge.from, kind);
    builder_.AddDependency(edge.to, delay, kind);
  }

  const PathGraph& graph_;
  ExecutionGraphBuilder builder_;
  uint64_t next_id_ = 0;
};

// Returns why the replay did not come to its end.
absl::Status ExplainFailure(const ExecutionGraph& graph, const absl::Status& status) {
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  if (cycle.empty()) return Annotate(status, "the schedule cannot be run again");
  return absl::FailedPreconditionError(
      absl::StrCat("events would wait for each other for ever: ", DescribeCycle(graph, cycle)));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> SimulateSchedule(const PathGraph& graph) {
  if (graph.nodes.size() + graph.edges.size() >= ExecutionGraph::kMaxNodes ||
      2 * graph.edges.size() >= ExecutionGraph::kMaxDependencies) {
    return absl::OutOfRangeError("the graph has too many edges to be run again");
  }
  const ExecutionGraph execution = GraphConverter(graph).Convert();
  ReplayOptions options;
  options.resources = ReplayResources::kUnlimited;
  absl::StatusOr<GraphReplay> replay =
      ReplayGraph(execution, CommunicationMatch(execution), options);
  if (!replay.ok()) return ExplainFailure(execution, replay.status());
  std::vector<int64_t> times_ps = std::move(replay->ends_ns);
  times_ps.resize(graph.nodes.size());
  return times_ps;
}

void PutTimes(const std::vector<int64_t>& times_ps, Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    graph.nodes[id].time_ps = graph.window_start_ps + times_ps[id];
  }
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const NodeId start = schedule->start_nodes[id], end = schedule->end_nodes[id];
    if (start == kNoNode || end == kNoNode) continue;
    graph.events[id].start_ps = graph.nodes[start].time_ps;
    graph.events[id].duration_ps = graph.nodes[end].time_ps - graph.nodes[start].time_ps;
  }
  if (graph.end_node.has_value()) graph.window_end_ps = graph.nodes[*graph.end_node].time_ps;
}

}  // namespace meridian
