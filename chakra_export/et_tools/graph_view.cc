#include "chakra_export/et_tools/graph_view.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_replay.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

constexpr size_t kLabelWidth = 40;

// Returns the text as it stands between quotes.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(Printable(FirstCharacters(text, kLabelWidth)),
                             {{"\\", "\\\\"}, {"\"", "\\\""}});
}

bool IsReceive(const ExecutionGraph& graph, NodeIndex node) {
  return graph.type(node) == ChakraProtoMsg::COMM_RECV_NODE;
}

void AppendNode(const ExecutionGraph& graph, NodeIndex node, std::string* text) {
  absl::StrAppend(text, "    n", node, " [label=\"", Escaped(graph.name(node)), "\\n",
                  graph.id(node), ", ", graph.duration_ns(node),
                  " ns\", fillcolor=", IsCommunication(graph.type(node)) ? "khaki" : "lightblue",
                  "];\n");
}

void AppendEdges(const ExecutionGraph& graph, NodeIndex node, std::string* text) {
  const absl::Span<const NodeIndex> sources = graph.dependencies(node);
  for (size_t i = 0; i < sources.size(); ++i) {
    absl::StrAppend(text, "  n", sources[i], " -> n", node, " [label=\"",
                    graph.dependency_kinds(node)[i].Letters(), "\"];\n");
  }
}

// Joins each member of a communication with the one before it.
void AppendPeers(const ExecutionGraph& graph, absl::Span<const NodeIndex> members,
                 std::string* text) {
  for (size_t i = 1; i < members.size(); ++i) {
    absl::StrAppend(text, "  n", members[i - 1], " -> n", members[i],
                    " [style=dotted, dir=", IsReceive(graph, members[i]) ? "forward" : "none",
                    ", constraint=false];\n");
  }
}

constexpr int64_t kMaxNs = std::numeric_limits<int64_t>::max() / kPsPerNs;

// Rank 0 is process 1: viewers hide process 0.
int64_t Pid(int64_t rank) { return rank + 1; }

class TimelineWriter {
 public:
  TimelineWriter(const ExecutionGraph& graph, const NodeTimes& times, ByteSink* sink)
      : graph_(graph), times_(times), writer_(sink) {}

  absl::Status Write() {
    RETURN_IF_ERROR(WriteNames());
    int64_t base_ns = std::numeric_limits<int64_t>::max();
    for (const int64_t start_ns : times_.starts_ns) {
      if (start_ns != kNoTimeNs) base_ns = std::min(base_ns, start_ns);
    }
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (times_.starts_ns[node] == kNoTimeNs) continue;
      if (times_.ends_ns[node] - base_ns > kMaxNs) {
        return absl::OutOfRangeError(
            absl::StrCat(graph_.Describe(node),
                         " ends over 106 days after the first start; a timeline has no "
                         "room for that"));
      }
      RETURN_IF_ERROR(WriteNode(node, times_.starts_ns[node] - base_ns));
    }
    return writer_.Finish();
  }

 private:
  // Threads are numbered from 1, two for each resource: the second is for receives.
  int64_t Tid(NodeIndex node) const {
    return 2 * static_cast<int64_t>(graph_.resource_index(node)) +
           (IsReceive(graph_, node) ? 2 : 1);
  }

  absl::Status WriteNames() {
    for (const int64_t rank : graph_.Ranks()) {
      RETURN_IF_ERROR(writer_.WriteProcess(Pid(rank), absl::StrCat("rank ", rank), rank));
    }
    std::set<int64_t> named;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (!named.insert(Tid(node)).second) continue;
      const std::string name = absl::StrCat(ResourceName(graph_.resource(node)),
                                            IsReceive(graph_, node) ? " (receive)" : "");
      RETURN_IF_ERROR(writer_.WriteThread(Pid(graph_.rank(node)), Tid(node), name));
    }
    return absl::OkStatus();
  }

  absl::Status WriteNode(NodeIndex node, int64_t start_ns) {
    args_.Clear();
    args_.AddUint64("id", graph_.id(node));
    if (const Communication* communication = graph_.communication(node)) {
      args_.AddInt64("bytes", communication->bytes);
      if (graph_.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
        args_.AddString("group", graph_.groups()[communication->group].name);
      } else {
        args_.AddInt64("source", communication->source);
        args_.AddInt64("target", communication->target);
      }
    }
    const std::string waits_for = absl::StrJoin(
        graph_.dependencies(node), ",",
        [this](std::string* out, NodeIndex source) { absl::StrAppend(out, graph_.id(source)); });
    args_.AddJson("waits_for", absl::StrCat("[", waits_for, "]"));
    TraceJsonFields fields;
    fields.pid = Pid(graph_.rank(node));
    fields.tid = Tid(node);
    fields.name = graph_.name(node);
    const std::string category = ChakraProtoMsg::NodeType_Name(graph_.type(node));
    fields.category = category;
    fields.ts_ps = start_ns * kPsPerNs;
    fields.args = &args_;
    return writer_.WriteComplete(fields,
                                 (times_.ends_ns[node] - times_.starts_ns[node]) * kPsPerNs);
  }

  const ExecutionGraph& graph_;
  const NodeTimes& times_;
  TraceJsonWriter writer_;
  TraceJsonArgs args_;
};

}  // namespace

absl::StatusOr<std::string> GraphDot(const ExecutionGraph& graph) {
  if (graph.node_count() > kMaxDotNodes) {
    return InvalidArgument("the graph has ", graph.node_count(),
                           " nodes, and Graphviz draws at most ", kMaxDotNodes,
                           " well; draw one rank, e.g. --et=run/w.0.et, or write a --timeline");
  }
  const CommunicationMatch match(graph);
  std::map<int64_t, std::vector<NodeIndex>> ranks;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    ranks[graph.rank(node)].push_back(node);
  }
  std::string text = "digraph chakra {\n  node [shape=box, style=filled];\n";
  for (const auto& [rank, members] : ranks) {
    absl::StrAppend(&text, "  subgraph cluster_rank", rank, " {\n    label=\"rank ", rank, "\";\n");
    for (const NodeIndex node : members) AppendNode(graph, node, &text);
    absl::StrAppend(&text, "  }\n");
  }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) AppendEdges(graph, node, &text);
  for (CommunicationMatch::Instance i = 0; i < match.instance_count(); ++i) {
    AppendPeers(graph, match.members(i), &text);
  }
  return absl::StrCat(text, "}\n");
}

std::optional<NodeTimes> MeasuredTimes(const ExecutionGraph& graph) {
  NodeTimes times;
  bool any_is_known = false;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const int64_t start_ns = graph.start_ns(node);
    const int64_t duration_ns = graph.duration_ns(node);
    const bool is_known = start_ns != kNoTimeNs;
    if (!is_known && duration_ns > 0) return std::nullopt;
    any_is_known |= is_known;
    times.starts_ns.push_back(start_ns);
    times.ends_ns.push_back(is_known ? start_ns + duration_ns : kNoTimeNs);
  }
  return any_is_known ? std::make_optional(std::move(times)) : std::nullopt;
}

absl::StatusOr<NodeTimes> MeasuredOrReplayedTimes(const ExecutionGraph& graph) {
  if (std::optional<NodeTimes> measured = MeasuredTimes(graph)) return *std::move(measured);
  ASSIGN_OR_RETURN(GraphReplay replay, Annotate(ReplayAsSimulator(graph, CommunicationMatch(graph)),
                                                "without start times it must be replayed"));
  return NodeTimes{std::move(replay.starts_ns), std::move(replay.ends_ns)};
}

absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink) {
  return TimelineWriter(graph, times, sink).Write();
}

}  // namespace meridian
