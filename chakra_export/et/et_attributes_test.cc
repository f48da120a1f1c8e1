#include "chakra_export/et/et_attributes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

// A node with one attribute "a", which the test fills in.
struct OneAttribute {
  OneAttribute() : value(node.add_attr()) { value->set_name("a"); }

  Node node;
  AttributeProto* value;
};

absl::StatusOr<std::optional<int64_t>> Int(const OneAttribute& attribute) {
  return GetIntAttribute(attribute.node.attr(), "a");
}

TEST(EtAttributesTest, ReadsIntegersOfEveryKind) {
  OneAttribute a;
  a.value->set_int32_val(-7);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-7)));
  a.value->set_int64_val(std::numeric_limits<int64_t>::min());
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(std::numeric_limits<int64_t>::min())));
  a.value->set_uint32_val(4000000000);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(4000000000)));
  a.value->set_uint64_val(9);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(9)));
  a.value->set_sint32_val(-1);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-1)));
  a.value->set_sint64_val(-2);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-2)));
  a.value->set_fixed32_val(3);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(3)));
  a.value->set_fixed64_val(4);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(4)));
  a.value->set_sfixed32_val(-5);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-5)));
  a.value->set_sfixed64_val(-6);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-6)));
  a.value->set_bool_val(true);
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(1)));
  a.value->set_string_val("-1048576");
  EXPECT_THAT(Int(a), IsOkAndHolds(Optional(-1048576)));
}

TEST(EtAttributesTest, RefusesWhatIsNoInteger) {
  constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;
  OneAttribute a;
  EXPECT_THAT(Int(a), StatusIs(kBad, "attribute a is a nothing; expected an integer"));
  a.value->set_uint64_val(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(Int(a), StatusIs(kBad, HasSubstr("'18446744073709551615'")));
  a.value->set_double_val(2);
  EXPECT_THAT(Int(a), StatusIs(kBad, "attribute a is a double_val; expected an integer"));
  a.value->set_string_val("4 KiB");
  EXPECT_THAT(Int(a), StatusIs(kBad, HasSubstr("'4 KiB'")));
  a.value->mutable_int64_list()->add_values(1);
  EXPECT_THAT(Int(a), StatusIs(kBad, "attribute a is a int64_list; expected an integer"));
}

TEST(EtAttributesTest, AbsentIsNoError) {
  const Node node;
  EXPECT_THAT(GetIntAttribute(node.attr(), "a"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(GetBoolAttribute(node.attr(), "a"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(GetStringAttribute(node.attr(), "a"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(GetBoolListAttribute(node.attr(), "a"), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_EQ(FindAttribute(node.attr(), "a"), nullptr);
}

TEST(EtAttributesTest, ReadsBools) {
  OneAttribute a;
  a.value->set_bool_val(false);
  EXPECT_THAT(GetBoolAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(false)));
  a.value->set_int32_val(1);  // is_cpu_op before July 2024
  EXPECT_THAT(GetBoolAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(true)));
  a.value->set_string_val("False");
  EXPECT_THAT(GetBoolAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(false)));
  a.value->set_string_val("maybe");
  EXPECT_THAT(GetBoolAttribute(a.node.attr(), "a"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EtAttributesTest, ReadsTexts) {
  OneAttribute a;
  a.value->set_string_val("12");
  EXPECT_THAT(GetStringAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(std::string("12"))));
  a.value->set_bytes_val("x");
  EXPECT_THAT(GetStringAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(std::string("x"))));
  a.value->set_int64_val(-3);
  EXPECT_THAT(GetStringAttribute(a.node.attr(), "a"), IsOkAndHolds(Optional(std::string("-3"))));
  a.value->set_uint64_val(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(GetStringAttribute(a.node.attr(), "a"),
              IsOkAndHolds(Optional(std::string("18446744073709551615"))));
  a.value->mutable_string_list();
  EXPECT_THAT(GetStringAttribute(a.node.attr(), "a"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("string_list")));
}

TEST(EtAttributesTest, ReadsListsOfBools) {
  OneAttribute a;
  a.value->mutable_bool_list()->add_values(true);
  a.value->mutable_bool_list()->add_values(false);
  EXPECT_THAT(GetBoolListAttribute(a.node.attr(), "a"),
              IsOkAndHolds(Optional(ElementsAre(true, false))));
  a.value->set_bool_val(true);
  EXPECT_THAT(GetBoolListAttribute(a.node.attr(), "a"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EtAttributesTest, WritesTheKindsThatReadersExpect) {
  Node node;
  EtAttributes* attributes = node.mutable_attr();
  SetBoolAttribute(kIsCpuOpAttribute, false, attributes);
  SetIntAttribute(kCommTypeAttribute, ChakraProtoMsg::ALL_REDUCE, attributes);
  SetIntAttribute(kCommSizeAttribute, int64_t{1} << 40, attributes);
  SetIntAttribute(kCommSrcAttribute, 3, attributes);
  SetIntAttribute(kTensorSizeAttribute, 8, attributes);
  SetStringAttribute(kPgNameAttribute, "1", attributes);
  SetIntAttribute("my_number", -1, attributes);
  SetBoolListAttribute(kInvolvedDimAttribute, {true, false}, attributes);

  EXPECT_TRUE(FindAttribute(node.attr(), "is_cpu_op")->has_bool_val());
  // Zero and false are written: "absent" would be another statement.
  EXPECT_TRUE(FindAttribute(node.attr(), "comm_type")->has_int64_val());
  EXPECT_EQ(FindAttribute(node.attr(), "comm_size")->int64_val(), int64_t{1} << 40);
  EXPECT_EQ(FindAttribute(node.attr(), "comm_src")->int32_val(), 3);
  EXPECT_EQ(FindAttribute(node.attr(), "tensor_size")->uint64_val(), 8);
  EXPECT_EQ(FindAttribute(node.attr(), "pg_name")->string_val(), "1");
  EXPECT_EQ(FindAttribute(node.attr(), "my_number")->int64_val(), -1);
  EXPECT_THAT(FindAttribute(node.attr(), "involved_dim")->bool_list().values(),
              ElementsAre(true, false));
}

TEST(EtAttributesTest, SettingReplacesValueAndKind) {
  OneAttribute a;
  a.value->set_name("comm_size");
  a.value->set_uint64_val(1);
  SetIntAttribute(kCommSizeAttribute, 2, a.node.mutable_attr());
  ASSERT_EQ(a.node.attr_size(), 1);
  EXPECT_EQ(a.node.attr(0).int64_val(), 2);
  EXPECT_EQ(a.node.attr(0).value_case(), AttributeProto::kInt64Val);
}

TEST(EtAttributesTest, KnowsTheConventions) {
  EXPECT_EQ(ExpectedAttributeKind("comm_tag"), AttributeProto::kInt32Val);
  EXPECT_EQ(ExpectedAttributeKind("anything"), AttributeProto::VALUE_NOT_SET);
  EXPECT_EQ(AttributeKindName(AttributeProto::kSfixed64List), "sfixed64_list");
}

// What ASTRA-sim needs to run the node with roofline-enabled.
TEST(EtAttributesTest, SimulatorsSkipNoComputationAndDivideByNothing) {
  const auto number = [](const Node& node, absl::string_view name) {
    return GetIntAttribute(node.attr(), name)->value_or(-1);
  };
  Node node;
  node.set_type(ChakraProtoMsg::COMP_NODE);
  node.add_data_deps(1);
  CompleteForSimulators(&node);
  EXPECT_EQ(number(node, kNumOpsAttribute), 1);
  EXPECT_EQ(number(node, kTensorSizeAttribute), 1);
  SetRoofline(5, 64, node.mutable_attr());
  CompleteForSimulators(&node);
  EXPECT_EQ(number(node, kNumOpsAttribute), 5);
  EXPECT_EQ(number(node, kTensorSizeAttribute), 64);
  // It is at time 0 and must take some.
  node.clear_data_deps();
  CompleteForSimulators(&node);
  EXPECT_EQ(number(node, kNumOpsAttribute), 5);
  EXPECT_EQ(number(node, kTensorSizeAttribute), kMinEarlyTensorBytes);
  Node host;
  host.set_type(ChakraProtoMsg::COMP_NODE);
  SetBoolAttribute(kIsCpuOpAttribute, true, host.mutable_attr());
  CompleteForSimulators(&host);
  EXPECT_EQ(number(host, kNumOpsAttribute), -1);
}

// What ASTRA-sim needs to run the node with track-local-mem.
TEST(EtAttributesTest, EveryNodeHasListsOfInputsAndOutputs) {
  Node node;
  node.set_type(ChakraProtoMsg::COMM_COLL_NODE);
  CompleteForSimulators(&node);
  for (const absl::string_view name : {kInputsAttribute, kOutputsAttribute}) {
    ASSERT_NE(FindAttribute(node.attr(), name), nullptr);
    EXPECT_TRUE(FindAttribute(node.attr(), name)->has_string_list());
  }
  ASSERT_EQ(node.attr_size(), 2);
  node.mutable_attr(0)->mutable_string_list()->add_values("x");
  CompleteForSimulators(&node);
  EXPECT_EQ(node.attr_size(), 2);
  EXPECT_EQ(node.attr(0).string_list().values_size(), 1);
}

}  // namespace
}  // namespace meridian
