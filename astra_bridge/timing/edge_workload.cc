#include "astra_bridge/timing/edge_workload.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr uint64_t kStartNodeId = 1;

class Builder {
 public:
  Builder(const Fabric& fabric, bool start_nodes) : fabric_(fabric) {
    result_.workload.ranks.resize(fabric.network.npus());
    if (!start_nodes) return;
    dependencies_ = {kStartNodeId};
    WorkloadNode start;
    start.id = kStartNodeId;
    for (RankWorkload& rank : result_.workload.ranks) rank.Add(start);
  }

  absl::Status Add(const CommEdge& edge, uint64_t id) {
    WorkloadNode node;
    node.id = id;
    node.bytes = edge.bytes;
    if (edge.kind == CollectiveKind::kPointToPoint) {
      AddSendAndReceive(edge, node);
      return absl::OkStatus();
    }
    node.type = WorkloadNodeType::kCollective;
    node.op = edge.kind;
    node.group = GroupOf(edge);
    ASSIGN_OR_RETURN(std::vector<CollectiveAlgorithm> algorithms, EdgeAlgorithms(edge, fabric_));
    node.algorithms = PositionOf(std::move(algorithms));
    for (int32_t rank : edge.participants) result_.workload.ranks[rank].Add(node, dependencies_);
    return absl::OkStatus();
  }

  EdgeWorkload Finish() {
    for (const RankWorkload& rank : result_.workload.ranks) {
      result_.comm_streams = std::max(
          result_.comm_streams, static_cast<int32_t>(rank.nodes().size() - dependencies_.size()));
    }
    return std::move(result_);
  }

 private:
  void AddSendAndReceive(const CommEdge& edge, WorkloadNode node) {
    const int32_t source = edge.participants[0];
    const int32_t destination = edge.participants[1];
    // Edges between the same ranks must not take each other's messages.
    node.tag = static_cast<int32_t>(node.id);
    node.type = WorkloadNodeType::kSend;
    node.peer = destination;
    result_.workload.ranks[source].Add(node, dependencies_);
    node.type = WorkloadNodeType::kReceive;
    node.peer = source;
    result_.workload.ranks[destination].Add(node, dependencies_);
  }

  int32_t GroupOf(const CommEdge& edge) {
    if (IsWorld(edge, fabric_)) return kWorldGroup;
    const int32_t next = static_cast<int32_t>(group_ids_.size()) + 1;
    const auto [group, is_new] = group_ids_.insert({edge.participants, next});
    if (is_new) result_.workload.groups[next] = edge.participants;
    return group->second;
  }

  int32_t PositionOf(std::vector<CollectiveAlgorithm> algorithms) {
    std::vector<std::vector<CollectiveAlgorithm>>& lists = result_.workload.algorithms;
    const auto found = std::find(lists.begin(), lists.end(), algorithms);
    const int32_t position = static_cast<int32_t>(found - lists.begin());
    if (found == lists.end()) lists.push_back(std::move(algorithms));
    return position;
  }

  const Fabric& fabric_;
  std::vector<uint64_t> dependencies_;
  std::map<std::vector<int32_t>, int32_t> group_ids_;
  EdgeWorkload result_;
};

absl::Status EdgeError(const CommEdge& edge, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("edge ", Printable(edge.id), ": ", reason));
}

}  // namespace

uint64_t EdgeNodeId(size_t position) { return kStartNodeId + 1 + position; }

absl::StatusOr<EdgeWorkload> MakeEdgeWorkload(absl::Span<const CommEdge> edges,
                                              const Fabric& fabric, bool start_nodes) {
  Builder builder(fabric, start_nodes);
  for (size_t i = 0; i < edges.size(); ++i) {
    RETURN_IF_ERROR(builder.Add(edges[i], EdgeNodeId(i)));
  }
  return builder.Finish();
}

bool IsWorld(const CommEdge& edge, const Fabric& fabric) {
  return edge.participants.size() == static_cast<size_t>(fabric.network.npus());
}

absl::StatusOr<std::vector<CollectiveAlgorithm>> EdgeAlgorithms(const CommEdge& edge,
                                                                const Fabric& fabric) {
  using Kind = CollectiveAlgorithm::Kind;
  const bool by_dimension = IsWorld(edge, fabric) && fabric.network.dimensions.size() > 1;
  const auto one_phase = [&](Kind kind) {
    CollectiveAlgorithm algorithm;
    algorithm.kind = kind;
    algorithm.over_all_ranks = by_dimension;
    return std::vector<CollectiveAlgorithm>{algorithm};
  };
  switch (edge.hint) {
    case AlgorithmHint::kNone:
      break;
    case AlgorithmHint::kRing:
      return one_phase(Kind::kRing);
    case AlgorithmHint::kDirect:
      return one_phase(Kind::kDirect);
    case AlgorithmHint::kTree:
      if (by_dimension) {
        return EdgeError(edge, absl::StrCat("collective_algo is tree, but ", fabric.network.source,
                                            " has several dimensions; trees need one"));
      }
      return one_phase(Kind::kDoubleBinaryTree);
    case AlgorithmHint::kHierarchical:
      if (!by_dimension) {
        return EdgeError(
            edge, absl::StrCat("collective_algo is hierarchical, which needs all ranks of a "
                               "network of several dimensions; ",
                               fabric.network.source, " has ", fabric.network.dimensions.size(),
                               " and ", fabric.network.npus(), " ranks, ", edge.participants.size(),
                               " of which take part"));
      }
      break;
  }
  const std::vector<CollectiveAlgorithm>& algorithms = fabric.system.algorithms_of(edge.kind);
  if (algorithms.empty()) {
    return EdgeError(edge, absl::StrCat(fabric.system.source, ": ", CollectiveKindName(edge.kind),
                                        "-implementation is missing; expected e.g. [\"ring\"]"));
  }
  return algorithms;
}

}  // namespace meridian
