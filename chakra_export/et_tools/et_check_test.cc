#include "chakra_export/et_tools/et_check.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "google/protobuf/repeated_field.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::Property;
using ::testing::UnorderedElementsAre;

constexpr ChakraProtoMsg::CollectiveCommType kAllReduce = ChakraProtoMsg::ALL_REDUCE;

using Problems = google::protobuf::RepeatedPtrField<ChakraProblemReport>;

Problems CheckFiles(const EtFiles& files, const CommGroups& groups = {}) {
  EtProblems problems;
  EtGraphReaderOptions options;
  options.groups = groups;
  EXPECT_OK(CheckEtFiles(FileSystem::Posix(), files, options, &problems));
  return problems.report().problems();
}

Problems CheckFilesOf(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  return CheckFiles(WriteWorkload(directory, "w", ranks));
}

Problems CheckGraphOf(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  const absl::StatusOr<ExecutionGraph> graph =
      ReadEtGraph(FileSystem::Posix(), WriteWorkload(directory, "w", ranks));
  EXPECT_OK(graph);
  EtProblems problems;
  if (graph.ok()) CheckEtGraph(*graph, &problems);
  return problems.report().problems();
}

auto Breaks(const std::string& rule, const std::string& text) {
  return AllOf(Property(&ChakraProblemReport::rule, rule),
               Property(&ChakraProblemReport::message, HasSubstr(text)));
}

TEST(EtCheckTest, ATrainingStepIsFine) {
  EXPECT_THAT(CheckFilesOf(TrainingStep()), IsEmpty());
  EXPECT_THAT(CheckGraphOf(TrainingStep()), IsEmpty());
}

TEST(EtCheckTest, IdsAndDependencies) {
  const Problems problems =
      CheckFilesOf({{CompNode(1, 1), CompNode(2, 1, {3, 1}), CompNode(1, 1)}});
  ASSERT_THAT(problems, ElementsAre(Breaks("dangling_dependency", "node 2 depends on 3"),
                                    Breaks("duplicate_id", "node id 1 occurs twice")));
  EXPECT_EQ(problems[0].node(), 2);
  EXPECT_EQ(problems[0].offset(), 35);  // metadata 8 bytes, node 27
  Node control = CompNode(5, 1);
  control.add_ctrl_deps(0);
  EXPECT_THAT(CheckFilesOf({{control}}),
              ElementsAre(Breaks("dangling_dependency", "node 5 depends on 0")));
}

TEST(EtCheckTest, FilesAndRanks) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", GzipText(EncodeEt({CompNode(1, 1)})));
  directory.Write("w.2.et", EncodeEt({}));
  // A record of length zero, with id 0.
  directory.Write("w.3.et", EncodeEt({}) + std::string(1, '\0'));
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  EXPECT_THAT(
      CheckFiles(files),
      ElementsAre(Breaks("missing_rank", "ranks 1 to 1"), Breaks("gzip", "the file is gzip"),
                  Breaks("no_nodes", "there is no node"), Breaks("host_node", "INVALID_NODE")));
}

TEST(EtCheckTest, RankCountsAreKnownOfPrefixesOnly) {
  const TemporaryDirectory directory;
  const EtFiles prefix = WriteWorkload(directory, "w", {{SendNode(1, 0, 5, 8)}, {CompNode(1, 1)}});
  EXPECT_THAT(CheckFiles(prefix), ElementsAre(Breaks("peer", "peer is rank 5")));
  ASSERT_OK_AND_ASSIGN(const EtFiles file,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w.0.et")));
  EXPECT_THAT(CheckFiles(file), IsEmpty());
}

TEST(EtCheckTest, GroupsAreKnownFromTheCallerAndFromMetadata) {
  Node table;
  table.set_id(9);
  table.set_name("groups");
  table.set_type(ChakraProtoMsg::METADATA_NODE);
  table.mutable_inputs()->set_values(ProcessGroupTable({{"2", {0, 1}}}));
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(
      directory, "w",
      {{CollectiveNode(1, kAllReduce, 64, {}, "1"), CollectiveNode(2, kAllReduce, 64, {}, "2"),
        CollectiveNode(3, kAllReduce, 64, {}, "3"), table},
       {CompNode(1, 1)}});
  EXPECT_THAT(CheckFiles(files, {{"1", {0, 1}}}),
              ElementsAre(Breaks("unknown_group", "there is no group 3"),
                          Breaks("node_type", "METADATA_NODE")));
}

TEST(EtCheckTest, FilesThatCannotBeReadAreErrors) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", EncodeEt({CompNode(1, 1)}).substr(0, 20));
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  EtProblems problems;
  EXPECT_THAT(CheckEtFiles(FileSystem::Posix(), files, {}, &problems),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("w.0.et: offset 8")));
}

TEST(EtCheckTest, Cycles) {
  EXPECT_THAT(CheckGraphOf({{CompNode(1, 1, {2}), CompNode(2, 1, {1})}}),
              ElementsAre(Breaks("cycle", "rank 0 node 1 (n1) waits for rank 0 node 2 (n2)")));
}

TEST(EtCheckTest, CommunicationThatDoesNotMatch) {
  EXPECT_THAT(
      CheckGraphOf({{SendNode(1, 0, 1, 4096)}, {RecvNode(2, 0, 1, 4096, 7)}}),
      ElementsAre(Breaks("unmatched", "rank 0 node 1"), Breaks("unmatched", "rank 1 node 2")));
  EXPECT_THAT(
      CheckGraphOf({{CollectiveNode(1, kAllReduce, 8)}, {CollectiveNode(1, kAllReduce, 9)}}),
      ElementsAre(Breaks("disagreement", "ALL_REDUCE of 9 bytes")));
}

TEST(EtCheckTest, DeadlocksOfOneCommunicationAtATime) {
  // Rank 0 runs group 1 first, rank 1 group 2.
  EXPECT_THAT(
      CheckGraphOf(
          {{CollectiveNode(1, kAllReduce, 8, {}, "1"), CollectiveNode(2, kAllReduce, 8, {}, "2")},
           {CollectiveNode(1, kAllReduce, 8, {}, "2"), CollectiveNode(2, kAllReduce, 8, {}, "1")}}),
      ElementsAre(Breaks("deadlock", "deadlock at 0 ns: rank 0 node 1")));
}

TEST(EtCheckTest, SmallMessagesAtTheBegin) {
  EXPECT_THAT(CheckGraphOf({{SendNode(2, 0, 1, 1024)}, {RecvNode(1, 0, 1, 1024)}}), IsEmpty());
  EXPECT_THAT(CheckGraphOf({{SendNode(2, 0, 1, 1023)}, {RecvNode(1, 0, 1, 1023)}}),
              ElementsAre(Breaks("early_message", "sends 1023 bytes at time 0")));
}

TEST(EtRulesTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const EtRule& rule : kEtRules) EXPECT_TRUE(names.insert(std::string(rule.name)).second);
}

TEST(EtProblemsTest, CountsAllAndKeepsSome) {
  EtProblems problems;
  for (int i = 0; i < 50; ++i) problems.Add("cycle", {}, {}, {}, "");
  problems.Add("early_message", {}, {}, {}, "");
  const ChakraReport& report = problems.report();
  EXPECT_THAT(report.problem_counts(),
              UnorderedElementsAre(Pair("cycle", 50), Pair("early_message", 1)));
  EXPECT_EQ(report.errors(), 50);
  EXPECT_EQ(report.warnings(), 1);
  EXPECT_EQ(report.problems_size(), EtProblems::kKeptPerRule + 1);
}

constexpr ChakraProtoMsg::CollectiveCommType kAllGather = ChakraProtoMsg::ALL_GATHER;

// Checks a node of rank 0 among four ranks.
std::vector<std::string> RulesBrokenBy(
    const Node& node,
    const CommGroups& groups = {{"1", {0, 1}}, {"2", {0}}, {"3", {0, 4}}, {"500", {0, 1}}}) {
  const TemporaryDirectory directory;
  const std::vector<Node> fine = {CompNode(1, 1)};
  std::vector<std::string> rules;
  for (const ChakraProblemReport& problem :
       CheckFiles(WriteWorkload(directory, "w", {{node}, fine, fine, fine}), groups)) {
    EXPECT_EQ(problem.rank(), 0);
    EXPECT_EQ(problem.node(), node.id());
    EXPECT_EQ(problem.offset(), 8);  // behind the metadata
    rules.push_back(problem.rule());
  }
  return rules;
}

// The node with an attribute changed.
Node With(Node node, absl::string_view name, const std::function<void(AttributeProto*)>& change) {
  for (AttributeProto& attribute : *node.mutable_attr()) {
    if (attribute.name() == name) {
      change(&attribute);
      return node;
    }
  }
  AttributeProto* added = node.add_attr();
  added->set_name(std::string(name));
  change(added);
  return node;
}

Node Without(Node node, absl::string_view name) {
  RemoveAttribute(name, node.mutable_attr());
  return node;
}

Node OfType(Node node, ChakraProtoMsg::NodeType type) {
  node.set_type(type);
  return node;
}

Node OnHost(Node node) {
  SetBoolAttribute(kIsCpuOpAttribute, true, node.mutable_attr());
  return node;
}

TEST(NodeCheckTest, WhatSimulatorsRunIsFine) {
  for (const Node& node :
       {CompNode(1, 5), CollectiveNode(2, kAllReduce, 64), CollectiveNode(2, kAllReduce, 0),
        CollectiveNode(3, kAllGather, 64, {}, "1"),
        CollectiveNode(3, ChakraProtoMsg::BROADCAST, 64, {}, "0"), SendNode(4, 0, 3, 1),
        RecvNode(5, 2, 0, 1, 499999999), Without(CompNode(6, 1), "is_cpu_op"),
        Without(SendNode(7, 0, 1, 8), "comm_src")}) {
    EXPECT_THAT(RulesBrokenBy(node), IsEmpty()) << node.DebugString();
  }
}

TEST(NodeCheckTest, Types) {
  EXPECT_THAT(RulesBrokenBy(OnHost(CompNode(1, 5))), ElementsAre("host_node"));
  EXPECT_THAT(RulesBrokenBy(OnHost(SendNode(1, 0, 1, 8))), ElementsAre("host_communication"));
  EXPECT_THAT(RulesBrokenBy(OfType(CompNode(1, 1), ChakraProtoMsg::INVALID_NODE)),
              ElementsAre("host_node"));
  EXPECT_THAT(RulesBrokenBy(OfType(CompNode(1, 1), ChakraProtoMsg::METADATA_NODE)),
              ElementsAre("node_type"));
  EXPECT_THAT(RulesBrokenBy(OfType(CompNode(1, 1), ChakraProtoMsg::MEM_LOAD_NODE)),
              ElementsAre("memory_node"));
  EXPECT_THAT(RulesBrokenBy(OfType(CompNode(1, 1), static_cast<ChakraProtoMsg::NodeType>(9))),
              ElementsAre("node_type"));
}

TEST(NodeCheckTest, AttributeKinds) {
  const Node node = CollectiveNode(1, kAllReduce, 64);
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_uint64_val(64); })),
              ElementsAre("attribute_width"));
  EXPECT_THAT(RulesBrokenBy(With(node, "is_cpu_op", [](auto* a) { a->set_int32_val(0); })),
              ElementsAre("attribute_width"));
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_double_val(64); })),
              ElementsAre("attribute_kind", "bad_value"));
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_string_val("64"); })),
              ElementsAre("attribute_kind"));
  EXPECT_THAT(RulesBrokenBy(With(node, "pg_name", [](auto* a) { a->set_int64_val(1); })),
              ElementsAre("attribute_kind"));
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_string_val("x"); })),
              ElementsAre("attribute_kind", "bad_value"));
  EXPECT_THAT(RulesBrokenBy(With(node, "anything", [](auto* a) { a->set_double_val(0.5); })),
              IsEmpty());
}

TEST(NodeCheckTest, MissingAttributes) {
  const Node collective = CollectiveNode(1, kAllReduce, 64);
  EXPECT_THAT(RulesBrokenBy(Without(collective, "comm_type")), ElementsAre("missing_attribute"));
  EXPECT_THAT(RulesBrokenBy(Without(collective, "comm_size")), ElementsAre("missing_attribute"));
  const Node send = SendNode(1, 0, 1, 64);
  EXPECT_THAT(RulesBrokenBy(Without(send, "comm_dst")), ElementsAre("missing_attribute"));
  EXPECT_THAT(RulesBrokenBy(Without(send, "comm_tag")), ElementsAre("missing_attribute"));
  EXPECT_THAT(RulesBrokenBy(Without(RecvNode(1, 1, 0, 64), "comm_src")),
              ElementsAre("missing_attribute"));
}

TEST(NodeCheckTest, Collectives) {
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, ChakraProtoMsg::BARRIER, 64)),
              ElementsAre("collective_type"));
  EXPECT_THAT(RulesBrokenBy(With(CollectiveNode(1, kAllReduce, 64), "comm_type",
                                 [](auto* a) { a->set_int64_val(12); })),
              ElementsAre("collective_type"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllReduce, -1)), ElementsAre("comm_size"));
  constexpr int64_t kMost = int64_t{1} << 42, kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllReduce, kMost)), IsEmpty());
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllReduce, kMost + 1)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllGather, kLargest)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 1, kLargest)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllGather, 0)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllGather, 63)), ElementsAre("small_all_gather"));
  Node node = CollectiveNode(1, kAllReduce, 64);
  SetBoolListAttribute(kInvolvedDimAttribute, {false, false}, node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), ElementsAre("involved_dim"));
  SetBoolListAttribute(kInvolvedDimAttribute, {false, true}, node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), IsEmpty());
}

TEST(NodeCheckTest, RooflinesSkipComputationsWithoutBytes) {
  // Returns how often the rule is broken by a computation that waits for another, or does not.
  const auto broken = [](int64_t operations, int64_t bytes, bool waits) {
    Node node = CompNode(2, 10);
    if (waits) node.add_data_deps(1);
    SetRoofline(operations, bytes, node.mutable_attr());
    const std::vector<std::string> rules = RulesBrokenBy(node);
    return std::count(rules.begin(), rules.end(), "roofline");
  };
  EXPECT_EQ(broken(5, 0, true), 1);
  EXPECT_EQ(broken(0, 1, true), 1);
  EXPECT_EQ(broken(1, 1, true), 0);
  // At time 0 it may take no time.
  EXPECT_EQ(broken(1, kMinEarlyTensorBytes - 1, false), 1);
  EXPECT_EQ(broken(1, kMinEarlyTensorBytes, false), 0);
  EXPECT_THAT(RulesBrokenBy(CompNode(1, 10)), IsEmpty());
}

TEST(NodeCheckTest, Groups) {
  const auto of_group = [](const char* group) {
    return RulesBrokenBy(CollectiveNode(1, kAllReduce, 64, {}, group));
  };
  EXPECT_THAT(of_group("default_pg"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("-1"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("01"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("1.5"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("1.0"), IsEmpty());
  EXPECT_THAT(of_group("9"), ElementsAre("unknown_group"));
  EXPECT_THAT(of_group("2"), ElementsAre("group_of_one"));
  EXPECT_THAT(of_group("3"), ElementsAre("peer"));
  EXPECT_THAT(of_group("500"), ElementsAre("group_number"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllReduce, 64, {}, "1"), {}),
              ElementsAre("no_groups"));
}

TEST(NodeCheckTest, Messages) {
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 0, 8)), ElementsAre("peer"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 4, 8)), ElementsAre("peer"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, -1, 8)), ElementsAre("peer"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 2, 1, 8)), ElementsAre("peer"));
  EXPECT_THAT(RulesBrokenBy(RecvNode(1, 1, 3, 8)), ElementsAre("peer"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 1, 0)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 1, 8, -1)), ElementsAre("tag"));
  EXPECT_THAT(RulesBrokenBy(SendNode(1, 0, 1, 8, 500000000)), ElementsAre("tag"));
}

TEST(NodeCheckTest, TimesAndKinds) {
  EXPECT_THAT(RulesBrokenBy(CompNode(1, uint64_t{1} << 63)), ElementsAre("bad_value"));
  Node node = CompNode(1, 1, {1});
  SetStringAttribute(kDependencyKindsAttribute, "d,s", node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), ElementsAre("bad_value"));
  SetStringAttribute(kDependencyKindsAttribute, "ds", node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), IsEmpty());
}

}  // namespace
}  // namespace meridian
