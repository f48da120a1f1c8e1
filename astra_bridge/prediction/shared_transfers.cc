#include "astra_bridge/prediction/shared_transfers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "astra_bridge/engine/simulation.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// So that whatever edges last, times fit into 64 bits.
constexpr double kMaxBeginNs = 1e18;
// Bytes are scaled within this, and its inverse.
constexpr double kMaxBytesScale = 1000;

double Clamp(double scale) { return std::min(std::max(scale, 1 / kMaxBytesScale), kMaxBytesScale); }

// Returns when the replay issues the nodes of each edge, and when these end.
EdgeSchedule ScheduleOf(const ExecutionGraph& graph, const CommunicationMatch& match,
                        const WorkloadEdges& edges, const GraphReplay& replay) {
  EdgeSchedule schedule;
  schedule.begins_ns.resize(edges.edges.size());
  schedule.ends_ns.resize(edges.edges.size());
  for (size_t instance = 0; instance < match.instance_count(); ++instance) {
    const CommEdgeIndex number = edges.edge_of_instance[instance];
    if (number == kNoCommEdge) continue;
    const absl::Span<const NodeIndex> members = match.members(instance);
    std::map<int64_t, int64_t> by_rank;
    for (const NodeIndex node : members) {
      by_rank[graph.rank(node)] = replay.starts_ns[node];
      schedule.ends_ns[number] = std::max(schedule.ends_ns[number], replay.ends_ns[node]);
    }
    const Communication& moved = *graph.communication(members[0]);
    std::vector<int64_t>& begins_ns = schedule.begins_ns[number];
    if (edges.edges[number].kind == CollectiveKind::kPointToPoint) {
      begins_ns = {by_rank[moved.source == kNoRank ? graph.rank(members[0]) : moved.source],
                   by_rank[moved.target]};
      continue;
    }
    // Participants are in the order of the group.
    for (const int64_t rank : graph.groups()[moved.group].ranks) begins_ns.push_back(by_rank[rank]);
  }
  return schedule;
}

}  // namespace

EdgeSchedule SharedTransfers::Apart(absl::Span<const double> lasts_ns) const {
  EdgeSchedule schedule;
  double begin_ns = 0;
  for (size_t edge = 0; edge < edges_.size(); ++edge) {
    schedule.begins_ns.emplace_back(edges_[edge].participants.size(),
                                    static_cast<int64_t>(begin_ns));
    schedule.ends_ns.push_back(static_cast<int64_t>(begin_ns + lasts_ns[edge]));
    begin_ns = std::min(begin_ns + 100 * (lasts_ns[edge] + 1), kMaxBeginNs);
  }
  return schedule;
}

absl::StatusOr<std::vector<double>> SharedTransfers::LastsNs(
    const EdgeSchedule& schedule, absl::Span<const EdgeScale> scales) const {
  // The edges that move something.
  std::vector<std::pair<const Fabric*, std::vector<size_t>>> by_fabric;
  for (size_t number = 0; number < edges_.size(); ++number) {
    if (!UsesNetwork(edges_[number])) continue;
    ASSIGN_OR_RETURN(const Fabric* fabric, fabrics_.Find(edges_[number].topology_key));
    auto found = std::find_if(by_fabric.begin(), by_fabric.end(),
                              [&](const auto& known) { return known.first == fabric; });
    if (found == by_fabric.end()) found = by_fabric.insert(found, {fabric, {}});
    found->second.push_back(number);
  }
  std::vector<double> lasts_ns(edges_.size(), 0);
  for (const auto& [fabric, numbers] : by_fabric) {
    RETURN_IF_ERROR(SimulateOn(*fabric, numbers, schedule, scales, &lasts_ns));
  }
  return lasts_ns;
}

absl::Status SharedTransfers::SimulateOn(const Fabric& fabric, absl::Span<const size_t> numbers,
                                         const EdgeSchedule& schedule,
                                         absl::Span<const EdgeScale> scales,
                                         std::vector<double>* lasts_ns) const {
  const int64_t overhead_ns = std::llround(overhead_ns_);
  std::vector<CommEdge> moving;
  EdgeSchedule of_moving;
  for (const size_t number : numbers) {
    CommEdge& edge = moving.emplace_back(edges_[number]);
    const double bytes = static_cast<double>(edge.bytes) * scales[number].bytes;
    const int64_t least = fabric.system.preferred_dataset_splits;
    edge.bytes = std::llround(
        std::clamp(bytes, static_cast<double>(least), static_cast<double>(kMaxMessageBytes)));
    of_moving.begins_ns.push_back(schedule.begins_ns[number]);
    if (!schedule.ends_ns.empty()) of_moving.ends_ns.push_back(schedule.ends_ns[number]);
  }
  ASSIGN_OR_RETURN(const EdgeWorkload workload,
                   MakeEdgeWorkload(moving, fabric, of_moving, overhead_ns));
  SimulationOptions options;
  options.congestion = congestion_;
  options.comm_streams = workload.comm_streams;
  options.node_times = true;
  options.rendezvous = true;
  if (fabric.network.has_links()) {
    options.paths = &paths_.try_emplace(&fabric, fabric.network).first->second;
  }
  ASSIGN_OR_RETURN(const SimulationResult result,
                   Simulate(workload.workload, fabric.network, fabric.system, options));
  std::vector<int64_t> begins_ns(moving.size(), 0), ends_ns(moving.size(), 0);
  for (const NodeTime& node : result.nodes) {
    const size_t i = node.id - EdgeNodeId(0);
    ends_ns[i] = std::max(ends_ns[i], node.finish_ns);
    begins_ns[i] = std::max(begins_ns[i], node.issue_ns);
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    (*lasts_ns)[numbers[i]] =
        static_cast<double>(ends_ns[i] - begins_ns[i] + overhead_ns) * scales[numbers[i]].time;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EdgeScale>> SharedTransfers::FitScales(
    const EdgeSchedule& schedule, absl::Span<const double> lasts_ns) const {
  std::vector<EdgeScale> scales(edges_.size());
  ASSIGN_OR_RETURN(std::vector<double> first_ns, LastsNs(schedule, scales));
  for (size_t i = 0; i < scales.size(); ++i) {
    if (first_ns[i] > 0) scales[i].bytes = Clamp(lasts_ns[i] / first_ns[i]);
  }
  // Latency does not grow with bytes: a line through both gives the rest.
  ASSIGN_OR_RETURN(std::vector<double> second_ns, LastsNs(schedule, scales));
  for (size_t i = 0; i < scales.size(); ++i) {
    const double slope = (second_ns[i] - first_ns[i]) / (scales[i].bytes - 1);
    if (!(slope > 0)) continue;
    scales[i].bytes = Clamp(scales[i].bytes + (lasts_ns[i] - second_ns[i]) / slope);
  }
  ASSIGN_OR_RETURN(std::vector<double> third_ns, LastsNs(schedule, scales));
  for (size_t i = 0; i < scales.size(); ++i) {
    if (third_ns[i] > 0) scales[i].time = lasts_ns[i] / third_ns[i];
  }
  return scales;
}

absl::StatusOr<EdgeTimes> ReplayOnNetwork(const ExecutionGraph& graph,
                                          const CommunicationMatch& match,
                                          const WorkloadEdges& edges,
                                          const SharedTransfers& transfers,
                                          absl::Span<const EdgeScale> scales,
                                          ReplayResources resources, GraphReplay begin) {
  EdgeTimes times;
  times.replay = std::move(begin);
  std::vector<int64_t> edge_ns(edges.edges.size(), 0);
  for (int replays = 0; replays < kMaxNetworkReplays; ++replays) {
    const int64_t before_ns = times.replay.makespan_ns;
    ASSIGN_OR_RETURN(const std::vector<double> lasts_ns,
                     transfers.LastsNs(ScheduleOf(graph, match, edges, times.replay), scales));
    for (size_t edge = 0; edge < edge_ns.size(); ++edge) {
      edge_ns[edge] = std::llround(std::min(lasts_ns[edge], static_cast<double>(kMaxDurationNs)));
    }
    ASSIGN_OR_RETURN(times, ReplayEdges(graph, match, edges, edge_ns, resources));
    const double now_ns = static_cast<double>(times.replay.makespan_ns);
    if (std::abs(now_ns - static_cast<double>(before_ns)) <= kSettledChange * now_ns) break;
  }
  return times;
}

}  // namespace meridian
