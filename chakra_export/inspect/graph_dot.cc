#include "chakra_export/inspect/graph_dot.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr size_t kLabelWidth = 40;

absl::string_view Color(ChakraProtoMsg::NodeType type) {
  switch (type) {
    case ChakraProtoMsg::COMM_COLL_NODE:
      return "lightsalmon";
    case ChakraProtoMsg::COMM_SEND_NODE:
    case ChakraProtoMsg::COMM_RECV_NODE:
      return "khaki";
    case ChakraProtoMsg::COMP_NODE:
      return "lightblue";
    default:
      return "lightgray";
  }
}

// Returns the text as it stands between quotes.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(Printable(FirstCharacters(text, kLabelWidth)),
                             {{"\\", "\\\\"}, {"\"", "\\\""}});
}

// Returns the nodes of a node's communication, itself too; none when it does not communicate.
absl::Span<const NodeIndex> Peers(const CommunicationMatch& match, NodeIndex node) {
  const CommunicationMatch::Instance instance = match.instance_of(node);
  if (instance == CommunicationMatch::kNoInstance) return {};
  return match.members(instance);
}

// Calls fn with every neighbour.
template <typename Fn>
void ForEachNeighbour(const ExecutionGraph& graph, const SuccessorIndex& successors,
                      const CommunicationMatch& match, NodeIndex node, Fn fn) {
  for (const NodeIndex source : graph.dependencies(node)) fn(source);
  for (const NodeIndex target : successors.Of(node)) fn(target);
  for (const NodeIndex peer : Peers(match, node)) fn(peer);
}

void AppendNode(const ExecutionGraph& graph, NodeIndex node, bool has_hidden_neighbour,
                std::string* text) {
  absl::StrAppend(text, "    n", node, " [label=\"", Escaped(graph.name(node)), "\\n",
                  graph.id(node), ", ", graph.duration_ns(node),
                  " ns\", fillcolor=", Color(graph.type(node)),
                  has_hidden_neighbour ? ", style=\"filled,dashed\"" : "", "];\n");
}

// Appends the edges to a node from those that are shown.
void AppendEdges(const ExecutionGraph& graph, const CommunicationMatch& match, NodeIndex node,
                 const std::vector<bool>& shown, std::string* text) {
  const absl::Span<const NodeIndex> sources = graph.dependencies(node);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!shown[sources[i]]) continue;
    absl::StrAppend(text, "  n", sources[i], " -> n", node, " [label=\"",
                    graph.dependency_kinds(node)[i].Letters(), "\"];\n");
  }
  // Each member is joined with the one before it.
  const bool receives = graph.type(node) == ChakraProtoMsg::COMM_RECV_NODE;
  NodeIndex before = kNoNodeIndex;
  for (const NodeIndex peer : Peers(match, node)) {
    if (!shown[peer]) continue;
    if (peer == node && before != kNoNodeIndex) {
      absl::StrAppend(text, "  n", before, " -> n", node,
                      " [style=dotted, dir=", receives ? "forward" : "none",
                      ", constraint=false];\n");
    }
    before = peer;
  }
}

}  // namespace

std::vector<NodeIndex> AllNodes(const ExecutionGraph& graph) {
  std::vector<NodeIndex> nodes(graph.node_count());
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  return nodes;
}

std::vector<NodeIndex> Neighbourhood(const ExecutionGraph& graph, const CommunicationMatch& match,
                                     NodeIndex center, size_t max_nodes) {
  const SuccessorIndex successors(graph);
  std::vector<bool> seen(graph.node_count(), false);
  std::vector<NodeIndex> nodes = {center};
  seen[center] = true;
  for (size_t next = 0; next < nodes.size() && nodes.size() < max_nodes; ++next) {
    ForEachNeighbour(graph, successors, match, nodes[next], [&](NodeIndex other) {
      if (seen[other] || nodes.size() >= max_nodes) return;
      seen[other] = true;
      nodes.push_back(other);
    });
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string GraphDot(const ExecutionGraph& graph, const CommunicationMatch& match,
                     const std::vector<NodeIndex>& nodes) {
  const SuccessorIndex successors(graph);
  std::vector<bool> shown(graph.node_count(), false);
  std::map<int64_t, std::vector<NodeIndex>> ranks;
  for (const NodeIndex node : nodes) {
    shown[node] = true;
    ranks[graph.rank(node)].push_back(node);
  }
  std::string text = "digraph chakra {\n  node [shape=box, style=filled];\n";
  for (const auto& [rank, members] : ranks) {
    absl::StrAppend(&text, "  subgraph cluster_rank", rank, " {\n    label=\"rank ", rank, "\";\n");
    for (const NodeIndex node : members) {
      bool has_hidden = false;
      ForEachNeighbour(graph, successors, match, node,
                       [&](NodeIndex other) { has_hidden |= !shown[other]; });
      AppendNode(graph, node, has_hidden, &text);
    }
    absl::StrAppend(&text, "  }\n");
  }
  for (const auto& [rank, members] : ranks) {
    for (const NodeIndex node : members) AppendEdges(graph, match, node, shown, &text);
  }
  return absl::StrCat(text, "}\n");
}

absl::StatusOr<NodeIndex> FindGraphNode(const ExecutionGraph& graph, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  std::optional<int64_t> rank;
  uint64_t id = 0;
  bool valid = parts.size() <= 2 && absl::SimpleAtoi(parts.back(), &id);
  if (parts.size() == 2) valid &= absl::SimpleAtoi(parts[0], &rank.emplace());
  if (!valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' names no node; expected an id, 17, or rank and id, 3:17"));
  }
  NodeIndex found = kNoNodeIndex;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.id(node) != id || (rank.has_value() && graph.rank(node) != *rank)) continue;
    if (found == kNoNodeIndex || graph.rank(node) < graph.rank(found)) found = node;
  }
  if (found == kNoNodeIndex) return absl::NotFoundError(absl::StrCat("there is no node ", text));
  return found;
}

NodeIndex LongestNode(const ExecutionGraph& graph) {
  NodeIndex longest = 0;
  for (NodeIndex node = 1; node < graph.node_count(); ++node) {
    if (graph.duration_ns(node) > graph.duration_ns(longest)) longest = node;
  }
  return longest;
}

}  // namespace meridian
