#include "chakra_export/inspect/node_times.h"

namespace meridian {

bool HasStartTimes(const ExecutionGraph& graph) {
  bool any = false;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool known = graph.start_ns(node) != kNoTimeNs;
    if (!known && graph.duration_ns(node) > 0) return false;
    any |= known;
  }
  return any;
}

NodeTimes MeasuredTimes(const ExecutionGraph& graph) {
  NodeTimes times;
  times.measured = true;
  times.intervals.resize(graph.node_count());
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const int64_t start_ns = graph.start_ns(node);
    if (start_ns == kNoTimeNs) continue;
    times.intervals[node] = {start_ns, start_ns + graph.duration_ns(node)};
  }
  return times;
}

NodeTimes ReplayedTimes(const GraphReplay& replay) {
  NodeTimes times;
  times.intervals.resize(replay.starts_ns.size());
  for (size_t node = 0; node < times.intervals.size(); ++node) {
    times.intervals[node] = {replay.starts_ns[node], replay.ends_ns[node]};
  }
  return times;
}

absl::StatusOr<GraphReplay> ReplayAsSimulator(const ExecutionGraph& graph,
                                              const CommunicationMatch& match) {
  ReplayOptions options;
  options.resources = ReplayResources::kSimulator;
  options.send_mode = SendMode::kEager;
  return ReplayGraph(graph, match, options);
}

}  // namespace meridian
