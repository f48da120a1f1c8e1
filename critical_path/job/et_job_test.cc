#include "critical_path/job/job_analysis.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/blame.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<LoadedJob> Load(const std::string& prefix, const JobOptions& options = {}) {
  JobInput input;
  input.et_prefix = prefix;
  return LoadEtJob(FileSystem::Posix(), input, options);
}

ChakraProtoMsg::Node AllReduce(uint64_t id, const EtIds& deps) {
  ChakraProtoMsg::Node node = CollectiveNode(id, ChakraProtoMsg::ALL_REDUCE, 1024, deps);
  node.set_duration_micros(50);
  return node;
}

void SetStep(int64_t step, ChakraProtoMsg::Node* node) {
  ChakraProtoMsg::AttributeProto* attribute = node->add_attr();
  attribute->set_name("step");
  attribute->set_int64_val(step);
}

// A step: rank r computes for 100 + 40 r us, then all reduce for 50 us. The data dependencies say
// so.
std::vector<ChakraProtoMsg::Node> Steps(int64_t rank, int64_t count) {
  std::vector<ChakraProtoMsg::Node> nodes;
  for (int64_t step = 0; step < count; ++step) {
    const uint64_t id = 2 * static_cast<uint64_t>(step) + 1;
    nodes.push_back(
        CompNode(id, static_cast<uint64_t>(100 + 40 * rank), id == 1 ? EtIds() : EtIds{id - 1}));
    nodes.push_back(AllReduce(id + 1, {id}));
    for (ChakraProtoMsg::Node* node : {&nodes[id - 1], &nodes[id]}) SetStep(step, node);
  }
  return nodes;
}

struct Result {
  PathGraph graph;
  CriticalPath path;
  Blame blame;
};

Result Analyze(absl::StatusOr<LoadedJob> loaded) {
  EXPECT_THAT(loaded, IsOk());
  absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  EXPECT_THAT(joined, IsOk());
  EXPECT_EQ(joined->against_time, 0);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  EXPECT_THAT(path, IsOk());
  Result result;
  result.graph = std::move(joined->graph);
  result.path = *path;
  result.blame = FindBlame(result.graph);
  EXPECT_EQ(path->length_ps, result.graph.window_end_ps - result.graph.window_start_ps);
  return result;
}

TEST(EtJobTest, CollectivesJoinRanks) {
  const TemporaryDirectory directory;
  WriteWorkload(directory, "w", {Steps(0, 2), Steps(1, 2)});
  const Result result = Analyze(Load(directory.PathOf("w")));
  EXPECT_EQ(result.path.length_ps, 2 * 190'000'000);
  ASSERT_EQ(result.blame.rows.size(), 2);
  EXPECT_EQ(result.blame.rows[0].step, 0);
  EXPECT_EQ(result.blame.rows[0].rank, 1);
  EXPECT_EQ(result.blame.rows[0].op, "n1");
  EXPECT_EQ(result.blame.rows[0].time_ps, 40'000'000);
  EXPECT_EQ(result.blame.rows[1].step, 1);
}

TEST(EtJobTest, DependenciesOnNodesThatAreNotThereAreNoted) {
  const TemporaryDirectory directory;
  WriteWorkload(directory, "w", {Steps(0, 2), Steps(1, 2)});
  ASSERT_OK_AND_ASSIGN(const LoadedJob whole, Load(directory.PathOf("w")));
  EXPECT_THAT(whole.notes, IsEmpty());
  std::vector<ChakraProtoMsg::Node> nodes = Steps(1, 2);
  nodes[0].add_data_deps(77);
  nodes[3].add_ctrl_deps(78);
  WriteWorkload(directory, "w", {Steps(0, 2), nodes});
  ASSERT_OK_AND_ASSIGN(const LoadedJob loaded, Load(directory.PathOf("w")));
  EXPECT_THAT(loaded.notes,
              ElementsAre(HasSubstr("2 dependencies are on nodes that the traces do not have")));
}

TEST(EtJobTest, StepsAreWindows) {
  const TemporaryDirectory directory;
  WriteWorkload(directory, "w", {Steps(0, 3), Steps(1, 3)});
  JobOptions options;
  options.window = {"step", {1, 1}};
  const Result result = Analyze(Load(directory.PathOf("w"), options));
  EXPECT_EQ(result.path.length_ps, 190'000'000);
  ASSERT_EQ(result.blame.rows.size(), 1);
  EXPECT_EQ(result.blame.rows[0].step, 1);
  options.window.annotation = "epoch";
  EXPECT_THAT(Load(directory.PathOf("w"), options).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("step#0, step#1, step#2")));
}

TEST(EtJobTest, AReceiveWaitsForItsSend) {
  const TemporaryDirectory directory;
  ChakraProtoMsg::Node send = SendNode(2, 0, 1, 64, 0, {1});
  ChakraProtoMsg::Node receive = RecvNode(1, 0, 1, 64);
  for (ChakraProtoMsg::Node* node : {&send, &receive}) node->set_duration_micros(5);
  WriteWorkload(directory, "w", {{CompNode(1, 30), send}, {receive, CompNode(2, 10, {1})}});
  const Result result = Analyze(Load(directory.PathOf("w")));
  // 30 us on rank 0, the message, 10 us on rank 1.
  EXPECT_EQ(result.path.length_ps, 45'000'000);
  ASSERT_EQ(result.blame.rows.size(), 1);
  EXPECT_EQ(result.blame.rows[0].rank, 0);
  EXPECT_EQ(result.blame.rows[0].op, "n1");
  EXPECT_EQ(result.blame.rows[0].time_ps, 30'000'000);
}

TEST(EtJobTest, MissingRanksAndPeersAreRefused) {
  const TemporaryDirectory directory;
  EXPECT_THAT(Load(directory.PathOf("w")).status(), StatusIs(absl::StatusCode::kNotFound));
  directory.Write("w.0.et", EncodeEt(Steps(0, 1)));
  directory.Write("w.2.et", EncodeEt(Steps(0, 1)));
  EXPECT_THAT(Load(directory.PathOf("w")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("rank")));
  WriteWorkload(directory, "x", {Steps(0, 2), Steps(1, 1)});
  EXPECT_THAT(Load(directory.PathOf("x")).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Ranks 0 and 1 of three: the file of groups says that there is one more.
TEST(EtJobTest, ARankThatOnlyGroupsNameIsMissed) {
  const TemporaryDirectory directory;
  const std::vector<ChakraProtoMsg::Node> nodes = {
      CompNode(1, 100, {}), CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 1024, {1}, "7")};
  WriteWorkload(directory, "w", {nodes, nodes});
  directory.Write("w.comm_groups.json", "{\"7\": [0, 1, 2]}");
  EXPECT_THAT(Load(directory.PathOf("w")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2 of 3")));
  const absl::StatusOr<LoadedJob> alone = Load(directory.PathOf("w.0.et"));
  ASSERT_THAT(alone, IsOk());
  ASSERT_FALSE(alone->notes.empty());
  EXPECT_THAT(alone->notes[0], HasSubstr("one rank without the others"));
}

// What chakra_export wrote has the path of the profiles.
TEST(EtJobTest, ExportedRunsBlameWhoSlept) {
  const TemporaryDirectory directory;
  const std::vector<std::string> traces =
      *ExpandPaths(FileSystem::Posix(), "examples/jax_cuda2", {"", {".xplane.pb"}});
  ASSERT_THAT(ExportXSpaces(FileSystem::Posix(), traces, directory.PathOf("w"), {}), IsOk());
  const Result result = Analyze(Load(directory.PathOf("w")));
  const PathBreakdown breakdown = BreakDown(result.graph, result.path);
  EXPECT_EQ(std::accumulate(breakdown.time_ps.begin(), breakdown.time_ps.end(), int64_t{0}),
            result.path.length_ps);
  ASSERT_GE(result.blame.rows.size(), 1);
  EXPECT_EQ(result.blame.rows[0].rank, 1);
  EXPECT_EQ(result.blame.rows[0].step, 3);
  EXPECT_EQ(result.blame.rows[0].bound_by, BoundBy::kHostGap);
}

}  // namespace
}  // namespace meridian
