#include "critical_path/path_graph.h"

#include <algorithm>

namespace meridian {

absl::string_view EdgeTypeName(EdgeType type) {
  switch (type) {
    case EdgeType::kOperator:
      return "operator";
    case EdgeType::kDependency:
      return "dependency";
    case EdgeType::kKernelLaunchDelay:
      return "kernel_launch_delay";
    case EdgeType::kKernelKernelDelay:
      return "kernel_kernel_delay";
    case EdgeType::kSyncDependency:
      return "sync_dependency";
  }
  return "";
}

absl::string_view BoundByName(BoundBy bound_by) {
  switch (bound_by) {
    case BoundBy::kNothing:
      return "";
    case BoundBy::kCpu:
      return "cpu_bound";
    case BoundBy::kDataLoading:
      return "data_loading";
    case BoundBy::kGpuCompute:
      return "gpu_compute_bound";
    case BoundBy::kGpuCommunication:
      return "gpu_communication_bound";
    case BoundBy::kKernelKernelOverhead:
      return "gpu_kernel_kernel_overhead";
    case BoundBy::kKernelLaunchOverhead:
      return "gpu_kernel_launch_overhead";
    case BoundBy::kHostGap:
      return "host_gap";
    case BoundBy::kOtherRanks:
      return "wait_for_other_ranks";
  }
  return "";
}

PathGraph CopyGraph(const PathGraph& graph) {
  PathGraph copy;
  copy.base_ns = graph.base_ns;
  copy.window_start_ps = graph.window_start_ps;
  copy.window_end_ps = graph.window_end_ps;
  copy.lanes = graph.lanes;
  for (NameId name = 0; name < graph.names.size(); ++name) {
    copy.names.Intern(graph.names.Get(name));
  }
  copy.events = graph.events;
  copy.nodes = graph.nodes;
  copy.edges = graph.edges;
  copy.meetings = graph.meetings;
  copy.end_node = graph.end_node;
  return copy;
}

int64_t CountJoinedNodes(const PathGraph& graph) {
  std::vector<bool> joined(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) joined[edge.from] = joined[edge.to] = true;
  return std::count(joined.begin(), joined.end(), true);
}

}  // namespace meridian
