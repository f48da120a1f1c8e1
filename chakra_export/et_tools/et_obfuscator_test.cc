#include "chakra_export/et_tools/et_obfuscator.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/run/workload_report.pb.h"
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
using ::testing::Not;

// Every text of a node except for those that simulations need.
std::vector<std::string> TextsOf(const Node& node) {
  std::vector<std::string> texts = {
      node.name(),           node.inputs().values(),  node.inputs().shapes(),
      node.inputs().types(), node.outputs().values(), node.outputs().shapes(),
      node.outputs().types()};
  for (const auto& attribute : node.attr()) {
    texts.push_back(attribute.doc_string());
    texts.push_back(attribute.string_val());
    texts.push_back(attribute.bytes_val());
    for (const std::string& text : attribute.string_list().values()) texts.push_back(text);
  }
  return texts;
}

// The training step with more places to hide texts in.
std::vector<std::vector<Node>> Revealing() {
  std::vector<std::vector<Node>> ranks = TrainingStep();
  for (std::vector<Node>& nodes : ranks) {
    for (Node& node : nodes) {
      auto* note = node.add_attr();
      note->set_name("internal_codename_attribute");
      note->set_doc_string("see internal wiki");
      note->mutable_string_list()->add_values("hidden_in_a_list");
      auto* bytes = node.add_attr();
      bytes->set_name("raw");
      bytes->set_bytes_val("hidden_in_bytes");
      // Field 99: what the schema does not know.
      node.MergeFromString(std::string("\x9A\x06\x0Fhidden_in_field", 18));
    }
    nodes[0].mutable_outputs()->set_values("hidden_in_values");
    SetIntAttribute(kThreadAttribute, 140199, nodes[0].mutable_attr());
  }
  return ranks;
}

int64_t SimulatedNs(const std::string& prefix) {
  const absl::StatusOr<EtFiles> files = FindEtFiles(FileSystem::Posix(), prefix);
  const absl::StatusOr<ExecutionGraph> graph = ReadEtGraph(FileSystem::Posix(), *files);
  EXPECT_OK(graph);
  const absl::StatusOr<GraphReplay> replay = ReplayAsSimulator(*graph, CommunicationMatch(*graph));
  EXPECT_OK(replay);
  return replay->makespan_ns;
}

TEST(EtObfuscatorTest, NoOriginalTextSurvivesInTheBytes) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", Revealing());
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport result,
                       ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  ASSERT_EQ(result.ranks_size(), 2);
  EXPECT_EQ(result.ranks(1).nodes(), 7);
  int texts = 0;
  for (const char* name : {"b.0.et", "b.1.et"}) {
    const std::string bytes = directory.Read(name);
    for (const std::vector<Node>& rank : Revealing()) {
      for (const Node& node : rank) {
        for (const std::string& text : TextsOf(node)) {
          if (text.empty()) continue;
          ++texts;
          EXPECT_THAT(bytes, Not(HasSubstr(text)));
        }
      }
    }
    for (const char* text : {"secret", "attention", "internal_codename", "wiki", "hidden", "4096",
                             "11008", "bfloat16", "Tensor", "pipeline", "140199", "proprietary"}) {
      EXPECT_THAT(bytes, Not(HasSubstr(text)));
    }
  }
  EXPECT_GT(texts, 100);
}

TEST(EtObfuscatorTest, StructureAndSimulatedResultStay) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", Revealing());
  ASSERT_OK(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  EXPECT_EQ(SimulatedNs(directory.PathOf("b")), SimulatedNs(directory.PathOf("a")));
  const std::vector<Node> before = Revealing()[1];
  const std::vector<Node> after = ReadNodes(directory.PathOf("b.1.et"));
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].id(), before[i].id());
    EXPECT_EQ(after[i].type(), before[i].type());
    EXPECT_EQ(after[i].duration_micros(), before[i].duration_micros());
    EXPECT_EQ(std::vector<uint64_t>(after[i].data_deps().begin(), after[i].data_deps().end()),
              std::vector<uint64_t>(before[i].data_deps().begin(), before[i].data_deps().end()));
    for (const absl::string_view name : {kCommSizeAttribute, kCommTypeAttribute, kCommSrcAttribute,
                                         kCommTagAttribute, kNumOpsAttribute, kStreamAttribute}) {
      const auto* kept = FindAttribute(after[i].attr(), name);
      const auto* original = FindAttribute(before[i].attr(), name);
      ASSERT_EQ(kept == nullptr, original == nullptr);
      if (kept != nullptr) {
        EXPECT_EQ(kept->SerializeAsString(), original->SerializeAsString());
      }
    }
  }
}

TEST(EtObfuscatorTest, AlikeStaysAlikeOnAllRanks) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", Revealing());
  ASSERT_OK(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  const std::vector<Node> zero = ReadNodes(directory.PathOf("b.0.et"));
  const std::vector<Node> one = ReadNodes(directory.PathOf("b.1.et"));
  EXPECT_EQ(zero[0].name(), "op1");
  EXPECT_EQ(zero[1].name(), "op2");
  EXPECT_EQ(one[1].name(), zero[1].name());
  EXPECT_EQ(one[3].name(), zero[1].name());
  EXPECT_FALSE(zero[0].has_inputs());
  EXPECT_FALSE(zero[0].has_outputs());
}

TEST(EtObfuscatorTest, StartTimesAreShifted) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", Revealing());
  ASSERT_OK(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  EXPECT_EQ(ReadNodes(directory.PathOf("b.0.et"))[0].start_time_micros(), 1000000);
  EXPECT_EQ(ReadNodes(directory.PathOf("b.1.et"))[0].start_time_micros(), 1000010);
}

TEST(EtObfuscatorTest, GroupsKeepTheirNumbersAndTables) {
  Node table;
  table.set_id(9);
  table.set_name("## process_group:init ##");
  table.set_type(ChakraProtoMsg::METADATA_NODE);
  table.mutable_inputs()->set_values(
      R"(['[{"pg_name": "1", "pg_desc": "tensor_parallel", "ranks": [0, 1]}]'])");
  const TemporaryDirectory directory;
  const EtFiles files =
      WriteWorkload(directory, "a",
                    {{table, CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "1"),
                      CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {}, "tensor_parallel")}});
  ASSERT_OK(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  const std::vector<Node> nodes = ReadNodes(directory.PathOf("b.0.et"));
  EXPECT_EQ(nodes[0].inputs().values(), R"(['[{"pg_name": "1", "ranks": [0, 1]}]'])");
  EXPECT_EQ(FindAttribute(nodes[1].attr(), "pg_name")->string_val(), "1");
  EXPECT_THAT(directory.Read("b.0.et"), Not(HasSubstr("tensor_parallel")));
}

TEST(EtObfuscatorTest, GroupsBesideTheTracesHaveTheNamesThatNodesHave) {
  const TemporaryDirectory directory;
  const EtFiles files =
      WriteWorkload(directory, "a",
                    {{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "4"),
                      CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {}, "tensor_parallel")}});
  EtGraphReaderOptions options;
  options.groups = {{"4", {0, 1}}, {"tensor_parallel", {1, 0}}, {"unused", {1}}};
  ASSERT_OK_AND_ASSIGN(
      const ChakraWorkloadReport result,
      ObfuscateEtFiles(FileSystem::Posix(), files, options, directory.PathOf("b")));
  ASSERT_OK_AND_ASSIGN(const CommGroups groups,
                       ReadCommGroups(FileSystem::Posix(), result.comm_groups()));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_THAT(groups.at("4"), ElementsAre(0, 1));
  const Node node = ReadNodes(directory.PathOf("b.0.et"))[1];
  EXPECT_THAT(groups.at(FindAttribute(node.attr(), "pg_name")->string_val()), ElementsAre(1, 0));
  for (const char* name : {"tensor_parallel", "unused"}) EXPECT_EQ(groups.count(name), 0u);
}

TEST(EtObfuscatorTest, NumbersGetTheKindsThatReadersExpect) {
  Node node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8);
  for (auto& attribute : *node.mutable_attr()) {
    if (attribute.name() == "comm_size") attribute.set_string_val("4096");
  }
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", {{node}});
  ASSERT_OK(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")));
  const std::vector<Node> nodes = ReadNodes(directory.PathOf("b.0.et"));
  EXPECT_EQ(FindAttribute(nodes[0].attr(), "comm_size")->int64_val(), 4096);
}

TEST(EtObfuscatorTest, BadFilesWriteNothing) {
  Node node = SendNode(5, 0, 1, 8);
  for (auto& attribute : *node.mutable_attr()) {
    if (attribute.name() == "comm_dst") attribute.set_int64_val(int64_t{1} << 40);
  }
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "a", {{CompNode(1, 1)}, {node}});
  EXPECT_THAT(ObfuscateEtFiles(FileSystem::Posix(), files, {}, directory.PathOf("b")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.1.et: offset 8: node 5: attribute comm_dst is")));
  EXPECT_THAT(directory.List(), ElementsAre("a.0.et", "a.1.et"));
}

}  // namespace
}  // namespace meridian
