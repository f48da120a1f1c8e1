#include "chakra_export/run/run_passes.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunNode Node(int64_t rank, int64_t stream, int64_t start_ns) {
  RunNode node;
  node.name = "kernel";
  node.resource = {rank, ResourceKind::kStream, stream};
  node.start_ns = start_ns;
  node.end_ns = start_ns + 10;
  node.duration_ns = 10;
  return node;
}

// The last of its members starts at instance_start_ns.
RunNode Collective(int64_t rank, int64_t stream, int64_t start_ns, uint32_t instance,
                   int64_t instance_start_ns) {
  RunNode node = Node(rank, stream, start_ns);
  node.name = "all-reduce";
  node.type = ChakraProtoMsg::COMM_COLL_NODE;
  node.communication = std::make_shared<Communication>();
  node.instance = instance;
  node.instance_start_ns = instance_start_ns;
  return node;
}

RunNode Message(ChakraProtoMsg::NodeType type, int64_t rank, int64_t start_ns, uint32_t instance) {
  RunNode node = Node(rank, 0, start_ns);
  node.type = type;
  node.communication = std::make_shared<Communication>();
  node.instance = instance;
  return node;
}

TEST(GlobalOrderTest, ConcurrentCollectivesHaveOneOrderOnAllRanks) {
  // Rank 0 begins a first, rank 1 begins b first; b had all its members earlier.
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Collective(0, 0, 100, 7, 500), Collective(0, 1, 200, 8, 200),
                 Collective(1, 1, 150, 8, 200), Collective(1, 0, 500, 7, 500)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  AddCommunicationOrder(order, &graph);
  ASSERT_EQ(graph.edges.size(), 2);
  EXPECT_EQ(graph.edges[0].node, 0);
  EXPECT_EQ(graph.edges[0].source, 1);
  EXPECT_TRUE(graph.edges[0].kinds == EdgeKind::kControl);
  EXPECT_EQ(graph.edges[1].node, 3);
  EXPECT_EQ(graph.edges[1].source, 2);
}

TEST(GlobalOrderTest, RanksThatContradictEachOtherAreAnErrorThatNamesTheInstance) {
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Collective(0, 0, 100, 7, 200), Collective(0, 0, 200, 8, 200),
                 Collective(1, 0, 100, 8, 200), Collective(1, 0, 200, 7, 200)};
  graph.edges = {{1, 0, EdgeKind::kStream}, {3, 2, EdgeKind::kStream}};
  EXPECT_THAT(GlobalOrder(graph), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           AllOf(HasSubstr("all-reduce at 200 ns of ranks 0, 1"),
                                                 HasSubstr("different orders"))));
}

TEST(GlobalOrderTest, ReceivesComeAfterTheirSendsAndNeedNoSlot) {
  // A ring of two: both ranks send and receive in one kernel.
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Message(ChakraProtoMsg::COMM_RECV_NODE, 0, 10, 1),
                 Message(ChakraProtoMsg::COMM_SEND_NODE, 0, 10, 2),
                 Message(ChakraProtoMsg::COMM_SEND_NODE, 1, 30, 1),
                 Message(ChakraProtoMsg::COMM_RECV_NODE, 1, 30, 2)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  AddCommunicationOrder(order, &graph);
  EXPECT_TRUE(graph.edges.empty());
}

// Rank 1's clock is 1000 ns ahead: by its own, its collective came before its computation.
TEST(GlobalOrderTest, WhereRanksHaveClocksOfTheirOwnTimesCountFromTheirBegins) {
  RunGraph graph;
  graph.rank_count = 2;
  graph.has_one_clock = false;
  graph.nodes = {Node(0, 1, 0),    Collective(0, 0, 100, 7, 1100),  Node(0, 1, 500),
                 Node(1, 1, 1000), Collective(1, 0, 1100, 7, 1100), Node(1, 1, 1500)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(0, 3, 1, 4, 2, 5));
}

// A run of three ranks: on every rank computation on two streams, collectives of all on a third,
// messages in a ring and a host's calls. Times are coarse, so that many are equal; with `overlaps`
// work may begin before what it waits for.
RunGraph RandomRun(bool overlaps, std::mt19937* random) {
  const auto pick = [random](int64_t count) {
    return std::uniform_int_distribution<int64_t>(0, count - 1)(*random);
  };
  constexpr int64_t kRanks = 3;
  RunGraph graph;
  graph.rank_count = kRanks;
  // By rank.
  std::vector<std::vector<RunNode>> devices(kRanks);
  int64_t now_ns = 0;
  for (uint32_t round = 0; round < 6; ++round) {
    std::vector<int64_t> starts_ns;
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      for (int64_t i = pick(3); i > 0; --i) {
        devices[rank].push_back(Node(rank, pick(2), now_ns + 10 * pick(5)));
      }
      starts_ns.push_back(now_ns + 10 * pick(6));
    }
    const int64_t last_ns = *std::max_element(starts_ns.begin(), starts_ns.end());
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      if (round % 2 == 0) {
        devices[rank].push_back(Collective(rank, 2, starts_ns[rank], round, last_ns));
      } else {
        const auto from = static_cast<uint32_t>((rank + kRanks - 1) % kRanks);
        devices[rank].push_back(Message(ChakraProtoMsg::COMM_SEND_NODE, rank, starts_ns[rank],
                                        100 * round + static_cast<uint32_t>(rank)));
        devices[rank].push_back(
            Message(ChakraProtoMsg::COMM_RECV_NODE, rank, starts_ns[rank], 100 * round + from));
      }
    }
    now_ns = last_ns + (overlaps ? -20 : 10 * pick(2));
  }
  std::vector<RunNode> hosts;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    std::stable_sort(devices[rank].begin(), devices[rank].end(),
                     [](const RunNode& a, const RunNode& b) { return a.start_ns < b.start_ns; });
    for (RunNode& node : devices[rank]) {
      node.kernel = static_cast<uint32_t>(graph.nodes.size());
      graph.nodes.push_back(node);
      if (pick(2) == 0) continue;
      hosts.push_back(Node(rank, 9, node.start_ns));
      hosts.back().resource.kind = ResourceKind::kHostThread;
    }
  }
  graph.nodes.insert(graph.nodes.end(), hosts.begin(), hosts.end());
  const auto time_ns = [&](NodeIndex node) {
    const RunNode& work = graph.nodes[node];
    return work.instance_start_ns == 0 || overlaps ? work.start_ns : work.instance_start_ns;
  };
  for (NodeIndex node = 0; node < graph.nodes.size(); ++node) {
    for (NodeIndex source = 0; source < graph.nodes.size(); ++source) {
      const bool is_before =
          source < node ? time_ns(source) <= time_ns(node) : time_ns(source) < time_ns(node);
      if (graph.nodes[source].resource.rank == graph.nodes[node].resource.rank && is_before &&
          pick(4) == 0) {
        graph.edges.push_back({node, source, EdgeKind::kData});
      }
    }
  }
  return graph;
}

// Returns the graph of one rank, and which nodes of the run it has.
std::pair<RunGraph, std::vector<NodeIndex>> OneRank(const RunGraph& run, int64_t rank) {
  RunGraph graph;
  graph.rank_count = run.rank_count;
  std::vector<NodeIndex> nodes;
  std::map<NodeIndex, NodeIndex> places;
  for (NodeIndex node = 0; node < run.nodes.size(); ++node) {
    if (run.nodes[node].resource.rank != rank) continue;
    places[node] = static_cast<NodeIndex>(nodes.size());
    nodes.push_back(node);
    graph.nodes.push_back(run.nodes[node]);
  }
  for (const DependencyEdge& edge : run.edges) {
    if (places.count(edge.node) == 0) continue;
    graph.edges.push_back({places[edge.node], places[edge.source], edge.kinds});
  }
  return {graph, nodes};
}

TEST(GlobalOrderTest, OneRankWithAnOutlineOfTheOthersHasTheOrderOfAllOrSaysThatItCannotTell) {
  std::mt19937 random(1);
  int told = 0, refused = 0;
  for (int round = 0; round < 600; ++round) {
    const RunGraph run = RandomRun(/*overlaps=*/round % 3 == 0, &random);
    const absl::StatusOr<std::vector<NodeIndex>> whole = GlobalOrder(run);
    RunOutline outline;
    std::vector<std::pair<RunGraph, std::vector<NodeIndex>>> ranks;
    for (int64_t rank = 0; rank < run.rank_count; ++rank) {
      ranks.push_back(OneRank(run, rank));
      outline.Add(ranks.back().first);
    }
    bool can_tell = true;
    std::vector<std::vector<NodeIndex>> orders;
    for (auto& [graph, nodes] : ranks) {
      graph.outline = &outline;
      const absl::StatusOr<std::vector<NodeIndex>> order = GlobalOrder(graph);
      can_tell &= order.ok();
      if (!can_tell) break;
      std::vector<NodeIndex>& in_run = orders.emplace_back();
      for (const NodeIndex node : *order) in_run.push_back(nodes[node]);
    }
    ++(can_tell ? told : refused);
    if (!can_tell) continue;
    ASSERT_OK(whole);
    for (int64_t rank = 0; rank < run.rank_count; ++rank) {
      std::vector<NodeIndex> expected;
      for (const NodeIndex node : *whole) {
        if (run.nodes[node].resource.rank == rank) expected.push_back(node);
      }
      EXPECT_EQ(orders[rank], expected) << "round " << round << ", rank " << rank;
    }
  }
  EXPECT_GT(told, 200);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace meridian
