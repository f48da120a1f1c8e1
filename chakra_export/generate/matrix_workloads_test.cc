#include "chakra_export/generate/matrix_workloads.h"

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/generate/testing/workload_check.h"
#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

ExecutionGraph GraphOf(const GeneratedWorkload& workload) {
  absl::StatusOr<ExecutionGraph> graph = BuildWorkloadGraph(workload);
  EXPECT_OK(graph.status());
  return *std::move(graph);
}

// "name bytes [ranks]" of a rank's communication, or "name duration", in the order of its nodes.
std::vector<std::string> NodesOf(const ExecutionGraph& graph, int64_t rank) {
  std::vector<std::string> nodes;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) != rank) continue;
    std::string text = absl::StrCat(std::string(graph.name(node)), " ");
    if (const Communication* communication = graph.communication(node)) {
      absl::StrAppend(&text, communication->bytes);
      for (const int64_t member : graph.groups()[communication->group].ranks) {
        absl::StrAppend(&text, " r", member);
      }
    } else {
      absl::StrAppend(&text, graph.duration_ns(node), " ns");
    }
    nodes.push_back(text);
  }
  return nodes;
}

GemmOptions SmallGemm() {
  GemmOptions options;
  options.product = {64, 256, 128};
  options.grid = {2, 2, 2};
  options.device.tflops = 0.001;
  return options;
}

// Rank 3 has row 1, column 1 and the first half of k: 32 x 128 times 128 x 64, 2 bytes each. At one
// operation per nanosecond.
TEST(GemmTest, RanksGatherFactorsAndSumResults) {
  ASSERT_OK_AND_ASSIGN(const auto workload, MakeGemm(SmallGemm()));
  EXPECT_EQ(workload->rank_count(), 8);
  const ExecutionGraph graph = GraphOf(*workload);
  EXPECT_THAT(NodesOf(graph, 3),
              ElementsAre("rows.all-gather 4096 r1 r3", "columns.all-gather 8192 r2 r3",
                          "gemm 524288 ns", "result.all-reduce 4096 r3 r7"));
  EXPECT_THAT(ProblemsOf(*workload), IsOkAndHolds(IsEmpty()));
}

TEST(GemmTest, OneRankOnlyComputes) {
  GemmOptions options = SmallGemm();
  options.grid = {};
  options.repeats = 2;
  ASSERT_OK_AND_ASSIGN(const auto workload, MakeGemm(options));
  EXPECT_THAT(NodesOf(GraphOf(*workload), 0), ElementsAre("gemm 4194304 ns", "gemm 4194304 ns"));
}

TEST(GemmTest, ADeviceWithMemoriesPricesTiles) {
  GemmOptions options = SmallGemm();
  options.grid = {};
  options.device.units = 4;
  options.device.tiles = {64};
  options.device.memories = {{0, 1000}};
  ASSERT_OK_AND_ASSIGN(const auto workload, MakeGemm(options));
  // Two tiles, cut in two along k: 2 * 64 * 64 * 128 operations of a quarter of the speed, and 3
  // times 64 x 128 sums of 4 bytes moved.
  EXPECT_THAT(NodesOf(GraphOf(*workload), 0), ElementsAre("gemm 4194402 ns"));
}

TEST(GemmTest, RefusesWhatDoesNotFit) {
  const auto refused = [](GemmOptions options, absl::string_view message) {
    EXPECT_THAT(MakeGemm(options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(message))));
  };
  GemmOptions options = SmallGemm();
  options.product.m = 0;
  refused(options, "--gemm=0");
  options = SmallGemm();
  options.grid = {3};
  refused(options, "--gemm=64 does not divide by --grid=3");
  options = SmallGemm();
  options.product = {2, 2, 2};
  refused(options, "an all-gather would have");
  options = SmallGemm();
  options.repeats = 50'000'000;
  refused(options, "nodes");
  options.product = {1 << 24, 1 << 24, 1 << 24};
  options.grid = {};
  EXPECT_EQ(MakeGemm(options).status().code(), absl::StatusCode::kOutOfRange);
}

LstmOptions SmallLstm() {
  LstmOptions options;
  options.tensor_parallel = 2;
  options.data_parallel = 2;
  options.layers = 2;
  options.hidden = 32;
  options.sequence = 3;
  options.batch = 8;
  options.device.tflops = 0.001;
  return options;
}

// A cell of 4 sequences: 4 x 64 times 64 x 64, and 9 operations for each of 4 x 16 numbers.
TEST(LstmTest, CellsAreGatheredAndGradientsSummed) {
  ASSERT_OK_AND_ASSIGN(const auto workload, MakeLstmStep(SmallLstm()));
  EXPECT_EQ(workload->rank_count(), 4);
  const ExecutionGraph graph = GraphOf(*workload);
  const std::vector<std::string> nodes = NodesOf(graph, 2);
  std::map<std::string, int> counts;
  for (const std::string& node : nodes) ++counts[node.substr(node.rfind('.') + 1)];
  EXPECT_THAT(counts, ElementsAre(Pair("all-gather 128 r2 r3", 6), Pair("all-reduce 512 r2 r3", 6),
                                  Pair("all-reduce 8192 r0 r2", 2), Pair("backward 66688 ns", 6),
                                  Pair("forward 33344 ns", 6), Pair("optimizer 98304 ns", 1)));
  EXPECT_THAT(ProblemsOf(*workload), IsOkAndHolds(IsEmpty()));
}

// Cells wait for the step before and the layer below; the last layer goes back first.
TEST(LstmTest, TimeGoesForwardAndBack) {
  LstmOptions options = SmallLstm();
  options.tensor_parallel = options.data_parallel = 1;
  ASSERT_OK_AND_ASSIGN(const auto workload, MakeLstmStep(options));
  std::vector<std::string> names;
  for (const std::string& node : NodesOf(GraphOf(*workload), 0)) {
    names.push_back(node.substr(0, node.find(' ')));
  }
  EXPECT_THAT(names,
              ElementsAre("layer0.step0.forward", "layer1.step0.forward", "layer0.step1.forward",
                          "layer1.step1.forward", "layer0.step2.forward", "layer1.step2.forward",
                          "layer1.step2.backward", "layer0.step2.backward", "layer1.step1.backward",
                          "layer0.step1.backward", "layer1.step0.backward", "layer0.step0.backward",
                          "optimizer"));
}

TEST(LstmTest, RefusesWhatDoesNotFit) {
  LstmOptions options = SmallLstm();
  options.hidden = 33;
  EXPECT_THAT(MakeLstmStep(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--hidden=33")));
  options = SmallLstm();
  options.sequence = 1 << 24;
  EXPECT_THAT(MakeLstmStep(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nodes")));
}

}  // namespace
}  // namespace meridian
