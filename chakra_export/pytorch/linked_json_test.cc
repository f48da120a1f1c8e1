#include "chakra_export/pytorch/linked_json.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_rank.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Linked(const TorchRank& rank, const RankCommunication& communication = {}) {
  std::string json;
  StringSink sink(&json);
  EXPECT_OK(WriteLinkedJson(rank.host, rank.device.table, rank.link, rank.timeline, communication,
                            &sink));
  return json;
}

// The node of that id; the document must be JSON.
class Document {
 public:
  explicit Document(const std::string& json) {
    EXPECT_EQ(parser_.parse(json).get(document_), simdjson::SUCCESS) << json;
  }

  simdjson::dom::object Node(uint64_t id) const {
    simdjson::dom::object found;
    for (const simdjson::dom::element node : document_["nodes"].get_array()) {
      if (uint64_t(node["id"]) == id) found = node.get_object();
    }
    return found;
  }

  std::string Text(uint64_t id) const { return simdjson::minify(Node(id)); }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element document_;
};

// outer [0, 100) calls inner [10, 40), which launches a kernel that runs from 50 to 80.
TEST(LinkedJsonTest, OperatorsHaveTimesAndDeviceWorkFollows) {
  const std::string tensor = absl::StrCat("[", TensorJson(5, 256), "]");
  const TorchRank rank(HostTraceText().Op(2, 1, "outer").Op(3, 2, "inner", 1, tensor, tensor),
                       KinetoText()
                           .Op("outer", 1, 0, 100, 2)
                           .Op("inner", 1, 10, 30, 3)
                           .Call("cudaLaunchKernel", 1, 20, 5, 9)
                           .Kernel("add<float>", 7, 50, 30, 9));
  const std::string json = Linked(rank);
  EXPECT_THAT(json, HasSubstr(R"("ts": 1790857026000000.000)"));
  const Document document(json);
  EXPECT_EQ(double(document.Node(2)["inclusive_dur"]), 100);
  EXPECT_EQ(double(document.Node(2)["exclusive_dur"]), 70);
  EXPECT_EQ(double(document.Node(3)["exclusive_dur"]), 30);
  // What the operator said of itself is still there.
  EXPECT_THAT(document.Text(3), HasSubstr(R"("values":[[1005,5,0,256,4,"cuda:0"]])"));

  const simdjson::dom::object kernel = document.Node(4);
  EXPECT_EQ(std::string_view(kernel["name"]), "add<float>");
  EXPECT_EQ(uint64_t(kernel["ctrl_deps"]), 3u);
  EXPECT_EQ(std::string_view(kernel["cat"]), "kernel");
  EXPECT_EQ(int64_t(kernel["stream"]), 7);
  EXPECT_EQ(double(kernel["inclusive_dur"]), 30);
  EXPECT_EQ(double(kernel["exclusive_dur"]), 30);
  EXPECT_THAT(document.Text(4), HasSubstr(R"("values":[[1005,5,0,256,4,"cuda:0"]])"));
}

TEST(LinkedJsonTest, OperatorsThatTheProfileDoesNotShowStayAsTheyAre) {
  const TorchRank rank(HostTraceText().Op(2, 1, "seen").Op(3, 1, "unseen"),
                       KinetoText().Op("seen", 1, 0, 100, 2));
  const Document document(Linked(rank));
  EXPECT_THAT(document.Text(2), HasSubstr("exclusive_dur"));
  EXPECT_THAT(document.Text(3), Not(HasSubstr("exclusive_dur")));
}

TEST(LinkedJsonTest, NamesAreQuotedAndGroupsNamed) {
  const TorchRank rank(HostTraceText().Op(2, 1, "op"),
                       KinetoText()
                           .Op("op", 1, 0, 100, 2)
                           .Call("cudaLaunchKernel", 1, 20, 5, 9)
                           .Kernel(R"(k \"quoted\" \\ back)", 7, 50, 30, 9));
  const TimelineIndex kernel = rank.DeviceNode(R"(k "quoted" \ back)");
  ASSERT_NE(kernel, kNoTimelineNode);
  RankCommunication communication;
  communication.nodes[kernel].emplace_back().process_group = "dp \"a\"";
  const Document document(Linked(rank, communication));
  EXPECT_EQ(std::string_view(document.Node(3)["name"]), R"(k "quoted" \ back)");
  EXPECT_EQ(std::string_view(document.Node(3)["pg_name"]), "dp \"a\"");
}

// The thread waits in "wait" for the kernel; what comes next knows it.
TEST(LinkedJsonTest, WhatAThreadWaitedForIsNamed) {
  const TorchRank rank(HostTraceText().Op(2, 1, "launch").Op(3, 1, "wait").Op(4, 1, "next"),
                       KinetoText()
                           .Op("launch", 1, 0, 10, 2)
                           .Call("cudaLaunchKernel", 1, 2, 5, 9)
                           .Kernel("k", 7, 10, 50, 9)
                           .Op("wait", 1, 20, 50, 3)
                           .Call("cudaDeviceSynchronize", 1, 25, 40, 10)
                           .Op("next", 1, 80, 10, 4));
  const Document document(Linked(rank));
  EXPECT_THAT(document.Text(4), HasSubstr(R"("sync_dep":[5])"));
  EXPECT_THAT(document.Text(2), Not(HasSubstr("sync_dep")));
  // 20 to 25, and from the kernel's end at 60 to 70.
  EXPECT_EQ(double(document.Node(3)["exclusive_dur"]), 15);
}

// Thread 2 works while thread 1 does nothing; then thread 1 goes on, in a gap first.
TEST(LinkedJsonTest, WhatAThreadWaitedForAnotherIsNamedOnce) {
  const TorchRank rank(HostTraceText().Op(2, 1, "before").Op(3, 1, "after").Op(4, 1, "other", 2),
                       KinetoText()
                           .Op("before", 1, 0, 10, 2)
                           .Op("other", 2, 20, 2000, 4)
                           .Op("after", 1, 2100, 10, 3));
  const std::string text = Document(Linked(rank)).Text(3);
  EXPECT_THAT(text, HasSubstr(R"("inter_thread_dep":4)"));
  EXPECT_EQ(text.find("inter_thread_dep"), text.rfind("inter_thread_dep"));
}

TEST(LinkedJsonTest, WorkOfNobodyHangsOnTheFirstOperator) {
  const TorchRank rank(HostTraceText().Op(2, 1, "op"),
                       KinetoText().Op("op", 1, 0, 10, 2).Kernel("k", 7, 50, 30, 9));
  EXPECT_EQ(uint64_t(Document(Linked(rank)).Node(3)["ctrl_deps"]), 2u);
}

TEST(LinkedJsonTest, ATraceWithoutOperatorsIsJsonAllTheSame) {
  const TorchRank rank(HostTraceText(), KinetoText().Kernel("k", 7, 50, 30, 9));
  const Document document(Linked(rank));
  EXPECT_EQ(std::string_view(document.Node(1)["name"]), "k");
  EXPECT_EQ(uint64_t(document.Node(1)["ctrl_deps"]), 0u);
}

// What PyTorchConverter.parse_json_trace and PyTorchNode of chakra 1.0.0 ask of the document and of
// every node, in the types that the protobuf fields they go to have.
TEST(LinkedJsonTest, HasTheMembersThatChakraConverterNeeds) {
  const std::string attributes = R"([{"name": "rf_id", "type": "uint64", "value": 0},)"
                                 R"({"name": "fw_parent", "type": "uint64", "value": 0},)"
                                 R"({"name": "seq_id", "type": "int64", "value": -1},)"
                                 R"({"name": "scope", "type": "uint64", "value": 0},)"
                                 R"({"name": "tid", "type": "uint64", "value": 0},)"
                                 R"({"name": "fw_tid", "type": "uint64", "value": 0},)"
                                 R"({"name": "op_schema", "type": "string", "value": ""}])";
  const TorchRank rank(HostTraceText().Op(2, 1, "op"), KinetoText()
                                                           .Op("op", 1, 0, 10, 2)
                                                           .Call("cudaLaunchKernel", 1, 2, 5, 9)
                                                           .Kernel("launched", 7, 10, 5, 9)
                                                           .Kernel("of nobody", 8, 50, 30, 10));
  const std::string json = Linked(rank);
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(json);
  EXPECT_EQ(std::string_view(document["schema"]), "1.1.1-chakra.0.0.4");
  EXPECT_EQ(uint64_t(document["pid"]), 7u);
  EXPECT_EQ(std::string_view(document["time"]), "2026-11-15 00:16:23");
  EXPECT_EQ(uint64_t(document["start_ts"]), 1u);
  EXPECT_EQ(uint64_t(document["finish_ts"]), 2u);
  for (const simdjson::dom::element node : document["nodes"].get_array()) {
    EXPECT_TRUE(node["id"].is_uint64() || node["id"].is_int64());
    EXPECT_TRUE(node["name"].is_string());
    EXPECT_TRUE(node["ctrl_deps"].is_int64());
    for (const char* tensors : {"inputs", "outputs"}) {
      for (const char* member : {"values", "shapes", "types"}) {
        EXPECT_TRUE(node[tensors][member].is_array()) << tensors << " " << member;
      }
    }
    EXPECT_TRUE(node["attrs"].is_array());
  }
  const Document linked(json);
  EXPECT_EQ(int64_t(linked.Node(3)["stream"]), 7);
  EXPECT_EQ(simdjson::minify(linked.Node(3)["attrs"]), simdjson::minify(linked.Node(2)["attrs"]));
  EXPECT_EQ(int64_t(linked.Node(4)["stream"]), 8);
  EXPECT_EQ(simdjson::minify(linked.Node(4)["attrs"]), simdjson::minify(parser.parse(attributes)));
}

}  // namespace
}  // namespace meridian
