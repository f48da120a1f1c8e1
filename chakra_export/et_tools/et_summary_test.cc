#include "chakra_export/et_tools/et_summary.h"

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ChakraReport Inspect(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "w", ranks);
  const absl::StatusOr<ChakraReport> report = SummarizeEtFiles(FileSystem::Posix(), files);
  EXPECT_OK(report);
  return report.value_or(ChakraReport());
}

TEST(EtSummaryTest, CountsNodesEdgesAndBytes) {
  const ChakraReport report = Inspect(TrainingStep());
  EXPECT_EQ(report.nodes(), 14);
  EXPECT_THAT(report.nodes_by_type(),
              UnorderedElementsAre(Pair("COMP_NODE", 6), Pair("COMM_COLL_NODE", 6),
                                   Pair("COMM_SEND_NODE", 1), Pair("COMM_RECV_NODE", 1)));
  // Per rank: matmuls 2, all-reduces 1 + 2 + 2, message 1.
  EXPECT_EQ(report.edges(), 16);
  EXPECT_THAT(report.edges_by_kind(),
              UnorderedElementsAre(Pair("data", 16), Pair("control", 0), Pair("stream", 0),
                                   Pair("launch", 0), Pair("program", 0), Pair("sync", 0),
                                   Pair("inferred", 0)));
  EXPECT_EQ(report.roots(), 2);
  ASSERT_EQ(report.communication_size(), 3);
  EXPECT_EQ(report.communication(0).type(), "ALL_REDUCE");
  EXPECT_EQ(report.communication(0).group(), "");
  EXPECT_THAT(report.communication(0).ranks(), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(report.communication(0).nodes(), 6);
  EXPECT_EQ(report.communication(0).bytes(), 6 * (8 << 20));
  EXPECT_EQ(report.communication(0).duration_ns(), 6 * 50000);
  EXPECT_EQ(report.communication(1).bytes(), 65536);
  EXPECT_EQ(report.errors(), 0);
  EXPECT_EQ(report.warnings(), 0);
}

TEST(EtSummaryTest, MeasuresOverlapFromStartTimes) {
  const ChakraReport report = Inspect(TrainingStep());
  ASSERT_EQ(report.ranks_size(), 2);
  const ChakraRankReport& rank = report.ranks(0);
  // Compute 0..80, 100..180, 200..280; communication 80..130, 180..230, 280..330, 350..355 us.
  EXPECT_EQ(rank.compute_ns(), 240000);
  EXPECT_EQ(rank.communication_ns(), 155000);
  EXPECT_EQ(rank.overlap_ns(), 60000);
  EXPECT_EQ(rank.first_start_ns(), 1794701451000000000);
  EXPECT_EQ(rank.last_end_ns() - rank.first_start_ns(), 355000);
}

TEST(EtSummaryTest, OverlapAgreesWithCountingNanoseconds) {
  constexpr int64_t kEnd = 30;
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    // Which nanoseconds something computes in, and communicates in.
    std::vector<bool> busy[2] = {std::vector<bool>(kEnd), std::vector<bool>(kEnd)};
    std::vector<Node> nodes;
    const uint64_t count = 1 + random() % 12;
    for (uint64_t id = 1; id <= count; ++id) {
      const int64_t start_ns = 1 + static_cast<int64_t>(random() % (kEnd - 1));
      const int64_t end_ns = start_ns + static_cast<int64_t>(random() % (kEnd - start_ns));
      const bool communicates = random() % 2 == 0;
      for (int64_t t = start_ns; t < end_ns; ++t) busy[communicates][t] = true;
      nodes.push_back(communicates ? CollectiveNode(id, ChakraProtoMsg::ALL_REDUCE, 64)
                                   : CompNode(id, 0));
      SetIntAttribute(kStartNsAttribute, start_ns, nodes.back().mutable_attr());
      SetIntAttribute(kDurationNsAttribute, end_ns - start_ns, nodes.back().mutable_attr());
    }
    int64_t compute_ns = 0;
    int64_t communication_ns = 0;
    int64_t overlap_ns = 0;
    for (int64_t t = 0; t < kEnd; ++t) {
      compute_ns += busy[0][t];
      communication_ns += busy[1][t];
      overlap_ns += busy[0][t] && busy[1][t];
    }
    const ChakraReport report = Inspect({nodes});
    ASSERT_EQ(report.ranks_size(), 1);
    EXPECT_EQ(report.ranks(0).compute_ns(), compute_ns);
    EXPECT_EQ(report.ranks(0).communication_ns(), communication_ns);
    EXPECT_EQ(report.ranks(0).overlap_ns(), overlap_ns);
  }
}

TEST(EtSummaryTest, WithoutStartTimesNobodyKnowsTheOverlap) {
  std::vector<std::vector<Node>> ranks = TrainingStep();
  for (std::vector<Node>& nodes : ranks) {
    for (Node& node : nodes) node.clear_start_time_micros();
  }
  const ChakraReport report = Inspect(ranks);
  EXPECT_FALSE(report.ranks(0).has_first_start_ns());
  EXPECT_FALSE(report.ranks(0).has_overlap_ns());
}

TEST(EtSummaryTest, ProblemsAreReportedBesideTheStatistics) {
  std::vector<std::vector<Node>> ranks = TrainingStep();
  ranks[0][0].add_ctrl_deps(1000);
  const ChakraReport report = Inspect(ranks);
  EXPECT_EQ(report.nodes(), 14);
  EXPECT_EQ(report.errors(), 1);
  ASSERT_EQ(report.problems_size(), 1);
  EXPECT_EQ(report.problems(0).rule(), "dangling_dependency");
  EXPECT_EQ(report.problems(0).severity(), "error");
  EXPECT_EQ(report.problems(0).rank(), 0);
  EXPECT_EQ(report.problems(0).node(), 1);
  EXPECT_THAT(report.problem_counts(), UnorderedElementsAre(Pair("dangling_dependency", 1)));
  EXPECT_EQ(FormatChakraProblems(report),
            "error dangling_dependency: 1\n"
            "  rank 0: offset 8: node 1 depends on 1000, which no node has as id\n"
            "1 errors, 0 warnings\n");
}

TEST(EtSummaryTest, ShowsAFewOfManyProblems) {
  std::vector<Node> nodes;
  for (uint64_t id = 1; id <= 9; ++id) nodes.push_back(CompNode(id, 1, {100}));
  nodes.push_back(CompNode(10, 1, {10}));
  const std::string text = FormatChakraProblems(Inspect({nodes}));
  EXPECT_THAT(text, AllOf(HasSubstr("error dangling_dependency: 9\n  rank 0: offset 8: node 1"),
                          HasSubstr("node 5 depends on 100, which no node has as id\n  ...\n"),
                          HasSubstr("error cycle: 1\n  rank 0 node 10 (n10) waits for rank 0 node "
                                    "10 (n10)\n10 errors")));
}

TEST(EtSummaryTest, WithoutAGraphThereAreProblemsOnly) {
  const ChakraReport report = Inspect({{CompNode(1, 1), CompNode(1, 1)}});
  EXPECT_EQ(report.nodes(), 0);
  EXPECT_THAT(report.problem_counts(),
              UnorderedElementsAre(Pair("duplicate_id", 1), Pair("no_graph", 1)));
}

TEST(EtSummaryTest, ACycleIsCounted) {
  const ChakraReport report = Inspect({{CompNode(1, 1, {2}), CompNode(2, 1, {1})}});
  EXPECT_EQ(report.nodes(), 2);
  EXPECT_THAT(report.problem_counts(), UnorderedElementsAre(Pair("cycle", 1)));
}

TEST(EtSummaryTest, HugeNumbersSaturate) {
  std::vector<Node> nodes;
  for (uint64_t id = 1; id <= 4; ++id) {
    nodes.push_back(CollectiveNode(id, ChakraProtoMsg::ALL_REDUCE, int64_t{1} << 62));
    SetIntAttribute(kDurationNsAttribute, int64_t{1} << 61, nodes.back().mutable_attr());
  }
  const ChakraReport report = Inspect({nodes});
  EXPECT_EQ(report.communication(0).bytes(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(report.communication(0).duration_ns(), std::numeric_limits<int64_t>::max());
}

TEST(EtSummaryTest, GapsAreNoComputation) {
  std::vector<Node> nodes = {CompNode(1, 1), CompNode(2, 3, {1})};
  nodes[0].set_start_time_micros(1);
  nodes[1].set_start_time_micros(2);
  nodes[1].set_name("host_gap");
  EXPECT_EQ(Inspect({nodes}).ranks(0).compute_ns(), 1000);
}

TEST(EtSummaryTest, FormatsForPeople) {
  const std::string text = FormatChakraStats(Inspect(TrainingStep()));
  EXPECT_THAT(
      text, AllOf(HasSubstr("rank  nodes  edges  roots  span ms  compute ms  comm ms  overlap ms"),
                  HasSubstr("   0      7      8      1    0.355       0.240    0.155       0.060"),
                  HasSubstr("COMM_COLL_NODE      6"), HasSubstr("data         16"),
                  HasSubstr("ALL_REDUCE     all    0,1        6  50,331,648  0.300")));
  EXPECT_EQ(FormatChakraProblems(Inspect(TrainingStep())), "no problems\n");
}

TEST(EtSummaryTest, NoBytesMakeItCrash) {
  const TemporaryDirectory directory;
  const std::string bytes = EncodeEt(TrainingStep()[0]);
  std::mt19937_64 random(1);
  int reports = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string path = directory.Write("w.0.et", Damage(bytes, random));
    EtFiles files;
    files.files.push_back({0, path});
    const absl::StatusOr<ChakraReport> report = SummarizeEtFiles(FileSystem::Posix(), files);
    if (report.ok()) {
      ++reports;
      EXPECT_NE(FormatChakraStats(*report) + FormatChakraProblems(*report), "");
    } else {
      EXPECT_THAT(std::string(report.status().message()), HasSubstr("w.0.et: offset "));
    }
  }
  EXPECT_GT(reports, 50);
}

}  // namespace
}  // namespace meridian
