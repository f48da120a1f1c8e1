#include "astra_bridge/prediction/workload_edges.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/graph/graph_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Instance = CommunicationMatch::Instance;

constexpr size_t kNamedProblems = 3;

// Returns nullopt for types that no NetworkTiming knows.
std::optional<CollectiveKind> KindOf(ChakraProtoMsg::CollectiveCommType type) {
  const std::optional<CollectiveKind> kind = CollectiveKindOf(type);
  return kind.has_value() ? TimedKindOf(*kind) : std::nullopt;
}

absl::Status CheckMatch(const CommunicationMatch& match) {
  if (match.instance_count() == 0) {
    return InvalidArgument(
        "no node communicates, so there is nothing for a network to time; expected COMM_COLL_NODE, "
        "COMM_SEND_NODE or COMM_RECV_NODE (see chakra_inspect --stats)");
  }
  const std::vector<MatchProblem>& problems = match.problems();
  if (problems.empty()) return absl::OkStatus();
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kNamedProblems); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", problems[i].text);
  }
  if (problems.size() > kNamedProblems) {
    absl::StrAppend(&text, "; and ", problems.size() - kNamedProblems, " more");
  }
  return InvalidArgument(
      "communication does not match between ranks: ", text,
      "; export all ranks of the same steps, with the groups in the traces or in --comm_groups");
}

class EdgeFinder {
 public:
  EdgeFinder(const ExecutionGraph& graph, const CommunicationMatch& match)
      : graph_(graph), match_(match), ranks_(graph.Ranks()) {}

  absl::StatusOr<WorkloadEdges> Run() {
    RETURN_IF_ERROR(CheckRanks());
    for (Instance instance = 0; instance < match_.instance_count(); ++instance) {
      const NodeIndex node = match_.members(instance)[0];
      absl::StatusOr<std::optional<CommEdge>> edge =
          graph_.type(node) == ChakraProtoMsg::COMM_COLL_NODE
              ? CollectiveEdge(node)
              : MessageEdge(node, match_.members(instance).size());
      RETURN_IF_ERROR(edge.status());
      if (!edge->has_value()) {
        result_.edge_of_instance.push_back(kNoCommEdge);
        continue;
      }
      result_.edge_of_instance.push_back(static_cast<CommEdgeIndex>(result_.edges.size()));
      result_.edges.push_back(**std::move(edge));
      result_.nodes.push_back(node);
    }
    return std::move(result_);
  }

 private:
  absl::Status CheckRanks() const {
    if (!ranks_.empty() && ranks_.back() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("rank ", ranks_.back(), " is too large; expected at most 2147483647");
    }
    return absl::OkStatus();
  }

  bool HasTrace(int64_t rank) const { return absl::c_binary_search(ranks_, rank); }

  absl::StatusOr<std::optional<CommEdge>> CollectiveEdge(NodeIndex node) {
    const Communication& communication = *graph_.communication(node);
    const ProcessGroup& group = graph_.groups()[communication.group];
    const int64_t number = collectives_[communication.group]++;
    if (number == 0) RETURN_IF_ERROR(CheckGroup(node, group));
    const std::optional<CollectiveKind> kind = KindOf(communication.type);
    if (!kind.has_value()) {
      ++result_.not_priced[ChakraProtoMsg::CollectiveCommType_Name(communication.type)];
      return std::nullopt;
    }
    CommEdge edge;
    edge.id = group.name.empty() ? absl::StrCat("world#", number)
                                 : absl::StrCat("group ", group.name, "#", number);
    edge.kind = *kind;
    edge.bytes = communication.bytes;
    edge.participants.assign(group.ranks.begin(), group.ranks.end());
    return edge;
  }

  absl::Status CheckGroup(NodeIndex node, const ProcessGroup& group) const {
    std::vector<int64_t> ranks = group.ranks;
    absl::c_sort(ranks);
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (!HasTrace(ranks[i])) {
        return NoTrace(node, ranks[i], absl::StrCat("is of group \"", group.name, "\" with rank "));
      }
      if (i > 0 && ranks[i] == ranks[i - 1]) {
        return InvalidArgument(graph_.Describe(node), ": rank ", ranks[i], " is twice in group \"",
                               group.name, "\"");
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<CommEdge>> MessageEdge(NodeIndex node, size_t members) {
    const Communication& communication = *graph_.communication(node);
    const bool sends = graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    if (members < 2) {
      return NoTrace(node, sends ? communication.target : communication.source,
                     sends ? "sends to rank " : "receives from rank ");
    }
    const int64_t source = graph_.rank(node);
    const int64_t target = communication.target;
    if (source == target) return InvalidArgument(graph_.Describe(node), " sends to its own rank");
    const int64_t number = messages_[{source, target, communication.tag}]++;
    CommEdge edge;
    edge.id = absl::StrCat("send ", source, ">", target, " tag ", communication.tag, "#", number);
    edge.kind = CollectiveKind::kPointToPoint;
    edge.bytes = communication.bytes;
    edge.participants = {static_cast<int32_t>(source), static_cast<int32_t>(target)};
    return edge;
  }

  absl::Status NoTrace(NodeIndex node, int64_t rank, absl::string_view verb) const {
    return InvalidArgument(graph_.Describe(node), " ", verb, rank,
                           ", which has no trace; export all ranks of the job");
  }

  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const std::vector<int64_t> ranks_;
  // How many collectives of each group there have been so far, and how many messages by source,
  // target and tag; instances come in the order in which ranks run them.
  std::map<GroupIndex, int64_t> collectives_;
  std::map<std::tuple<int64_t, int64_t, int32_t>, int64_t> messages_;
  WorkloadEdges result_;
};

// A trace that contradicts itself is the more telling reason for nodes to wait for ever.
absl::Status WhyNodesWait(const ExecutionGraph& graph, const absl::Status& deadlock) {
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  if (cycle.empty()) {
    return FailedPrecondition(deadlock.message(),
                              "; ranks must run their common communication in one order");
  }
  return FailedPrecondition(
      "the dependencies of the trace form a cycle: ", DescribeCycle(graph, cycle),
      "; chakra_inspect --check lists what is wrong with it");
}

}  // namespace

absl::StatusOr<WorkloadEdges> FindWorkloadEdges(const ExecutionGraph& graph,
                                                const CommunicationMatch& match) {
  RETURN_IF_ERROR(CheckMatch(match));
  return EdgeFinder(graph, match).Run();
}

absl::StatusOr<EdgeTimes> ReplayEdges(const ExecutionGraph& graph, const CommunicationMatch& match,
                                      const WorkloadEdges& edges, absl::Span<const int64_t> edge_ns,
                                      ReplayResources resources) {
  MERIDIAN_CHECK(edge_ns.size() == edges.edges.size());
  EdgeTimes times;
  times.starts_ns.resize(edges.edges.size());
  times.lasts_ns.assign(edge_ns.begin(), edge_ns.end());
  ReplayOptions options;
  options.resources = resources;
  options.send_mode = SendMode::kRendezvousIfPossible;
  options.pricer = [&](absl::Span<const NodeIndex> members, int64_t start_ns,
                       absl::Span<int64_t> durations_ns) {
    const CommEdgeIndex edge = edges.edge_of_instance[match.instance_of(members[0])];
    if (edge == kNoCommEdge) return absl::OkStatus();
    absl::c_fill(durations_ns, edge_ns[edge]);
    times.starts_ns[edge] = start_ns;
    return absl::OkStatus();
  };
  absl::StatusOr<GraphReplay> replay = ReplayGraph(graph, match, options);
  if (absl::IsFailedPrecondition(replay.status())) return WhyNodesWait(graph, replay.status());
  RETURN_IF_ERROR(replay.status());
  times.replay = *std::move(replay);
  return times;
}

}  // namespace meridian
