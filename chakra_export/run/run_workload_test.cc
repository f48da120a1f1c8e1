#include "chakra_export/run/run_workload.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunNode Node(int64_t rank, const Resource& resource, int64_t start_ns, int64_t end_ns) {
  RunNode node;
  node.name = "work";
  node.resource = resource;
  node.resource.rank = rank;
  node.start_ns = start_ns;
  node.end_ns = end_ns;
  node.duration_ns = end_ns - start_ns;
  return node;
}

// A call of 2 us, then 10 us of a kernel that it launched, on each of two ranks; then they reduce
// for 5 us.
RunGraph TwoRanks() {
  RunGraph run;
  run.rank_count = 2;
  run.groups = {{"", {0, 1}}};
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto first = static_cast<NodeIndex>(run.nodes.size());
    run.nodes.push_back(Node(rank, {0, ResourceKind::kHostThread, 3}, 0, 2000));
    run.nodes.push_back(Node(rank, {0, ResourceKind::kStream, 7}, 2000, 12000));
    run.nodes.push_back(Node(rank, {0, ResourceKind::kStream, 8}, 12000, 17000));
    run.nodes[first + 1].kernel = first + 1;
    run.nodes[first + 2].kernel = first + 2;
    run.nodes[first + 2].SetCollective(64, ChakraProtoMsg::ALL_REDUCE, 0);
    run.nodes[first + 2].instance = 0;
    run.nodes[first + 2].instance_start_ns = 12000;
    run.edges.push_back({first + 1, first, EdgeKind::kLaunch});
    run.edges.push_back({first + 2, first + 1, EdgeKind::kData});
    run.nodes[first + 1].is_launched = run.nodes[first + 2].is_launched = true;
  }
  return run;
}

TEST(RunWorkloadTest, TheSimulationHasNoHostsAndTakesAsLong) {
  RunGraph run = TwoRanks();
  ASSERT_OK_AND_ASSIGN(const RunWorkload workload,
                       MakeRunWorkload(EtFlavor::kSimulation, /*has_times=*/true, &run));
  EXPECT_EQ(workload.graph.node_count(), 4u);
  EXPECT_THAT(workload.run_nodes, ElementsAre(1, 4, 2, 5));
  EXPECT_EQ(workload.report.measured_ns(), 15000);
  EXPECT_EQ(workload.report.replayed_ns(), 15000);
}

TEST(RunWorkloadTest, TheFullFlavourHasHostsAndTablesOfGroups) {
  RunGraph run = TwoRanks();
  ASSERT_OK_AND_ASSIGN(const RunWorkload workload,
                       MakeRunWorkload(EtFlavor::kFull, /*has_times=*/true, &run));
  ASSERT_EQ(workload.graph.node_count(), 8u);
  EXPECT_EQ(workload.graph.type(0), ChakraProtoMsg::METADATA_NODE);
  EXPECT_EQ(workload.graph.type(1), ChakraProtoMsg::METADATA_NODE);
  EXPECT_EQ(workload.graph.resource(2).kind, ResourceKind::kHostThread);
  EXPECT_EQ(workload.report.measured_ns(), 17000);
}

// Rank 1 begins 4 us later, on a clock of its own.
TEST(RunWorkloadTest, ClocksThatCannotBeComparedAreNot) {
  RunGraph run = TwoRanks();
  for (size_t i = 3; i < 6; ++i) {
    run.nodes[i].start_ns += 4000;
    run.nodes[i].end_ns += 4000;
  }
  run.has_one_clock = false;
  ASSERT_OK_AND_ASSIGN(const RunWorkload workload,
                       MakeRunWorkload(EtFlavor::kSimulation, /*has_times=*/true, &run));
  EXPECT_EQ(workload.report.measured_ns(), 15000);
  EXPECT_EQ(workload.report.replayed_ns(), 15000);
}

TEST(RunWorkloadTest, MoreGroupsThanAstraSimTellsApartAreRefused) {
  RunGraph run = TwoRanks();
  for (int i = 1; i <= 500; ++i) run.groups.push_back({absl::StrCat(i), {0}});
  EXPECT_THAT(MakeRunWorkload(EtFlavor::kSimulation, /*has_times=*/true, &run),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("500 groups")));
  EXPECT_OK(MakeRunWorkload(EtFlavor::kFull, /*has_times=*/true, &run));
}

TEST(RunWorkloadTest, RanksThatCommunicateDifferentlyAreRefused) {
  RunGraph run = TwoRanks();
  run.nodes[5].SetCollective(128, run.nodes[5].communication->type, 0);
  EXPECT_THAT(MakeRunWorkload(EtFlavor::kSimulation, /*has_times=*/true, &run),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("alike")));
}

TEST(RunWorkloadTest, AReportAsText) {
  ChakraWorkloadReport report;
  ChakraWorkloadRank* rank = report.add_ranks();
  rank->set_nodes(1200);
  rank->set_path("w.0.et");
  (*rank->mutable_left_out())["thunk that surrounds others"] = 2;
  report.set_measured_ns(2000000);
  report.set_replayed_ns(1900000);
  report.add_removed("w.1.et");
  EXPECT_EQ(FormatWorkloadReport(report),
            "rank  nodes  comm  file\n"
            "----  -----  ----  ------\n"
            "   0  1,200     0  w.0.et\n"
            "measured 2.000 ms, replayed 1.900 ms\n"
            "left out: 2 x thunk that surrounds others\n"
            "removed: w.1.et of an earlier workload\n");
}

}  // namespace
}  // namespace meridian
