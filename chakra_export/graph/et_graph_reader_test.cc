#include "chakra_export/graph/et_graph_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/testing/et_nodes.h"
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
using ::testing::IsEmpty;

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;

// Writes one file per rank and reads them.
absl::StatusOr<ExecutionGraph> Read(const std::vector<std::vector<Node>>& ranks,
                                    const EtGraphReaderOptions& options = {}) {
  const TemporaryDirectory directory;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    directory.Write(absl::StrCat("w.", rank, ".et"), EncodeEt(ranks[rank]));
  }
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  return ReadEtGraph(FileSystem::Posix(), files, options);
}

TEST(EtGraphReaderTest, ReadsNodesEdgesAndResources) {
  Node host = CompNode(1, 3);
  SetBoolAttribute(kIsCpuOpAttribute, true, host.mutable_attr());
  SetIntAttribute(kThreadAttribute, 77, host.mutable_attr());
  Node kernel = CompNode(2, 5);
  kernel.set_start_time_micros(1000);
  kernel.add_ctrl_deps(1);
  SetIntAttribute(kStreamAttribute, 7, kernel.mutable_attr());
  Node exact = CompNode(3, 1, {2, 4});
  SetIntAttribute(kStartNsAttribute, 123456, exact.mutable_attr());
  SetIntAttribute(kDurationNsAttribute, 1499, exact.mutable_attr());
  SetStringAttribute(kDependencyKindsAttribute, "ds,l", exact.mutable_attr());
  const Node later = CompNode(4, 0, {2});
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, Read({{host, kernel, exact, later}}));

  ASSERT_EQ(graph.node_count(), 4);
  EXPECT_TRUE(graph.resource(0) == (Resource{0, ResourceKind::kHostThread, 77}));
  EXPECT_TRUE(graph.resource(1) == (Resource{0, ResourceKind::kStream, 7}));
  EXPECT_TRUE(graph.resource(2) == (Resource{0, ResourceKind::kCompute, 0}));
  EXPECT_EQ(graph.start_ns(0), kNoTimeNs);
  EXPECT_EQ(graph.duration_ns(0), 3000);
  EXPECT_EQ(graph.start_ns(1), 1000000);
  EXPECT_EQ(graph.start_ns(2), 123456);
  EXPECT_EQ(graph.duration_ns(2), 1499);
  EXPECT_EQ(graph.dependency_kinds(1)[0], EdgeKind::kControl);
  EXPECT_THAT(graph.dependencies(2), ElementsAre(1, 3));
  EXPECT_EQ(graph.dependency_kinds(2)[0], EdgeKinds(EdgeKind::kData) | EdgeKind::kStream);
  EXPECT_EQ(graph.dependency_kinds(2)[1], EdgeKind::kLaunch);
}

TEST(EtGraphReaderTest, ReadsCommunication) {
  ASSERT_OK_AND_ASSIGN(
      const ExecutionGraph graph,
      Read({{CollectiveNode(1, ChakraProtoMsg::ALL_TO_ALL, 64),
             CollectiveNode(2, ChakraProtoMsg::ALL_GATHER, 32, {}, "0"), SendNode(3, 0, 1, 16, 5)},
            {RecvNode(1, 0, 1, 16, 5)}}));
  EXPECT_EQ(graph.communication(0)->type, ChakraProtoMsg::ALL_TO_ALL);
  EXPECT_EQ(graph.communication(0)->bytes, 64);
  EXPECT_EQ(graph.communication(0)->group, graph.communication(1)->group);
  EXPECT_EQ(graph.groups()[graph.communication(0)->group].name, "");
  EXPECT_THAT(graph.groups()[graph.communication(0)->group].ranks, ElementsAre(0, 1));
  EXPECT_EQ(graph.communication(2)->target, 1);
  EXPECT_EQ(graph.communication(3)->source, 0);
  EXPECT_EQ(graph.communication(3)->target, 1);
  EXPECT_EQ(graph.communication(3)->tag, 5);
  EXPECT_EQ(graph.resource(3).kind, ResourceKind::kCommunication);
}

TEST(EtGraphReaderTest, GroupsComeFromTheCallerTheMetadataOrTheirUse) {
  Node table;
  table.set_id(9);
  table.set_type(ChakraProtoMsg::METADATA_NODE);
  table.mutable_inputs()->set_values(ProcessGroupTable({{"1", {2, 0}}, {"2", {2, 1}}}));
  const auto collective = [](uint64_t id, const char* group) {
    return CollectiveNode(id, ChakraProtoMsg::ALL_REDUCE, 8, {}, group);
  };
  EtGraphReaderOptions options;
  options.groups = {{"1", {0, 2}}};
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph,
                       Read({{table, collective(1, "1"), collective(3, "3")},
                             {collective(2, "2"), collective(3, "3")},
                             {collective(1, "1")}},
                            options));
  std::vector<std::pair<std::string, std::vector<int64_t>>> groups;
  for (const ProcessGroup& group : graph.groups()) groups.push_back({group.name, group.ranks});
  EXPECT_THAT(groups, ElementsAre(std::make_pair("1", std::vector<int64_t>{0, 2}),
                                  std::make_pair("3", std::vector<int64_t>{0, 1}),
                                  std::make_pair("2", std::vector<int64_t>{2, 1})));
}

TEST(EtGraphReaderTest, GroupsThatDisagreeAreRefused) {
  Node tables[2];
  for (const int64_t rank : {0, 1}) {
    tables[rank].set_type(ChakraProtoMsg::METADATA_NODE);
    tables[rank].mutable_inputs()->set_values(ProcessGroupTable({{"1", {0, 1 + rank}}}));
  }
  EXPECT_THAT(Read({{tables[0]}, {tables[1]}}),
              StatusIs(kBad, HasSubstr("w.1.et: offset 8: node 0: the ranks of group \"1\" are")));
}

TEST(EtGraphReaderTest, SaysWhichNodeIsWrong) {
  // The metadata takes 8 bytes, the first node 27.
  EXPECT_THAT(Read({{CompNode(5, 1), CompNode(5, 1)}}),
              StatusIs(kBad, HasSubstr("w.0.et: offset 35: node id 5 occurs twice")));
  EXPECT_THAT(Read({{CompNode(5, 1, {6})}}),
              StatusIs(kBad, HasSubstr("offset 8: node 5 depends on 6, which no node has as id")));
  EXPECT_THAT(Read({{CompNode(6, 1), CompNode(5, 1, {7})}}),
              StatusIs(kBad, HasSubstr("offset 35: node 5 depends on 7")));

  Node node = CompNode(5, std::uint64_t{1} << 60);
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("offset 8: node 5: duration_micros is")));
  node = CompNode(5, 1);
  SetIntAttribute(kDurationNsAttribute, -1, node.mutable_attr());
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("duration_ns is -1")));
  node = CompNode(5, 1, {5});
  SetStringAttribute(kDependencyKindsAttribute, "d,d", node.mutable_attr());
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("dep_kinds is 'd,d'")));
  node = SendNode(5, 0, 1, 8);
  for (auto& attribute : *node.mutable_attr()) {
    if (attribute.name() == "comm_tag") attribute.set_int64_val(int64_t{1} << 40);
  }
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("attribute comm_tag is 1099511627776")));
  node = CollectiveNode(5, ChakraProtoMsg::ALL_REDUCE, -1);
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("attribute comm_size is -1")));
  node = CollectiveNode(5, ChakraProtoMsg::ALL_REDUCE, 1);
  SetIntAttribute(kCommTypeAttribute, 10, node.mutable_attr());
  EXPECT_THAT(Read({{node}}), StatusIs(kBad, HasSubstr("comm_type is 10; expected 0 to 9")));
}

TEST(EtGraphReaderTest, WhatIsMissingHasDefaults) {
  Node send;
  send.set_type(ChakraProtoMsg::COMM_SEND_NODE);
  Node strange = CompNode(1, 1);
  strange.set_type(static_cast<ChakraProtoMsg::NodeType>(300));
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, Read({{send, strange}, {}}));
  EXPECT_EQ(graph.communication(0)->target, kNoRank);
  EXPECT_EQ(graph.communication(0)->bytes, 0);
  EXPECT_EQ(graph.type(1), ChakraProtoMsg::INVALID_NODE);
  EXPECT_THAT(graph.Ranks(), ElementsAre(0, 1));
}

TEST(EtGraphReaderTest, DanglingDependenciesMayBeIgnored) {
  EtGraphReaderOptions options;
  options.ignore_dangling = true;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph,
                       Read({{CompNode(1, 1, {9}), CompNode(2, 1, {1, 8})}}, options));
  EXPECT_THAT(graph.dependencies(0), IsEmpty());
  EXPECT_THAT(graph.dependencies(1), ElementsAre(0));
}

TEST(EtGraphReaderTest, ReportsProgress) {
  const std::vector<Node> nodes = {CompNode(1, 1), CompNode(2, 1)};
  EtGraphReaderOptions options;
  uint64_t read = 0;
  options.progress = [&](uint64_t bytes) { read += bytes; };
  ASSERT_OK(Read({nodes, nodes}, options));
  EXPECT_EQ(read, 2 * (EncodeEt(nodes).size() - 8));  // without the metadata
}

}  // namespace
}  // namespace meridian
