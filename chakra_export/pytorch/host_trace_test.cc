#include "chakra_export/pytorch/host_trace.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kThread[] = "[pytorch|profiler|execution_trace|thread]";

// A thread whose op 3 calls op 4; PyTorch writes the called one first.
HostTraceText TwoOps(const std::string& schema) {
  HostTraceText text(schema);
  const std::string tensors =
      absl::StrCat("[", TensorJson(5, 8), ", 1.5, [", TensorJson(6, 2), "]]");
  return text.Op(4, 3, "aten::mm", 1, tensors, absl::StrCat("[", TensorJson(9, 3, "cpu"), "]"))
      .Op(3, 2, "aten::linear")
      .Op(2, 1, kThread);
}

class HostTraceLayoutTest : public ::testing::TestWithParam<std::string> {};

TEST_P(HostTraceLayoutTest, ReadsOperatorsCallersAndTensors) {
  const std::string text = TwoOps(GetParam()).Text();
  ASSERT_OK_AND_ASSIGN(const HostTrace trace, ReadHostTrace(text, "et.json"));
  EXPECT_EQ(trace.schema(), GetParam());
  ASSERT_THAT(trace.ops(), SizeIs(3));
  EXPECT_TRUE(trace.IsStructural(0));
  EXPECT_EQ(trace.name(2), "aten::mm");
  EXPECT_EQ(trace.ops()[2].parent, 1u);
  EXPECT_EQ(trace.ops()[2].record_function_id, 4u);
  // The thread's caller, the process, is not in this trace.
  EXPECT_EQ(trace.ops()[0].parent, kNoHostOp);

  const HostOpDetails details = trace.Details(2);
  std::map<std::string, std::string> attributes;
  details.ForEachAttribute([&](absl::string_view name, JsonValue value) {
    attributes[std::string(name)] = std::string(value.text());
  });
  EXPECT_THAT(attributes,
              ElementsAre(Pair("op_schema", "\"\""), Pair("rf_id", "4"), Pair("tid", "1")));
  const std::vector<HostTensor> inputs = TensorsIn(details.inputs.values);
  ASSERT_THAT(inputs, SizeIs(2));
  EXPECT_EQ(inputs[0].storage_id, 5u);
  EXPECT_EQ(inputs[0].bytes, 32);
  EXPECT_TRUE(inputs[0].on_device);
  EXPECT_EQ(inputs[1].storage_id, 6u);
  const std::vector<HostTensor> outputs = TensorsIn(details.outputs.values);
  ASSERT_THAT(outputs, SizeIs(1));
  EXPECT_FALSE(outputs[0].on_device);
}

INSTANTIATE_TEST_SUITE_P(Schemas, HostTraceLayoutTest,
                         ::testing::Values("1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4",
                                           "1.0.4-chakra.0.0.4", "1.1.0-chakra.0.0.4",
                                           "1.1.1-chakra.0.0.4", "1.1.1-chakra.1.0.0"));

TEST(HostTraceTest, TheListOfProcessGroupsIsNoCall) {
  const std::string text = HostTraceText().Op(3, 1, "## process_group:init ##").Text();
  ASSERT_OK_AND_ASSIGN(const HostTrace trace, ReadHostTrace(text, "et.json"));
  EXPECT_TRUE(trace.IsStructural(0));
}

TEST(HostTraceTest, RefusesWhatIsNoTrace) {
  const auto read = [](const std::string& text) { return ReadHostTrace(text, "et.json"); };
  const auto error = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(read(""), error("et.json: offset 0"));
  EXPECT_THAT(read("[]"), error("expected an object"));
  EXPECT_THAT(read(R"({"traceEvents": []})"), error("ExecutionTraceObserver"));
  EXPECT_THAT(read(HostTraceText("2.0.0").Text()), error("schema \"2.0.0\" is not known"));
  EXPECT_THAT(read(HostTraceText("1.0.1").Text()), error("expected one of 1.0.2, "));
  EXPECT_THAT(read(R"({"schema": "1.0.2", "nodes": [7]})"),
              error("offset 30: a node that is no JSON object"));
  EXPECT_THAT(read(R"({"schema": "1.0.2", "nodes": [{"name": "a"}]})"), error("without an id"));
  EXPECT_THAT(read(R"({"schema": "1.0.2", "nodes": [{"id": 1}]})"), error("node 1 has no name"));
  EXPECT_THAT(read(HostTraceText().Op(1, 0, "a").Op(1, 0, "b").Text()),
              error("node 1 occurs twice"));
  EXPECT_THAT(read(HostTraceText().Op(1, 2, "a").Op(2, 1, "b").Text()), error("its own ancestor"));
  const std::string text = TwoOps("1.0.2").Text();
  EXPECT_THAT(read(text.substr(0, text.size() / 2)), error("et.json: offset"));
}

// What is not JSON would be copied into a linked trace.
TEST(HostTraceTest, WhatIsNotJsonIsRefusedWhereverItStands) {
  for (const char* text :
       {R"({"schema": "1.0.2", "x": tru, "nodes": []})",
        R"({"schema": "1.0.2", "nodes": [], "x": 1.})",
        R"({"schema": "1.0.2", "nodes": [{"id": 1, "name": "a", "y": {"z": [nul]}}]})",
        "{\"schema\": \"1.0.2\", \"nodes\": [], \"x\": \"\xff\"}"}) {
    EXPECT_THAT(ReadHostTrace(text, "et.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("et.json: offset ")))
        << text;
  }
}

TEST(HostTraceTest, ATraceThatIsCutShortIsRefused) {
  const std::string text = TwoOps("1.0.2").Text();
  // Within a node, behind a comma, behind a node, within a text: everywhere.
  for (size_t size = 1; size < text.find_last_of('}'); ++size) {
    EXPECT_THAT(ReadHostTrace(text.substr(0, size), "et.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("et.json: offset ")));
  }
  EXPECT_THAT(ReadHostTrace(R"({"schema": "1.0.2", "nodes": [,]})", "et.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, "et.json: offset 30: expected a value"));
}

TEST(HostTraceTest, SurvivesDamage) {
  const std::string text = TwoOps("1.1.1-chakra.0.0.4").Text();
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string damaged = Damage(text, random);
    const absl::StatusOr<HostTrace> trace = ReadHostTrace(damaged, "et.json");
    if (!trace.ok()) continue;
    for (HostOpIndex op = 0; op < trace->ops().size(); ++op) {
      TensorsIn(trace->Details(op).inputs.values);
      trace->Details(op).ForEachAttribute([](absl::string_view, JsonValue) {});
    }
  }
}

TEST(TensorsInTest, LooksIntoListsButNotForEver) {
  std::string nested = TensorJson(1, 1);
  for (int i = 0; i < 5; ++i) nested = absl::StrCat("[", nested, "]");
  EXPECT_THAT(TensorsIn(JsonValue(nested)), SizeIs(1));
  for (int i = 0; i < 100; ++i) nested = absl::StrCat("[", nested, "]");
  EXPECT_THAT(TensorsIn(JsonValue(nested)), IsEmpty());
  EXPECT_THAT(TensorsIn(JsonValue("[[1, 2, 3, 4, 5, 6], [1, 2], \"x\", null]")), IsEmpty());
  EXPECT_THAT(TensorsIn(JsonValue()), IsEmpty());
}

}  // namespace
}  // namespace meridian
