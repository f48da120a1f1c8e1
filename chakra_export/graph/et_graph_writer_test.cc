#include "chakra_export/graph/et_graph_writer.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/graph/testing/random_graph.h"
#include "chakra_export/run/workload_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/faulty_file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<Node> ReadNodes(const std::string& path) {
  absl::StatusOr<EtReader> reader = EtReader::Open(FileSystem::Posix(), path);
  std::vector<Node> nodes;
  Node node;
  while (reader.ok() && *reader->Next(&node)) nodes.push_back(node);
  return nodes;
}

// The nodes of rank 0's only stream, one after the other.
ExecutionGraph Chain(const std::vector<int64_t>& durations_ns) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "kernel";
  node.resource = builder.AddResource({0, ResourceKind::kStream, 7});
  node.start_ns = 1700000000000000000;
  for (const int64_t duration_ns : durations_ns) {
    node.duration_ns = duration_ns;
    const NodeIndex index = builder.AddNode(node);
    if (index > 0) builder.AddDependency(index, index - 1, EdgeKind::kStream);
    ++node.id;
    node.start_ns += duration_ns;
  }
  return std::move(builder).Build();
}

TEST(EtGraphWriterTest, RoundingIsCarriedAlongTheResource) {
  const TemporaryDirectory directory;
  // Exact ends: 400, 800, 1200, 1600, 2000, 3500, 3501 ns.
  ASSERT_OK(WriteEtWorkload(FileSystem::Posix(), Chain({400, 400, 400, 400, 400, 1500, 1}),
                            directory.PathOf("w"), 1));
  const std::vector<Node> nodes = ReadNodes(directory.PathOf("w.0.et"));
  std::vector<uint64_t> micros;
  for (const Node& node : nodes) micros.push_back(node.duration_micros());
  // Sums: 0, 1, 1, 2, 2, 4, 4: each within half a microsecond.
  EXPECT_THAT(micros, ElementsAre(0, 1, 0, 1, 0, 2, 0));
  ASSERT_EQ(nodes.size(), 7);
  EXPECT_EQ(nodes[0].start_time_micros(), 1700000000000000);
  EXPECT_EQ(nodes[2].start_time_micros(), 1700000000000001);  // 800 ns, rounded
  EXPECT_THAT(GetIntAttribute(nodes[5].attr(), kDurationNsAttribute),
              IsOkAndHolds(::testing::Optional(1500)));
  EXPECT_EQ(FindAttribute(nodes[1].attr(), kDependencyKindsAttribute)->string_val(), "s");
  EXPECT_EQ(FindAttribute(nodes[0].attr(), kDependencyKindsAttribute), nullptr);
  EXPECT_THAT(nodes[1].data_deps(), ElementsAre(0));
}

TEST(EtGraphWriterTest, DecoratesNodes) {
  const TemporaryDirectory directory;
  EtDecorators decorators;
  decorators.own = [](NodeIndex node, Node* message) {
    SetIntAttribute(kStepAttribute, node + 40, message->mutable_attr());
  };
  int asked = 0;
  decorators.shared = [&](NodeIndex node, Node* message) {
    ++asked;
    SetIntAttribute(kNumOpsAttribute, node % 2 + 70, message->mutable_attr());
    message->mutable_outputs()->set_values("tensor");
  };
  const auto write = [&](const std::string& name) {
    ASSERT_OK(WriteEtWorkload(FileSystem::Posix(), Chain({1, 2, 1, 2, 1}), directory.PathOf(name),
                              1, decorators));
  };
  write("each");
  EXPECT_EQ(asked, 5);
  decorators.kind_of = [](NodeIndex node) -> std::optional<EtNodeKind> {
    // The last is a node by itself.
    if (node == 4) return std::nullopt;
    return EtNodeKind(nullptr, nullptr, node % 2, 0, "", 0);
  };
  asked = 0;
  write("shared");
  // The first of all waits for nothing, which makes it another kind.
  EXPECT_EQ(asked, 4);
  const std::vector<Node> each = ReadNodes(directory.PathOf("each.0.et"));
  const std::vector<Node> nodes = ReadNodes(directory.PathOf("shared.0.et"));
  ASSERT_EQ(each.size(), 5);
  ASSERT_EQ(nodes.size(), 5);
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(FindAttribute(nodes[i].attr(), kStepAttribute)->int64_val(), 40 + i);
    EXPECT_EQ(FindAttribute(nodes[i].attr(), kNumOpsAttribute)->int64_val(), 70 + i % 2);
    EXPECT_EQ(nodes[i].outputs().values(), "tensor");
    EXPECT_EQ(nodes[i].DebugString(), each[i].DebugString());
  }
}

// Everything about the nodes by rank and id, free of indices.
std::vector<std::string> Summary(const ExecutionGraph& graph) {
  std::vector<std::string> lines;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    std::string line = absl::StrCat(graph.Describe(node), " ", graph.type(node), " ",
                                    graph.resource(node).kind, " ", graph.resource(node).number,
                                    " ", graph.start_ns(node), " ", graph.duration_ns(node));
    if (const Communication* communication = graph.communication(node)) {
      absl::StrAppend(&line, " ", communication->bytes, " ", communication->source, " ",
                      communication->target, " ", communication->tag);
      if (graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
        absl::StrAppend(&line, " ", communication->type, " ",
                        graph.groups()[communication->group].name);
      }
    }
    std::vector<std::string> deps;
    for (size_t i = 0; i < graph.dependencies(node).size(); ++i) {
      deps.push_back(absl::StrCat(graph.id(graph.dependencies(node)[i]), ":",
                                  graph.dependency_kinds(node)[i].Letters()));
    }
    std::sort(deps.begin(), deps.end());
    lines.push_back(absl::StrCat(line, " <- ", absl::StrJoin(deps, " ")));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(EtGraphWriterTest, AGraphIsReadAsItWasWritten) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 30; ++round) {
    RandomGraphOptions options;
    options.ranks = 3;
    options.collectives = 3;
    options.messages = 2;
    options.max_duration_ns = 5000;
    const ExecutionGraph graph = RandomExecutionGraph(options, random);
    const TemporaryDirectory directory;
    ASSERT_OK(WriteEtWorkload(FileSystem::Posix(), graph, directory.PathOf("w"), 3));
    ASSERT_OK_AND_ASSIGN(const EtFiles files,
                         FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
    EtGraphReaderOptions read_options;
    read_options.groups = GroupsOf(graph);
    ASSERT_OK_AND_ASSIGN(const ExecutionGraph again,
                         ReadEtGraph(FileSystem::Posix(), files, read_options));
    EXPECT_EQ(Summary(again), Summary(graph));

    // And it runs alike.
    ASSERT_OK_AND_ASSIGN(const GraphReplay before, ReplayGraph(graph, CommunicationMatch(graph)));
    ASSERT_OK_AND_ASSIGN(const GraphReplay after, ReplayGraph(again, CommunicationMatch(again)));
    EXPECT_EQ(before.makespan_ns, after.makespan_ns);
  }
}

// One node on each of so many ranks, and a group of the first two when there are more.
ExecutionGraph Ranks(int64_t count) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "kernel";
  for (int64_t rank = 0; rank < count; ++rank) {
    node.resource = builder.AddResource({rank, ResourceKind::kStream, 7});
    builder.AddNode(node);
  }
  if (count > 2) builder.AddGroup({"1", {0, 1}});
  return std::move(builder).Build();
}

TEST(EtGraphWriterTest, AWorkloadReplacesAnEarlierOneOfMoreRanks) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.PathOf("w");
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport large,
                       WriteEtWorkload(FileSystem::Posix(), Ranks(4), prefix, 4));
  EXPECT_EQ(large.comm_groups(), directory.PathOf("w.comm_groups.json"));
  EXPECT_THAT(large.removed(), IsEmpty());
  // These belong to others.
  for (const char* name : {"w2.3.et", "w.3.txt", "w.x.et"}) directory.Write(name, "kept");
  // And this is a rank of this workload in the other form.
  directory.Write("w.0.et.gz", "old");

  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport small,
                       WriteEtWorkload(FileSystem::Posix(), Ranks(2), prefix, 2));
  EXPECT_EQ(small.comm_groups(), "");
  EXPECT_THAT(small.removed(),
              ElementsAre(directory.PathOf("w.0.et.gz"), directory.PathOf("w.2.et"),
                          directory.PathOf("w.3.et"), directory.PathOf("w.comm_groups.json")));
  EXPECT_THAT(directory.List(),
              UnorderedElementsAre("w.0.et", "w.1.et", "w2.3.et", "w.3.txt", "w.x.et"));
}

TEST(EtGraphWriterTest, ARankAloneLeavesTheOthersOfItsRun) {
  const TemporaryDirectory directory;
  ASSERT_OK(WriteEtWorkload(FileSystem::Posix(), Ranks(2), directory.PathOf("w"), 2));
  // However its directory is spelled.
  ASSERT_OK_AND_ASSIGN(
      const ChakraWorkloadReport written,
      WriteEtWorkload(FileSystem::Posix(), Chain({1}), directory.path() + "/.//w", 2));
  EXPECT_THAT(written.removed(), IsEmpty());
  EXPECT_THAT(directory.List(), UnorderedElementsAre("w.0.et", "w.1.et"));
}

TEST(EtGraphWriterTest, GraphsOfSeveralRanksMakeOneWorkload) {
  const TemporaryDirectory directory;
  EtWorkloadWriter writer(FileSystem::Posix(), directory.PathOf("w"));
  for (int64_t rank = 0; rank < 2; ++rank) {
    ExecutionGraphBuilder builder;
    ExecutionNode node;
    node.id = 1;
    node.resource = builder.AddResource({rank, ResourceKind::kStream, 7});
    builder.AddNode(node);
    builder.AddGroup({"3", {0, 1}});
    builder.AddGroup({absl::StrCat(rank + 1), {rank, 4}});
    ASSERT_OK(AddEtGraph(std::move(builder).Build(), {}, &writer));
    EXPECT_EQ(FileSystem::Posix().Kind(directory.PathOf("w.0.et")).ok(), false);
  }
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport written, writer.Commit(2));
  ASSERT_EQ(written.ranks_size(), 2);
  EXPECT_EQ(written.ranks(1).rank(), 1);
  EXPECT_EQ(written.ranks(1).path(), directory.PathOf("w.1.et"));
  EXPECT_THAT(directory.List(), UnorderedElementsAre("w.0.et", "w.1.et", "w.comm_groups.json"));
  EXPECT_EQ(directory.Read("w.comm_groups.json"),
            "{\n  \"1\": [0, 4],\n  \"2\": [1, 4],\n  \"3\": [0, 1]\n}\n");
}

TEST(EtGraphWriterTest, NothingIsReplacedUnlessEverythingCanBe) {
  const TemporaryDirectory directory;
  ASSERT_OK(WriteEtWorkload(FileSystem::Posix(), Chain({5}), directory.PathOf("w"), 4));
  const std::string before = directory.Read("w.0.et");
  // Three traces, and the groups that find the disk full.
  FaultyFileSystem full(FileSystem::Posix());
  full.Fail(Operation::kAppend, 4, absl::ResourceExhaustedError("planned"));
  EXPECT_THAT(WriteEtWorkload(full, Ranks(3), directory.PathOf("w"), 3),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("w.comm_groups.json")));
  EXPECT_THAT(directory.List(), ElementsAre("w.0.et"));
  EXPECT_EQ(directory.Read("w.0.et"), before);
}

TEST(EtGraphWriterTest, ListsTheGroupsApartFromTheWorld) {
  ExecutionGraphBuilder builder;
  builder.AddGroup({"", {0, 1}});
  builder.AddGroup({"7", {1, 0}});
  EXPECT_THAT(GroupsOf(std::move(builder).Build()),
              ElementsAre(::testing::Pair("7", ElementsAre(1, 0))));
}

}  // namespace
}  // namespace meridian
