#include "astra_bridge/calibration/compute_beside.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "chakra_export/et/et_attributes.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

Span SpanOf(const ExecutionGraph& graph, NodeIndex node) {
  return {graph.start_ns(node), graph.start_ns(node) + graph.duration_ns(node)};
}

// By rank: when computation starts and ends, in order and without overlaps.
using ComputeSpans = std::map<int64_t, std::vector<Span>>;

ComputeSpans FindComputeSpans(const ExecutionGraph& graph, const std::vector<bool>& computes) {
  ComputeSpans computing;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (!computes[node] || graph.start_ns(node) == kNoTimeNs) continue;
    computing[graph.rank(node)].push_back(SpanOf(graph, node));
  }
  for (auto& [rank, spans] : computing) {
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
    int64_t last_end_ns = std::numeric_limits<int64_t>::min();
    for (Span& span : spans) {
      span.start_ns = std::max(span.start_ns, last_end_ns);
      span.end_ns = std::max(span.start_ns, span.end_ns);
      last_end_ns = span.end_ns;
    }
  }
  return computing;
}

double OverlapNs(const Span& one, const std::vector<Span>& others) {
  double overlap_ns = 0;
  auto other = std::partition_point(others.begin(), others.end(),
                                    [&](const Span& s) { return s.end_ns <= one.start_ns; });
  for (; other != others.end() && other->start_ns < one.end_ns; ++other) {
    overlap_ns += static_cast<double>(std::min(one.end_ns, other->end_ns) -
                                      std::max(one.start_ns, other->start_ns));
  }
  return overlap_ns;
}

}  // namespace

absl::StatusOr<bool> IsComputation(const ChakraProtoMsg::Node& node) {
  if (node.type() != ChakraProtoMsg::COMP_NODE) return false;
  ASSIGN_OR_RETURN(const std::optional<std::string> op_kind,
                   GetStringAttribute(node.attr(), kOpKindAttribute));
  return op_kind != kHostGapOpKind && op_kind != kUnmatchedOpKind && op_kind != kLocalOpKind;
}

ComputeBeside::Key ComputeBeside::KeyFor(CollectiveKind kind, int64_t bytes, int32_t ranks,
                                         std::vector<int32_t> members) {
  if (kind == CollectiveKind::kPointToPoint) members.clear();
  std::sort(members.begin(), members.end());
  return {kind, bytes, ranks, std::move(members)};
}

void ComputeBeside::Add(const ExecutionGraph& graph, const std::vector<bool>& computes,
                        const CommunicationMatch& match, const WorkloadEdges& edges) {
  const ComputeSpans computing = FindComputeSpans(graph, computes);
  const int32_t ranks = static_cast<int32_t>(graph.Ranks().size());
  for (size_t instance = 0; instance < match.instance_count(); ++instance) {
    if (edges.edge_of_instance[instance] == kNoEdge) continue;
    const CommEdge& edge = edges.edges[edges.edge_of_instance[instance]];
    Times& times = times_[KeyFor(edge.kind, edge.bytes, ranks, edge.participants)];
    for (NodeIndex node : match.members(static_cast<CommunicationMatch::Instance>(instance))) {
      if (graph.start_ns(node) == kNoTimeNs) continue;
      times.all_ns += static_cast<double>(graph.duration_ns(node));
      const auto of_rank = computing.find(graph.rank(node));
      if (of_rank == computing.end()) continue;
      times.beside_ns += OverlapNs(SpanOf(graph, node), of_rank->second);
    }
  }
}

void ComputeBeside::Add(const ComputeBeside& other) {
  for (const auto& [key, times] : other.times_) {
    times_[key].all_ns += times.all_ns;
    times_[key].beside_ns += times.beside_ns;
  }
}

double ComputeBeside::ShareOfAll() const {
  double all_ns = 0, beside_ns = 0;
  for (const auto& [key, times] : times_) {
    all_ns += times.all_ns;
    beside_ns += times.beside_ns;
  }
  return all_ns > 0 ? beside_ns / all_ns : 0;
}

std::optional<double> ComputeBeside::ShareOf(const TransferCell& cell) const {
  const auto found = times_.find(KeyFor(cell.kind, cell.bytes, cell.ranks, cell.participants));
  if (found == times_.end() || found->second.all_ns <= 0) return std::nullopt;
  return found->second.beside_ns / found->second.all_ns;
}

}  // namespace meridian
