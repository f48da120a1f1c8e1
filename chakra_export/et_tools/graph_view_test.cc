#include "chakra_export/et_tools/graph_view.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExecutionGraph GraphOf(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  absl::StatusOr<ExecutionGraph> graph =
      ReadEtGraph(FileSystem::Posix(), WriteWorkload(directory, "w", ranks));
  EXPECT_OK(graph);
  return *std::move(graph);
}

TEST(GraphDotTest, WritesNodesEdgesAndPeers) {
  Node quoted = CompNode(1, 2);
  quoted.set_name("say \"\\\x01\"");
  const ExecutionGraph graph =
      GraphOf({{quoted, SendNode(2, 0, 1, 8, 0, {1})}, {RecvNode(3, 0, 1, 8)}});
  EXPECT_THAT(
      GraphDot(graph),
      IsOkAndHolds("digraph chakra {\n"
                   "  node [shape=box, style=filled];\n"
                   "  subgraph cluster_rank0 {\n"
                   "    label=\"rank 0\";\n"
                   "    n0 [label=\"say \\\"\\\\?\\\"\\n1, 2000 ns\", fillcolor=lightblue];\n"
                   "    n1 [label=\"n2\\n2, 0 ns\", fillcolor=khaki];\n"
                   "  }\n"
                   "  subgraph cluster_rank1 {\n"
                   "    label=\"rank 1\";\n"
                   "    n2 [label=\"n3\\n3, 0 ns\", fillcolor=khaki];\n"
                   "  }\n"
                   "  n0 -> n1 [label=\"d\"];\n"
                   "  n1 -> n2 [style=dotted, dir=forward, constraint=false];\n"
                   "}\n"));
}

TEST(GraphDotTest, AGraphThatNobodyCanReadIsRefused) {
  std::vector<Node> nodes;
  for (uint64_t id = 1; id <= kMaxDotNodes; ++id) nodes.push_back(CompNode(id, 1));
  EXPECT_OK(GraphDot(GraphOf({nodes})));
  EXPECT_THAT(GraphDot(GraphOf({nodes, {CompNode(1, 1)}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the graph has 1001 nodes")));
}

TEST(GraphTimelineTest, WritesMeasuredTimesFromTheFirstOn) {
  const ExecutionGraph graph = GraphOf(TrainingStep());
  const std::optional<NodeTimes> times = MeasuredTimes(graph);
  ASSERT_TRUE(times.has_value());
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteGraphTimeline(graph, *times, &sink));
  EXPECT_THAT(
      json,
      AllOf(HasSubstr(R"("name":"process_name","args":{"name":"rank 1"})"),
            HasSubstr(R"("args":{"name":"stream 7"})"),
            HasSubstr("\"args\":{\"name\":\"stream 21 (receive)\"}"),
            HasSubstr(R"("ts":110,"name":"secret_model/layer1/attention_matmul")"),
            HasSubstr(R"("dur":80,"args":{"id":3,"waits_for":[1]})"),
            HasSubstr(R"("args":{"id":2,"bytes":8388608,"group":"","waits_for":[1]})"),
            HasSubstr(R"("args":{"id":7,"bytes":65536,"source":0,"target":1,"waits_for":[6]})")));
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.parse(json).get(document), simdjson::SUCCESS);
}

TEST(GraphTimelineTest, WritesReplayedTimes) {
  const ExecutionGraph graph = GraphOf({{CompNode(1, 5), CompNode(2, 6, {1})}});
  EXPECT_FALSE(MeasuredTimes(graph).has_value());
  ASSERT_OK_AND_ASSIGN(const NodeTimes times, MeasuredOrReplayedTimes(graph));
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteGraphTimeline(graph, times, &sink));
  EXPECT_THAT(json, AllOf(HasSubstr(R"("ts":5,"name":"n2")"), HasSubstr(R"("dur":6,)")));
}

TEST(GraphTimelineTest, TimesThatDoNotFitAreAnError) {
  ChakraProtoMsg::Node node = CompNode(1, uint64_t{1} << 50);
  node.set_start_time_micros(1);
  const ExecutionGraph graph = GraphOf({{node}});
  std::string json;
  StringSink sink(&json);
  EXPECT_THAT(WriteGraphTimeline(graph, *MeasuredTimes(graph), &sink),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("rank 0 node 1")));
}

// Computation of one rank, on a stream each.
class Graph {
 public:
  NodeIndex Add(int64_t start_ns, int64_t duration_ns) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = "kernel";
    node.resource =
        builder_.AddResource({0, ResourceKind::kStream, static_cast<int64_t>(last_id_)});
    node.start_ns = start_ns;
    node.duration_ns = duration_ns;
    return builder_.AddNode(node);
  }

  // A rank's part of an all-reduce of both ranks.
  NodeIndex AddAllReduce(int64_t rank, const std::string& group) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = "all-reduce";
    node.type = ChakraProtoMsg::COMM_COLL_NODE;
    node.resource = builder_.AddResource({rank, ResourceKind::kCommunication, 0});
    node.duration_ns = 100;
    node.communication.emplace();
    node.communication->bytes = 64;
    node.communication->group = builder_.AddGroup({group, {0, 1}});
    return builder_.AddNode(node);
  }

  void AddDependency(NodeIndex node, NodeIndex source) {
    builder_.AddDependency(node, source, EdgeKind::kData);
  }

  ExecutionGraph Build() { return std::move(builder_).Build(); }

 private:
  ExecutionGraphBuilder builder_;
  uint64_t last_id_ = 0;
};

std::vector<std::pair<int64_t, int64_t>> Intervals(const NodeTimes& times) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (size_t node = 0; node < times.starts_ns.size(); ++node) {
    intervals.emplace_back(times.starts_ns[node], times.ends_ns[node]);
  }
  return intervals;
}

TEST(NodeTimesTest, StartsAreKnownWhenEveryNodeThatTookTimeHasOne) {
  Graph all;
  all.Add(1000, 5);
  all.Add(kNoTimeNs, 0);
  EXPECT_TRUE(MeasuredTimes(all.Build()).has_value());

  Graph some;
  some.Add(1000, 5);
  some.Add(kNoTimeNs, 1);
  EXPECT_FALSE(MeasuredTimes(some.Build()).has_value());

  Graph none;
  none.Add(kNoTimeNs, 0);
  EXPECT_FALSE(MeasuredTimes(none.Build()).has_value());
  EXPECT_FALSE(MeasuredTimes(Graph().Build()).has_value());
}

TEST(NodeTimesTest, MeasuredTimesAreThoseOfTheTrace) {
  Graph graph;
  graph.Add(1000, 5);
  graph.Add(kNoTimeNs, 0);
  graph.Add(900, 0);
  const std::optional<NodeTimes> times = MeasuredTimes(graph.Build());
  ASSERT_TRUE(times.has_value());
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_THAT(Intervals(*times),
              ElementsAre(Pair(1000, 1005), Pair(kNoTimeNs, kNoTimeNs), Pair(900, 900)));
}

// Three kernels on streams of their own: a simulator has one place for them.
TEST(NodeTimesTest, ASimulatorRunsOneComputationOfARankAtATime) {
  Graph graph;
  const NodeIndex first = graph.Add(kNoTimeNs, 30);
  const NodeIndex second = graph.Add(kNoTimeNs, 20);
  const NodeIndex third = graph.Add(kNoTimeNs, 10);
  graph.AddDependency(second, third);
  const ExecutionGraph built = graph.Build();
  ASSERT_OK_AND_ASSIGN(const NodeTimes times, MeasuredOrReplayedTimes(built));
  // The first of those that wait for nothing, then the third, which the second waits for.
  EXPECT_EQ(times.starts_ns[first], 0);
  EXPECT_EQ(times.starts_ns[third], 30);
  EXPECT_EQ(times.ends_ns[third], 40);
  EXPECT_EQ(times.starts_ns[second], 40);
  EXPECT_EQ(times.ends_ns[second], 60);
}

// Each rank begins with the all-reduce that the other one keeps for later.
TEST(NodeTimesTest, ASimulatorThatCannotGoOnIsAnError) {
  Graph graph;
  const NodeIndex a0 = graph.AddAllReduce(0, "1");
  const NodeIndex b0 = graph.AddAllReduce(0, "2");
  const NodeIndex b1 = graph.AddAllReduce(1, "2");
  const NodeIndex a1 = graph.AddAllReduce(1, "1");
  graph.AddDependency(b0, a0);
  graph.AddDependency(a1, b1);
  const ExecutionGraph built = graph.Build();
  const CommunicationMatch match(built);
  ASSERT_TRUE(match.problems().empty());
  EXPECT_THAT(MeasuredOrReplayedTimes(built),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without start times it must be replayed: deadlock")));
}

}  // namespace
}  // namespace meridian
