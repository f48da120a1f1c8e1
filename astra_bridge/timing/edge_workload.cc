#include "astra_bridge/timing/edge_workload.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Edges that ranks run at a time: of all ranks, and of each in any case.
constexpr size_t kMaxEdgesOfAll = 1 << 16;
constexpr size_t kEdgesOfEach = 64;

struct EdgePart {
  int64_t begin_ns;
  int64_t end_ns;
  WorkloadNode node;
};

// Returns the position of the algorithms in the workload's lists, where they are added if need be.
int32_t PositionOf(std::vector<CollectiveAlgorithm> algorithms, Workload* workload) {
  std::vector<std::vector<CollectiveAlgorithm>>& lists = workload->algorithms;
  const auto found = std::find(lists.begin(), lists.end(), algorithms);
  const int32_t position = static_cast<int32_t>(found - lists.begin());
  if (found == lists.end()) lists.push_back(std::move(algorithms));
  return position;
}

absl::StatusOr<std::vector<WorkloadNode>> NodesOf(const CommEdge& edge, const Fabric& fabric,
                                                  uint64_t id, int32_t group, Workload* workload) {
  WorkloadNode node;
  node.id = id;
  node.bytes = edge.bytes;
  if (edge.kind == CollectiveKind::kPointToPoint) {
    std::vector<WorkloadNode> nodes(2, node);
    for (const int i : {0, 1}) {
      nodes[i].type = i == 0 ? WorkloadNodeType::kSend : WorkloadNodeType::kReceive;
      nodes[i].peer = edge.participants[1 - i];
      // Edges between the same ranks must not take each other's messages.
      nodes[i].tag = static_cast<int32_t>(id);
    }
    return nodes;
  }
  node.type = WorkloadNodeType::kCollective;
  node.op = edge.kind;
  node.group = group;
  if (group != kWorldGroup) workload->groups[group] = edge.participants;
  ASSIGN_OR_RETURN(std::vector<CollectiveAlgorithm> algorithms, EdgeAlgorithms(edge, fabric));
  node.algorithms = PositionOf(std::move(algorithms), workload);
  return std::vector<WorkloadNode>(edge.participants.size(), node);
}

// Adds a rank's parts, each after the last that ended before it began.
void AddParts(std::vector<EdgePart> parts, int64_t overhead_ns, RankWorkload* rank) {
  std::vector<uint64_t> before;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const EdgePart& a, const EdgePart& b) { return a.begin_ns < b.begin_ns; });
  // Ends and ids of parts that have begun, the earliest end first.
  std::multimap<int64_t, uint64_t> ends;
  int64_t before_ns = 0;
  for (EdgePart& part : parts) {
    while (!ends.empty() && ends.begin()->first <= part.begin_ns) {
      before_ns = ends.begin()->first;
      before = {ends.begin()->second};
      ends.erase(ends.begin());
    }
    part.node.delay_ns = part.begin_ns - before_ns + overhead_ns;
    ends.emplace(part.end_ns, part.node.id);
    rank->Add(std::move(part.node), before);
  }
}

absl::Status EdgeError(const CommEdge& edge, absl::string_view reason) {
  return InvalidArgument("edge ", Printable(edge.id), ": ", reason);
}

}  // namespace

uint64_t EdgeNodeId(size_t position) { return position + 1; }

absl::StatusOr<EdgeWorkload> MakeEdgeWorkload(absl::Span<const CommEdge> edges,
                                              const Fabric& fabric, const EdgeSchedule& schedule,
                                              int64_t overhead_ns) {
  EdgeWorkload result;
  result.workload.ranks.resize(fabric.network.npus());
  std::vector<std::vector<EdgePart>> parts(result.workload.ranks.size());
  for (size_t e = 0; e < edges.size(); ++e) {
    for (const int32_t device : edges[e].participants) {
      if (device < 0 || device >= fabric.network.npus()) {
        return EdgeError(edges[e],
                         absl::StrCat("device ", device, " does not exist; the network has ",
                                      fabric.network.npus()));
      }
    }
    // Ranks may begin edges of one group in different orders: each is a group of its own.
    const bool is_world = edges.size() == 1 && IsWorld(edges[e], fabric);
    const int32_t group = is_world ? kWorldGroup : static_cast<int32_t>(e) + 1;
    ASSIGN_OR_RETURN(std::vector<WorkloadNode> nodes,
                     NodesOf(edges[e], fabric, EdgeNodeId(e), group, &result.workload));
    const int64_t end_ns =
        schedule.ends_ns.empty() ? std::numeric_limits<int64_t>::max() : schedule.ends_ns[e];
    for (size_t i = 0; i < nodes.size(); ++i) {
      parts[edges[e].participants[i]].push_back(
          {schedule.begins_ns[e][i], end_ns, std::move(nodes[i])});
    }
  }
  for (size_t r = 0; r < parts.size(); ++r) {
    const size_t most = std::max(kMaxEdgesOfAll / parts.size(), kEdgesOfEach);
    result.comm_streams =
        std::max(result.comm_streams, static_cast<int32_t>(std::min(parts[r].size(), most)));
    AddParts(std::move(parts[r]), overhead_ns, &result.workload.ranks[r]);
  }
  return result;
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
