#include "chakra_export/inspect/node_check.h"

#include <functional>
#include <string>
#include <vector>

#include "chakra_export/et/et_attributes.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ChakraProtoMsg::CollectiveCommType kAllReduce = ChakraProtoMsg::ALL_REDUCE;
constexpr ChakraProtoMsg::CollectiveCommType kAllGather = ChakraProtoMsg::ALL_GATHER;

// Checks a node of rank 0 among four ranks.
std::vector<std::string> RulesBrokenBy(
    const Node& node,
    const CommGroups& groups = {{"1", {0, 1}}, {"2", {0}}, {"3", {0, 4}}, {"500", {0, 1}}}) {
  NodeCheckContext context;
  context.rank = 0;
  context.rank_count = 4;
  context.groups = &groups;
  EtProblems problems;
  CheckNode(node, 77, context, &problems);
  std::vector<std::string> rules;
  for (const EtProblem& problem : problems.kept()) {
    EXPECT_EQ(problem.rank, 0);
    EXPECT_EQ(problem.node, node.id());
    EXPECT_EQ(problem.offset, 77);
    rules.push_back(std::string(RuleInfo(problem.rule).name));
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
  EtAttributes* attributes = node.mutable_attr();
  for (int i = attributes->size() - 1; i >= 0; --i) {
    if (attributes->Get(i).name() == name) attributes->DeleteSubrange(i, 1);
  }
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
              ElementsAre("attribute_kind"));
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_string_val("64"); })),
              ElementsAre("attribute_kind"));
  EXPECT_THAT(RulesBrokenBy(With(node, "pg_name", [](auto* a) { a->set_int64_val(1); })),
              ElementsAre("attribute_kind"));
  EXPECT_THAT(RulesBrokenBy(With(node, "comm_size", [](auto* a) { a->set_string_val("x"); })),
              ElementsAre("attribute_kind", "bad_value"));
  EXPECT_THAT(RulesBrokenBy(With(node, "anything", [](auto* a) { a->set_double_val(0.5); })),
              IsEmpty());
  Node twice = node;
  *twice.add_attr() = twice.attr(0);
  EXPECT_THAT(RulesBrokenBy(twice), ElementsAre("duplicate_attribute"));
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
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllGather, 0)), ElementsAre("comm_size"));
  EXPECT_THAT(RulesBrokenBy(CollectiveNode(1, kAllGather, 63)), ElementsAre("small_all_gather"));
  Node node = CollectiveNode(1, kAllReduce, 64);
  SetBoolListAttribute(kInvolvedDimAttribute, {false, false}, node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), ElementsAre("involved_dim"));
  SetBoolListAttribute(kInvolvedDimAttribute, {false, true}, node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), IsEmpty());
}

TEST(NodeCheckTest, Groups) {
  const auto of_group = [](const char* group) {
    return RulesBrokenBy(CollectiveNode(1, kAllReduce, 64, {}, group));
  };
  EXPECT_THAT(of_group("default_pg"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("-1"), ElementsAre("group_name"));
  EXPECT_THAT(of_group("01"), ElementsAre("group_name"));
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
  Node node = CompNode(1, 1, {2});
  SetStringAttribute(kDependencyKindsAttribute, "d,s", node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), ElementsAre("bad_value"));
  SetStringAttribute(kDependencyKindsAttribute, "ds", node.mutable_attr());
  EXPECT_THAT(RulesBrokenBy(node), IsEmpty());
}

}  // namespace
}  // namespace meridian
