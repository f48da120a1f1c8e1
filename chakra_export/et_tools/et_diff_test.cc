#include "chakra_export/et_tools/et_summary.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
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
using ::testing::Contains;
using ::testing::HasSubstr;

using Ranks = std::vector<std::vector<Node>>;

absl::StatusOr<ChakraDiffReport> Diff(const Ranks& first, const Ranks& second) {
  const TemporaryDirectory directory;
  return DiffEtFiles(FileSystem::Posix(), WriteWorkload(directory, "a", first),
                     WriteWorkload(directory, "b", second));
}

TEST(EtDiffTest, EqualWorkloads) {
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report, Diff(TrainingStep(), TrainingStep()));
  EXPECT_EQ(report.different(), 0);
  EXPECT_EQ(report.equal_nodes(), 14);
  EXPECT_EQ(FormatDiff(report), "no difference in 14 nodes\n");
}

TEST(EtDiffTest, OrderIsNoDifference) {
  Ranks other = TrainingStep();
  std::reverse(other[0].begin(), other[0].end());
  for (Node& node : other[0]) {
    std::reverse(node.mutable_attr()->begin(), node.mutable_attr()->end());
    std::reverse(node.mutable_data_deps()->begin(), node.mutable_data_deps()->end());
  }
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report, Diff(TrainingStep(), other));
  EXPECT_EQ(report.different(), 0);
}

TEST(EtDiffTest, NamesWhatChanged) {
  Ranks other = TrainingStep();
  other[0][0].set_duration_micros(81);
  other[1].pop_back();
  other[1].push_back(CompNode(100, 1));
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report, Diff(TrainingStep(), other));
  EXPECT_EQ(report.equal_nodes(), 12);
  EXPECT_EQ(report.different(), 3);
  EXPECT_EQ(FormatDiff(report),
            "rank 0 node 1 (secret_model/layer0/attention_matmul): modified: duration_micros: "
            "80 -> 81\n"
            "rank 1 node 7 (pipeline_handover): only in the first\n"
            "rank 1 node 100 (n100): only in the second\n"
            "12 nodes equal, 3 differences\n");
}

TEST(EtDiffTest, ComparesEveryField) {
  Node first = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {2, 3});
  Node second = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 9, {3, 4});
  second.set_name("other");
  second.set_type(ChakraProtoMsg::COMP_NODE);
  second.add_ctrl_deps(7);
  second.set_start_time_micros(5);
  second.mutable_outputs()->set_types("['f32']");
  SetStringAttribute("extra", "x", second.mutable_attr());
  const Node others[] = {CompNode(2, 1), CompNode(3, 1), CompNode(4, 1), CompNode(7, 1)};
  Ranks a = {{std::begin(others), std::end(others)}};
  Ranks b = a;
  a[0].push_back(first);
  b[0].push_back(second);
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report, Diff(a, b));
  ASSERT_EQ(report.differences_size(), 1);
  EXPECT_EQ(report.equal_nodes(), 4);
  const auto& changes = report.differences(0).changes();
  for (const char* change :
       {"modified: name: \"n1\" -> \"other\"", "modified: type: COMM_COLL_NODE -> COMP_NODE",
        "added: ctrl_deps[0]: 7", "deleted: data_deps[0]: 2", "added: data_deps[1]: 4",
        "added: start_time_micros: 5", "added: outputs: ", "int64_val: 8 -> 9",
        "name: \"extra\""}) {
    EXPECT_THAT(changes, Contains(HasSubstr(change)));
  }
}

TEST(EtDiffTest, RanksAndMetadata) {
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report,
                       Diff({{CompNode(1, 1)}, {CompNode(1, 1)}}, {{CompNode(1, 1)}}));
  EXPECT_EQ(FormatDiff(report), "rank 1: only in the first\n1 nodes equal, 1 differences\n");

  const TemporaryDirectory directory;
  const EtFiles first = WriteWorkload(directory, "a", {{CompNode(1, 1)}});
  directory.Write("b.0.et", std::string(1, '\0') + EncodeEt({CompNode(1, 1)}).substr(8));
  ASSERT_OK_AND_ASSIGN(const EtFiles second,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("b")));
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport metadata,
                       DiffEtFiles(FileSystem::Posix(), first, second));
  EXPECT_EQ(FormatDiff(metadata), "rank 0: the metadata differ\n1 nodes equal, 1 differences\n");
}

TEST(EtDiffTest, TwoFilesAreComparedWhateverTheirRanks) {
  const TemporaryDirectory directory;
  WriteWorkload(directory, "w", {{CompNode(1, 1)}, {CompNode(1, 2)}});
  EtFiles first;
  first.files.push_back({0, directory.PathOf("w.0.et")});
  EtFiles second;
  second.files.push_back({1, directory.PathOf("w.1.et")});
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report,
                       DiffEtFiles(FileSystem::Posix(), first, second));
  EXPECT_EQ(report.different(), 1);
}

TEST(EtDiffTest, IdsThatOccurTwiceAreAnError) {
  EXPECT_THAT(Diff({{CompNode(1, 1), CompNode(1, 1)}}, {{CompNode(1, 1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a.0.et: offset 35: node id 1 occurs twice")));
}

TEST(EtDiffTest, ManyDifferencesAreCounted) {
  std::vector<Node> nodes;
  for (uint64_t id = 1; id <= 500; ++id) nodes.push_back(CompNode(id, 1));
  ASSERT_OK_AND_ASSIGN(const ChakraDiffReport report, Diff({nodes}, {{}}));
  EXPECT_EQ(report.different(), 500);
  EXPECT_EQ(report.differences_size(), 100);
}

}  // namespace
}  // namespace meridian
