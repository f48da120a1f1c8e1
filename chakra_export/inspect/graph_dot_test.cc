#include "chakra_export/inspect/graph_dot.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
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
  const CommunicationMatch match(graph);
  EXPECT_EQ(GraphDot(graph, match, AllNodes(graph)),
            "digraph chakra {\n"
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
            "}\n");
  // Without the receive the send's border says that there is more.
  EXPECT_THAT(GraphDot(graph, match, {0, 1}), HasSubstr("khaki, style=\"filled,dashed\""));
}

TEST(GraphDotTest, TheNeighbourhoodIsWhatIsNearest) {
  // 1 -> 2 -> 3 -> 4 -> 5, and 3 -> 6.
  const ExecutionGraph graph =
      GraphOf({{CompNode(1, 1), CompNode(2, 1, {1}), CompNode(3, 1, {2}), CompNode(4, 1, {3}),
                CompNode(5, 9, {4}), CompNode(6, 1, {3})}});
  const CommunicationMatch match(graph);
  EXPECT_THAT(Neighbourhood(graph, match, 2, 1), ElementsAre(2));
  EXPECT_THAT(Neighbourhood(graph, match, 2, 4), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(Neighbourhood(graph, match, 0, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(Neighbourhood(graph, match, 2, 100), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(LongestNode(graph), 4);
}

TEST(GraphDotTest, TheNeighbourhoodCrossesRanksByCommunication) {
  const ExecutionGraph graph = GraphOf({{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)},
                                        {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)}});
  EXPECT_THAT(Neighbourhood(graph, CommunicationMatch(graph), 0, 9), ElementsAre(0, 1));
}

TEST(GraphDotTest, FindsNodesByRankAndId) {
  const ExecutionGraph graph = GraphOf({{CompNode(1, 1)}, {CompNode(1, 1), CompNode(2, 1)}});
  EXPECT_THAT(FindGraphNode(graph, "1"), IsOkAndHolds(0));
  EXPECT_THAT(FindGraphNode(graph, "1:1"), IsOkAndHolds(1));
  EXPECT_THAT(FindGraphNode(graph, "2"), IsOkAndHolds(2));
  EXPECT_THAT(FindGraphNode(graph, "0:2"), StatusIs(absl::StatusCode::kNotFound));
  for (const char* text : {"", "x", "1:2:3", ":1", "1:"}) {
    EXPECT_THAT(FindGraphNode(graph, text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace meridian
