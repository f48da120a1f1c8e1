#include "chakra_export/generate/generated_workload.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/generate/micro_benchmark.h"
#include "chakra_export/generate/testing/tiny_transformer.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/testing/et_workload.h"
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
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<GeneratedWorkload> Transformer() {
  auto workload = MakeTransformerStep(TinyTransformer());
  EXPECT_OK(workload.status());
  return *std::move(workload);
}

std::unique_ptr<GeneratedWorkload> AllReduce(int64_t ranks) {
  MicroBenchmarkOptions options;
  options.ranks = ranks;
  options.bytes = {4096};
  auto workload = MakeMicroBenchmark(options);
  EXPECT_OK(workload.status());
  return *std::move(workload);
}

class WrittenWorkloadTest : public ::testing::Test {
 protected:
  absl::StatusOr<ChakraWorkloadReport> Write(const GeneratedWorkload& workload) {
    return WriteGeneratedWorkload(FileSystem::Posix(), workload, prefix_);
  }

  const TemporaryDirectory directory_;
  const std::string prefix_ = directory_.PathOf("w");
};

int64_t IntOf(const Node& node, absl::string_view name) {
  const auto value = GetIntAttribute(node.attr(), name);
  EXPECT_OK(value.status());
  EXPECT_TRUE(value->has_value()) << name;
  return **value;
}

TEST_F(WrittenWorkloadTest, WritesATraceForEachRankAndTheGroups) {
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Write(*Transformer()));
  EXPECT_THAT(directory_.List(), ElementsAre("w.0.et", "w.1.et", "w.2.et", "w.3.et", "w.4.et",
                                             "w.5.et", "w.6.et", "w.7.et", "w.comm_groups.json"));
  EXPECT_EQ(report.comm_groups(), directory_.PathOf("w.comm_groups.json"));
  EXPECT_EQ(directory_.Read("w.comm_groups.json"),
            "{\n"
            "  \"1\": [0, 1],\n"
            "  \"2\": [2, 3],\n"
            "  \"3\": [4, 5],\n"
            "  \"4\": [6, 7],\n"
            "  \"5\": [0, 2],\n"
            "  \"6\": [1, 3],\n"
            "  \"7\": [4, 6],\n"
            "  \"8\": [5, 7]\n"
            "}\n");
  EXPECT_THAT(report.removed(), IsEmpty());
}

// Stage 0, for each of three microbatches: 2 layers of 4 computations and 4 all-reduces, the
// embedding forward, its all-reduce and backward, a send and a receive: 21 nodes, 11 of them
// communication. Then 3 sums of gradients and the optimizer.
TEST_F(WrittenWorkloadTest, ReportsWhatEachRankHas) {
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Write(*Transformer()));
  ASSERT_EQ(report.ranks_size(), 8);
  const ChakraWorkloadRank& rank = report.ranks(1);
  EXPECT_EQ(rank.rank(), 1);
  EXPECT_EQ(rank.path(), directory_.PathOf("w.1.et"));
  EXPECT_EQ(rank.nodes(), 3 * 21 + 4);
  EXPECT_EQ(rank.comm_nodes(), 3 * 11 + 3);
}

TEST_F(WrittenWorkloadTest, ComputationsCarryWhatARooflineNeeds) {
  ASSERT_OK(Write(*Transformer()).status());
  const std::vector<Node> nodes = ReadNodes(directory_.PathOf("w.0.et"));
  ASSERT_EQ(nodes[2].name(), "layer0.attention.forward");
  EXPECT_EQ(IntOf(nodes[2], kNumOpsAttribute), 278528);
  // 2 * (2 * 16 * 64 + (8 * 16 * 64 + 4 * 64 * 64) / 2).
  EXPECT_EQ(IntOf(nodes[2], kTensorSizeAttribute), 28672);
  EXPECT_EQ(IntOf(nodes[2], kDurationNsAttribute), 279);
  for (const Node& node : nodes) {
    if (node.type() != ChakraProtoMsg::COMP_NODE) continue;
    EXPECT_GT(IntOf(node, kNumOpsAttribute), 0) << node.name();
    EXPECT_GT(IntOf(node, kTensorSizeAttribute), 0) << node.name();
  }
}

TEST_F(WrittenWorkloadTest, IdsCountUpAndDependenciesAreEarlierOnes) {
  ASSERT_OK(Write(*Transformer()).status());
  for (int64_t rank = 0; rank < 8; ++rank) {
    uint64_t id = 0;
    for (const Node& node : ReadNodes(EtPath(prefix_, rank))) {
      EXPECT_EQ(node.id(), ++id);
      EXPECT_THAT(node.data_deps(), Each(::testing::Lt(id)));
    }
  }
}

TEST_F(WrittenWorkloadTest, TheSameWorkloadGivesTheSameBytes) {
  ASSERT_OK(Write(*Transformer()).status());
  ASSERT_OK(WriteGeneratedWorkload(FileSystem::Posix(), *Transformer(), directory_.PathOf("again"))
                .status());
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(directory_.Read(absl::StrCat("w.", rank, ".et")),
              directory_.Read(absl::StrCat("again.", rank, ".et")));
  }
}

TEST_F(WrittenWorkloadTest, LeavesNothingOfAnEarlierWorkload) {
  ASSERT_OK(Write(*Transformer()).status());
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Write(*AllReduce(7)));
  EXPECT_THAT(report.removed(),
              ElementsAre(directory_.PathOf("w.7.et"), directory_.PathOf("w.comm_groups.json")));
  EXPECT_EQ(report.comm_groups(), "");
  EXPECT_THAT(directory_.List(),
              ElementsAre("w.0.et", "w.1.et", "w.2.et", "w.3.et", "w.4.et", "w.5.et", "w.6.et"));
}

TEST_F(WrittenWorkloadTest, TellsAboutRanksAsItComesToThem) {
  std::vector<int64_t> ranks;
  ASSERT_OK(WriteGeneratedWorkload(FileSystem::Posix(), *AllReduce(3), prefix_, [&](int64_t rank) {
              ranks.push_back(rank);
            }).status());
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2));
}

TEST_F(WrittenWorkloadTest, AMissingFolderIsMade) {
  EXPECT_OK(
      WriteGeneratedWorkload(FileSystem::Posix(), *AllReduce(2), directory_.PathOf("new/er/w")));
  EXPECT_FALSE(directory_.Read("new/er/w.1.et").empty());
}

TEST_F(WrittenWorkloadTest, AFullDiskLeavesAllAsItWas) {
  FaultyFileSystem files(FileSystem::Posix());
  files.Fail(Operation::kAppend, 2, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(WriteGeneratedWorkload(files, *AllReduce(3), prefix_),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(directory_.List(), IsEmpty());
}

}  // namespace
}  // namespace meridian
