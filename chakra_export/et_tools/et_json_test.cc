#include "chakra_export/et_tools/et_summary.h"

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "chakra_export/et/et_files.h"
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

// Returns what a document says about its only node.
std::string NodeJson(const Node& node) {
  const TemporaryDirectory directory;
  std::string json;
  StringSink sink(&json);
  EXPECT_OK(WriteEtJson(FileSystem::Posix(), WriteWorkload(directory, "w", {{node}}), {}, &sink));
  const std::string before = "\"nodes\":[\n";
  const size_t begin = json.find(before) + before.size();
  return json.substr(begin, json.find("\n]}", begin) - begin);
}

TEST(EtJsonTest, WritesANode) {
  Node node = CompNode(7, 5, {1, 2});
  node.add_ctrl_deps(std::numeric_limits<uint64_t>::max());
  node.set_start_time_micros(9);
  node.mutable_inputs()->set_shapes("[[\"2\"]]");
  EXPECT_EQ(NodeJson(node),
            R"({"id":7,"name":"n7","type":"COMP_NODE","ctrl_deps":[18446744073709551615],)"
            R"("data_deps":[1,2],"start_time_micros":9,"duration_micros":5,)"
            R"("inputs":{"values":"","shapes":"[[\"2\"]]","types":""},)"
            R"("attr":[{"name":"is_cpu_op","doc_string":"","bool_val":false}]})");
}

TEST(EtJsonTest, WritesAttributesOfEveryForm) {
  Node node;
  const auto add = [&](const char* name) {
    auto* attribute = node.add_attr();
    attribute->set_name(name);
    return attribute;
  };
  add("a")->set_double_val(0.1);
  add("b")->set_double_val(std::numeric_limits<double>::quiet_NaN());
  add("c")->set_sint64_val(-5);
  add("d")->set_bytes_val(std::string("\0\xFF", 2));
  add("e")->mutable_string_list()->add_values("x\n");
  add("f")->mutable_uint32_list()->add_values(4000000000);
  add("g")->mutable_bool_list();
  add("h")->set_doc_string("why");
  add("i")->set_float_val(0.5);
  const std::string json = absl::StrReplaceAll(NodeJson(node), {{R"("doc_string":"",)", ""}});
  EXPECT_THAT(json, ::testing::HasSubstr(
                        R"("attr":[{"name":"a","double_val":0.1},{"name":"b","double_val":"NaN"},)"
                        R"({"name":"c","sint64_val":-5},{"name":"d","bytes_val":"AP8="},)"
                        R"({"name":"e","string_list":{"values":["x\n"]}},)"
                        R"({"name":"f","uint32_list":{"values":[4000000000]}},)"
                        R"({"name":"g","bool_list":{"values":[]}},{"name":"h","doc_string":"why"},)"
                        R"({"name":"i","float_val":0.5}])"));
}

TEST(EtJsonTest, ABadFileWritesNothing) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", EncodeEt(TrainingStep()[0]));
  directory.Write("w.1.et", EncodeEt(TrainingStep()[1]).substr(0, 100));
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  std::string json;
  StringSink sink(&json);
  EXPECT_THAT(WriteEtJson(FileSystem::Posix(), files, {}, &sink),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(json, "");
}

TEST(EtJsonTest, AWorkloadIsOneValidDocument) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "w", {TrainingStep()[0], TrainingStep()[1], {}});
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteEtJson(FileSystem::Posix(), files, {}, &sink));
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.parse(json).get(document), simdjson::SUCCESS);
  simdjson::dom::array ranks;
  ASSERT_EQ(document["ranks"].get(ranks), simdjson::SUCCESS);
  ASSERT_EQ(ranks.size(), 3);
  EXPECT_EQ(ranks.at(1)["rank"].get_uint64().value(), 1);
  EXPECT_EQ(ranks.at(1)["nodes"].get_array().value().size(), 7);
  EXPECT_EQ(ranks.at(0)["nodes"].at(1)["name"].get_string().value(),
            "secret_model/gradients_all_reduce");
  EXPECT_EQ(ranks.at(0)["metadata"]["version"].get_string().value(), "1.0.0");
  EXPECT_EQ(ranks.at(2)["nodes"].get_array().value().size(), 0);
}

}  // namespace
}  // namespace meridian
