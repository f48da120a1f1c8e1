#include "chakra_export/generate/micro_benchmark.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/generate/testing/workload_check.h"
#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

MicroBenchmarkOptions Options(const std::string& pattern, int64_t ranks) {
  MicroBenchmarkOptions options;
  options.pattern = pattern;
  options.ranks = ranks;
  options.bytes = {1 << 20};
  return options;
}

ExecutionGraph GraphOf(const MicroBenchmarkOptions& options) {
  const auto workload = MakeMicroBenchmark(options);
  EXPECT_OK(workload.status());
  absl::StatusOr<ExecutionGraph> graph = BuildWorkloadGraph(**workload);
  EXPECT_OK(graph.status());
  return *std::move(graph);
}

// Node by node "id name what after", e.g. "2 p2p-pair.1MiB send 0->1 tag 0 after 1".
std::vector<std::string> Describe(const ExecutionGraph& graph, int64_t rank) {
  std::vector<std::string> lines;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) != rank) continue;
    std::string line = absl::StrCat(graph.id(node), " ", graph.name(node));
    const Communication* communication = graph.communication(node);
    if (graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
      const ProcessGroup& group = graph.groups()[communication->group];
      absl::StrAppend(&line, " group '", group.name, "' of ", group.ranks.size());
    } else if (communication != nullptr) {
      const bool sends = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
      absl::StrAppend(&line, sends ? " send " : " receive ", communication->source, "->",
                      communication->target, " tag ", communication->tag);
    }
    for (const NodeIndex source : graph.dependencies(node)) {
      absl::StrAppend(&line, " after ", graph.id(source));
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(MicroBenchmarkTest, CollectivesFollowEachOther) {
  MicroBenchmarkOptions options = Options("all-gather", 4);
  options.bytes = {4096, 1000};
  options.repeats = 2;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(Describe(graph, 3), ElementsAre("1 all-gather.4KiB group '' of 4",
                                              "2 all-gather.4KiB group '' of 4 after 1",
                                              "3 all-gather.1000B group '' of 4 after 2",
                                              "4 all-gather.1000B group '' of 4 after 3"));
  EXPECT_EQ(graph.communication(0)->type, ChakraProtoMsg::ALL_GATHER);
  EXPECT_EQ(graph.communication(0)->bytes, 4096);
}

TEST(MicroBenchmarkTest, GroupsAreOfRanksNextToEachOther) {
  MicroBenchmarkOptions options = Options("all-reduce", 6);
  options.group_size = 3;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(Describe(graph, 2), ElementsAre("1 all-reduce.1MiB group '1' of 3"));
  EXPECT_THAT(Describe(graph, 3), ElementsAre("1 all-reduce.1MiB group '2' of 3"));
  ASSERT_EQ(graph.groups().size(), 2u);
  EXPECT_THAT(graph.groups()[1].ranks, ElementsAre(3, 4, 5));
}

TEST(MicroBenchmarkTest, ComputesBeforeEachCommunication) {
  MicroBenchmarkOptions options = Options("reduce-scatter", 2);
  options.repeats = 2;
  options.compute_us = 5;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(Describe(graph, 1),
              ElementsAre("1 compute", "2 reduce-scatter.1MiB group '' of 2 after 1",
                          "3 compute after 2", "4 reduce-scatter.1MiB group '' of 2 after 3"));
  EXPECT_EQ(graph.duration_ns(0), 5000);
}

TEST(MicroBenchmarkTest, ARingSendsToTheNextAndReceivesFromThePrevious) {
  MicroBenchmarkOptions options = Options("p2p-ring", 6);
  options.group_size = 3;
  options.repeats = 2;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(Describe(graph, 5),
              ElementsAre("1 p2p-ring.1MiB send 5->3 tag 0", "2 p2p-ring.1MiB receive 4->5 tag 0",
                          "3 p2p-ring.1MiB send 5->3 tag 1 after 1 after 2",
                          "4 p2p-ring.1MiB receive 4->5 tag 1 after 1 after 2"));
}

TEST(MicroBenchmarkTest, PairsSendOneWayAndPingPongsBack) {
  const ExecutionGraph pair = GraphOf(Options("p2p-pair", 4));
  EXPECT_THAT(Describe(pair, 2), ElementsAre("1 p2p-pair.1MiB send 2->3 tag 0"));
  EXPECT_THAT(Describe(pair, 3), ElementsAre("1 p2p-pair.1MiB receive 2->3 tag 0"));
  const ExecutionGraph ping_pong = GraphOf(Options("p2p-ping-pong", 4));
  EXPECT_THAT(Describe(ping_pong, 2),
              ElementsAre("1 p2p-ping-pong.1MiB send 2->3 tag 0",
                          "2 p2p-ping-pong.1MiB receive 3->2 tag 1 after 1"));
  EXPECT_THAT(Describe(ping_pong, 3), ElementsAre("1 p2p-ping-pong.1MiB receive 2->3 tag 0",
                                                  "2 p2p-ping-pong.1MiB send 3->2 tag 1 after 1"));
}

TEST(MicroBenchmarkTest, AllSendToTheFirstAtOnce) {
  const ExecutionGraph graph = GraphOf(Options("p2p-incast", 3));
  EXPECT_THAT(Describe(graph, 0), ElementsAre("1 p2p-incast.1MiB receive 1->0 tag 0",
                                              "2 p2p-incast.1MiB receive 2->0 tag 0"));
  EXPECT_THAT(Describe(graph, 2), ElementsAre("1 p2p-incast.1MiB send 2->0 tag 0"));
}

TEST(MicroBenchmarkTest, EdgesOfAnIncastGrowWithItsMessages) {
  MicroBenchmarkOptions options = Options("p2p-incast", 101);
  options.repeats = 3;
  const ExecutionGraph graph = GraphOf(options);
  // The first rank receives 100 messages a round, and between two rounds it joins them.
  EXPECT_EQ(graph.node_count(), 100 * 3 * 2 + 2);
  size_t edges = 0;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    edges += graph.dependencies(node).size();
  }
  EXPECT_EQ(edges, 100 * 2 * 2 + 100 * 2);
}

// Returns who gets messages of a rank, and how many bytes of each.
std::map<int64_t, int64_t> SentBytes(const ExecutionGraph& graph, int64_t rank) {
  std::map<int64_t, int64_t> sent;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) != rank || graph.type(node) != ChakraProtoMsg::COMM_SEND_NODE) continue;
    sent[graph.communication(node)->target] += graph.communication(node)->bytes;
  }
  return sent;
}

TEST(MicroBenchmarkTest, HalosGoToAllNeighboursInTheGrid) {
  MicroBenchmarkOptions options = Options("halo-1d", 6);
  options.bytes = {4096};
  ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(SentBytes(graph, 0), ElementsAre(Pair(1, 4096)));
  EXPECT_THAT(SentBytes(graph, 3), ElementsAre(Pair(2, 4096), Pair(4, 4096)));
  //   0 1 2
  //   3 4 5
  options.pattern = "halo-2d";
  graph = GraphOf(options);
  EXPECT_THAT(SentBytes(graph, 1), ElementsAre(Pair(0, 4096), Pair(2, 4096), Pair(4, 4096)));
  EXPECT_THAT(
      Describe(graph, 5),
      ElementsAre("1 halo-2d.4KiB send 5->4 tag 0", "2 halo-2d.4KiB send 5->2 tag 0 after 1",
                  "3 halo-2d.4KiB receive 4->5 tag 0", "4 halo-2d.4KiB receive 2->5 tag 0"));
  options.grid = {2, 3};
  EXPECT_THAT(SentBytes(GraphOf(options), 1), ElementsAre(Pair(0, 4096), Pair(3, 4096)));
  // The second of two groups of 3 x 3 x 3; its middle has six neighbours.
  options = Options("halo-3d", 54);
  options.group_size = 27;
  EXPECT_THAT(SentBytes(GraphOf(options), 27 + 13),
              ElementsAre(Pair(27 + 4, 1 << 20), Pair(27 + 10, 1 << 20), Pair(27 + 12, 1 << 20),
                          Pair(27 + 14, 1 << 20), Pair(27 + 16, 1 << 20), Pair(27 + 22, 1 << 20)));
}

TEST(MicroBenchmarkTest, SweepsComputeBetweenReceivingAndSending) {
  MicroBenchmarkOptions options = Options("sweep3d", 4);
  options.blocks = 1;
  options.compute_us = 5;
  std::vector<std::string> lines = Describe(GraphOf(options), 1);
  // Rank 1 of 2 x 2: behind rank 0 from the first corner, ahead of it from the second.
  lines.resize(7);
  EXPECT_THAT(lines, ElementsAre("1 sweep3d.1MiB receive 0->1 tag 0", "2 compute after 1",
                                 "3 sweep3d.1MiB send 1->3 tag 0 after 2", "4 compute after 3",
                                 "5 sweep3d.1MiB send 1->0 tag 1 after 4",
                                 "6 sweep3d.1MiB send 1->3 tag 1 after 5",
                                 "7 sweep3d.1MiB receive 3->1 tag 2 after 6"));
  // Each of the eight octants passes every edge of the grid once with each of three blocks.
  options.grid = {4, 1};
  options.blocks = 3;
  const ExecutionGraph graph = GraphOf(options);
  EXPECT_THAT(SentBytes(graph, 1), ElementsAre(Pair(0, 12 << 20), Pair(2, 12 << 20)));
  EXPECT_THAT(SentBytes(graph, 3), ElementsAre(Pair(2, 12 << 20)));
}

TEST(MicroBenchmarkTest, LuSweepsThereAndBackAndExchangesPlanes) {
  MicroBenchmarkOptions options = Options("lu", 6);
  options.bytes = {1000};
  options.blocks = 10;
  const ExecutionGraph graph = GraphOf(options);
  // A sweep of ten blocks either way, then a halo of all ten, two deep.
  EXPECT_THAT(SentBytes(graph, 0), ElementsAre(Pair(1, 30000), Pair(3, 30000)));
  EXPECT_THAT(SentBytes(graph, 4), ElementsAre(Pair(1, 30000), Pair(3, 30000), Pair(5, 30000)));
}

// It would take less than a nanosecond at time 0, which aborts ASTRA-sim.
TEST(MicroBenchmarkTest, SmallMessagesDoNotStartAtTimeZero) {
  MicroBenchmarkOptions options = Options("p2p-pair", 2);
  options.bytes = {1023};
  EXPECT_THAT(Describe(GraphOf(options), 0),
              ElementsAre("1 start", "2 p2p-pair.1023B send 0->1 tag 0 after 1"));
}

TEST(MicroBenchmarkTest, EveryPatternPassesEveryRuleAndHasAsManyNodesAsItSays) {
  for (const std::string& name : MicroPatternNames()) {
    for (const bool has_groups : {false, true}) {
      for (const int64_t compute_us : {0, 2}) {
        MicroBenchmarkOptions options = Options(name, 8);
        const bool in_pairs = name == "p2p-pair" || name == "p2p-ping-pong";
        if (has_groups) options.group_size = in_pairs ? 2 : 4;
        options.bytes = {64, 4096};
        options.repeats = 3;
        options.compute_us = compute_us;
        const auto workload = MakeMicroBenchmark(options);
        ASSERT_OK(workload.status());
        ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, BuildWorkloadGraph(**workload));
        EXPECT_EQ((*workload)->rank_count(), 8);
        EXPECT_THAT(ProblemsOf(**workload), IsOkAndHolds(IsEmpty())) << name;
      }
    }
  }
}

void ExpectRefused(const MicroBenchmarkOptions& options, const std::string& message) {
  EXPECT_THAT(MakeMicroBenchmark(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(MicroBenchmarkTest, RefusesBadSizes) {
  const MicroBenchmarkOptions good = Options("all-reduce", 4);
  MicroBenchmarkOptions options = good;
  options.ranks = 1;
  ExpectRefused(options, "--ranks=1: expected 2 to 16384");
  options.ranks = 16385;
  ExpectRefused(options, "--ranks=16385: expected 2 to 16384");
  options = good;
  options.group_size = 3;
  ExpectRefused(options, "--ranks=4 does not divide by --group_size=3; 3 or 6 would");
  options.group_size = 1;
  ExpectRefused(options, "--group_size=1: expected 2 to 4");
  options.group_size = 8;
  ExpectRefused(options, "--group_size=8: expected 2 to 4");
  options = good;
  options.repeats = 0;
  ExpectRefused(options, "--repeats=0");
  options = good;
  options.bytes = {};
  ExpectRefused(options, "--bytes names no size");
  options.bytes = {4096, 0};
  ExpectRefused(options, "--bytes=0");
  options = good;
  options.compute_us = -1;
  ExpectRefused(options, "--compute_us=-1");
  options = good;
  options.tflops = -1;
  ExpectRefused(options, "--tflops=-1");
}

TEST(MicroBenchmarkTest, RefusesWhatThePatternCannotDo) {
  MicroBenchmarkOptions options = Options("p2p-pair", 5);
  ExpectRefused(options, "--ranks=5 does not divide by --group_size=2; 4 or 6 would");
  options.ranks = 8;
  options.group_size = 4;
  ExpectRefused(options, "--group_size=4: expected 2 to 2");
  options = Options("all-gather", 2);
  options.bytes = {63};
  ExpectRefused(options, "63 bytes per rank; at least 64");
}

TEST(MicroBenchmarkTest, RefusesGridsOfOtherRanks) {
  MicroBenchmarkOptions options = Options("halo-2d", 12);
  options.grid = {4, 4};
  ExpectRefused(options,
                "--grid=4x4: expected 2 lengths whose product is the 12 ranks of a group, "
                "e.g. 4x3");
  options.grid = {12};
  ExpectRefused(options, "--grid=12: expected 2 lengths");
  options.grid = {0, 12};
  ExpectRefused(options, "--grid=0: expected 1 to 12");
  options = Options("all-reduce", 12);
  options.grid = {12};
  ExpectRefused(options, "--grid means nothing with --pattern=all-reduce");
  options = Options("lu", 12);
  options.blocks = 2049;
  ExpectRefused(options, "--blocks=2049: expected 1 to 2048");
}

TEST(MicroBenchmarkTest, RefusesWhatIsTooLarge) {
  MicroBenchmarkOptions options = Options("all-reduce", 1024);
  options.group_size = 2;
  ExpectRefused(options, "512 process groups");
  // Messages need none.
  options.pattern = "p2p-pair";
  EXPECT_THAT(MakeMicroBenchmark(options), IsOk());
  options = Options("all-reduce", 16384);
  options.repeats = 50000000;
  ExpectRefused(options, "819,200,000,000 nodes");
  options = Options("all-reduce", 2);
  options.compute_us = 60000000;
  options.tflops = 1e5;
  EXPECT_THAT(MakeMicroBenchmark(options), IsOk());
}

TEST(MicroBenchmarkTest, NamesOfPatterns) {
  EXPECT_THAT(MicroPatternNames(),
              ElementsAre("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "p2p-ring",
                          "p2p-pair", "p2p-ping-pong", "p2p-incast", "halo-1d", "halo-2d",
                          "halo-3d", "sweep3d", "lu"));
}

}  // namespace
}  // namespace meridian
