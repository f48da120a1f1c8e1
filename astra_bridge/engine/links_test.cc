// Networks of links: what files may say, which ways messages take, and how they share them.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/links_config.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;

NetworkConfig Parse(const std::string& yaml) {
  absl::StatusOr<NetworkConfig> network = ParseNetworkConfig(yaml, "net.yml");
  EXPECT_OK(network.status());
  return network.ok() ? *network : NetworkConfig();
}

// A network in GB/s, so that a bandwidth of 1 is a byte per nanosecond.
NetworkConfig ParseGb(int npus, const std::string& links) {
  return Parse(absl::StrCat("topology: [ Links ]\nbandwidth_unit: GB\nnpus_count: [ ", npus,
                            " ]\nlinks: ", links, "\n"));
}

absl::Status ParseError(int npus, const std::string& links) {
  return ParseNetworkConfig(
             absl::StrCat("topology: [ Links ]\nnpus_count: [ ", npus, " ]\nlinks:\n", links),
             "net.yml")
      .status();
}

NetworkConfig Star(int npus) { return ParseGb(npus, "{ shape: star, bandwidth: 1, latency: 0 }"); }

// Two leaves of half of the NPUs each, and one link between them as fast as an NPU's.
NetworkConfig Tree(int npus) {
  return ParseGb(npus, absl::StrCat("{ shape: leaf_spine, leaf: ", npus / 2, ", oversubscription: ",
                                    npus / 2, ", bandwidth: 1, latency: 0 }"));
}

std::vector<int64_t> SendEnds(const NetworkConfig& network, const std::vector<WorkloadNode>& sends,
                              const std::vector<int32_t>& from) {
  Workload workload;
  workload.ranks.resize(network.npus());
  for (size_t i = 0; i < sends.size(); ++i) {
    workload.ranks[from[i]].Add(sends[i]);
    workload.ranks[sends[i].peer].Add(ReceiveNode(1000 + i, from[i], sends[i].bytes, sends[i].tag));
  }
  SimulationOptions options;
  options.node_times = true;
  options.comm_streams = 8;
  const absl::StatusOr<SimulationResult> result =
      Simulate(workload, network, SystemWith({"ring"}), options);
  EXPECT_OK(result.status());
  std::vector<int64_t> ends(sends.size(), -1);
  if (!result.ok()) return ends;
  for (const NodeTime& node : result->nodes) {
    if (node.id < 1000) ends[node.id] = node.finish_ns;
  }
  return ends;
}

int64_t SpanNs(const NetworkConfig& network, const Workload& workload,
               const std::vector<std::string>& algorithms, Congestion congestion) {
  SimulationOptions options;
  options.congestion = congestion;
  SystemConfig system = SystemWith(algorithms);
  const absl::StatusOr<SimulationResult> result = Simulate(workload, network, system, options);
  EXPECT_OK(result.status());
  return result.ok() ? result->makespan_ns() : -1;
}

int64_t CollectiveNs(const NetworkConfig& network, CollectiveKind op, int64_t bytes,
                     const std::string& algorithm) {
  return SpanNs(network, EveryRank(network.npus(), CollectiveNode(0, op, bytes)), {algorithm},
                Congestion::kAware);
}

TEST(FlowNetworkTest, AMessageAloneTakesWhatTheAnalyticalEngineSays) {
  for (const auto shape :
       {BlockShape::kSwitch, BlockShape::kRing, BlockShape::kFullyConnected, BlockShape::kMesh}) {
    const NetworkConfig network = Network({Dimension(shape, 6)});
    for (const int32_t to : {1, 3, 5}) {
      for (const int64_t bytes : {1, 1000, 1048576}) {
        Workload workload;
        workload.ranks.resize(6);
        workload.ranks[0].Add(SendNode(1, to, bytes));
        workload.ranks[to].Add(ReceiveNode(1, 0, bytes));
        EXPECT_EQ(SpanNs(network, workload, {"ring"}, Congestion::kFair),
                  SpanNs(network, workload, {"ring"}, Congestion::kUnaware));
      }
    }
  }
}

TEST(FlowNetworkTest, ARingOnAStarTakesWhatTheAnalyticalEngineSays) {
  for (const int32_t npus : {2, 4, 7, 16}) {
    const NetworkConfig network = Network({Dimension(BlockShape::kSwitch, npus)});
    for (const CollectiveKind op :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      const Workload workload = EveryRank(npus, CollectiveNode(0, op, 1 << 20));
      EXPECT_EQ(SpanNs(network, workload, {"ring"}, Congestion::kFair),
                SpanNs(network, workload, {"ring"}, Congestion::kUnaware));
    }
  }
}

TEST(FlowNetworkTest, TwoFlowsShareALinkUntilOneIsOver) {
  // Both go to 2: half of its link each until the small one is over at 2,000.
  EXPECT_THAT(SendEnds(Star(3), {SendNode(0, 2, 1000), SendNode(1, 2, 3000)}, {0, 1}),
              ElementsAre(2000, 4000));
  // One link has two directions.
  EXPECT_THAT(SendEnds(Star(2), {SendNode(0, 1, 1000), SendNode(1, 0, 3000)}, {0, 1}),
              ElementsAre(1000, 3000));
}

TEST(FlowNetworkTest, WhatAFlowCannotUseGoesToTheOthers) {
  const NetworkConfig network = ParseGb(3, R"(
    - { between: [ 0, s ], bandwidth: 10, latency: 5 }
    - { between: [ 1, s ], bandwidth: 10, latency: 5 }
    - { between: [ 2, s ], bandwidth: 4, latency: 7 })");
  // 6 bytes per ns to 1 and 4 to 2; when the first is over, the other still has 4.
  EXPECT_THAT(SendEnds(network, {SendNode(0, 1, 6000), SendNode(1, 2, 8000)}, {0, 0}),
              ElementsAre(1000 + 10, 2000 + 12));
}

TEST(FlowNetworkTest, RingsInRankOrderCrossAnUplinkOnceEachWay) {
  constexpr int64_t kBytes = 8 << 20;
  const int64_t star_ns = CollectiveNs(Star(8), CollectiveKind::kAllReduce, kBytes, "ring");
  // 14 steps of 1 MiB, each after the endpoint's delay, and one more at the end.
  EXPECT_EQ(star_ns, 14 * ((1 << 20) + 10) + 10);
  EXPECT_EQ(CollectiveNs(Tree(8), CollectiveKind::kAllReduce, kBytes, "ring"), star_ns);
}

TEST(FlowNetworkTest, RingsThatShareAnUplinkTakeTheirTurnsLonger) {
  for (const int32_t rings : {1, 2, 4}) {
    Workload workload;
    workload.ranks.resize(8);
    for (int32_t ring = 0; ring < rings; ++ring) {
      workload.groups[ring + 1] = {ring, ring + 4};
      for (const int32_t rank : {ring, ring + 4}) {
        workload.ranks[rank].Add(CollectiveNode(0, CollectiveKind::kAllReduce, 2 << 20, ring + 1));
      }
    }
    // Two steps of 1 MiB each way.
    EXPECT_EQ(SpanNs(Tree(8), workload, {"ring"}, Congestion::kAware),
              2 * (rings * (1 << 20) + 10) + 10);
    EXPECT_EQ(SpanNs(Star(8), workload, {"ring"}, Congestion::kAware), 2 * ((1 << 20) + 10) + 10);
  }
}

TEST(FlowNetworkTest, AllToAllFillsTheUplink) {
  // Messages of 1 MiB: 7 leave an NPU; 16 cross the uplink.
  constexpr int64_t kBytes = 8 << 20;
  EXPECT_EQ(CollectiveNs(Star(8), CollectiveKind::kAllToAll, kBytes, "direct"),
            7 * (1 << 20) + 2 * 10);
  EXPECT_EQ(CollectiveNs(Tree(8), CollectiveKind::kAllToAll, kBytes, "direct"),
            16 * (1 << 20) + 2 * 10);
}

TEST(FlowNetworkTest, HierarchicalCollectivesGoAlongTheDimensionsOfNpusCount) {
  const std::string links = "links: { shape: star, bandwidth: 1, latency: 0 }\n";
  const NetworkConfig network =
      Parse("topology: [ Links ]\nbandwidth_unit: GB\nnpus_count: [ 4, 2 ]\n" + links);
  const Workload workload = EveryRank(8, CollectiveNode(0, CollectiveKind::kAllReduce, 8 << 20));
  // 3 steps of 2 MiB, 2 of 1 MiB, 3 of 2 MiB.
  EXPECT_EQ(SpanNs(network, workload, {"ring", "ring"}, Congestion::kAware),
            14 * (1 << 20) + (8 + 3) * 10);
}

TEST(FlowNetworkTest, MessagesOfACollectiveFollowEachOther) {
  // Rank 1 comes late; what 0 has for it by then goes ahead of what comes after, on one connection.
  Workload workload = EveryRank(4, CollectiveNode(1, CollectiveKind::kAllReduce, 4 << 20));
  workload.ranks[1] = RankWorkload();
  workload.ranks[1].Add(ComputeNode(0, 50 << 20));
  workload.ranks[1].Add(CollectiveNode(1, CollectiveKind::kAllReduce, 4 << 20), {0});
  // From then on all that there is to do is six steps of 1 MiB.
  EXPECT_EQ(SpanNs(Star(4), workload, {"ring"}, Congestion::kAware),
            (50 << 20) + 6 * ((1 << 20) + 10) + 10);
}

TEST(FlowNetworkTest, TheShortCutTakesAsLong) {
  SystemConfig system = SystemWith({"ring"});
  system.preferred_dataset_splits = 3;
  for (const NetworkConfig& network :
       {Network({Dimension(BlockShape::kFullyConnected, 12)}),
        Network({Dimension(BlockShape::kFullyConnected, 4), Dimension(BlockShape::kRing, 3)}),
        Network({Dimension(BlockShape::kSwitch, 12)})}) {
    Workload workload;
    workload.ranks.resize(12);
    for (int32_t i = 0; i < 3; ++i)
      workload.groups[1 + i] = {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3};
    for (int32_t i = 0; i < 4; ++i) workload.groups[4 + i] = {i, i + 4, i + 8};
    for (int32_t rank = 0; rank < 12; ++rank) {
      RankWorkload& nodes = workload.ranks[rank];
      nodes.Add(CollectiveNode(1, CollectiveKind::kAllReduce, 3 << 20, 1 + rank / 4));
      nodes.Add(ComputeNode(2, rank < 4 ? 1000 : 1000000), {1});
      nodes.Add(CollectiveNode(3, CollectiveKind::kAllGather, 1 << 20, 4 + rank % 4), {2});
      nodes.Add(CollectiveNode(4, CollectiveKind::kReduceScatter, 1 << 20, 1 + rank / 4), {3});
    }
    SimulationOptions options;
    options.congestion = Congestion::kFair;
    ASSERT_OK_AND_ASSIGN(const SimulationResult quick,
                         Simulate(workload, network, system, options));
    options.events_only = true;
    ASSERT_OK_AND_ASSIGN(const SimulationResult slow, Simulate(workload, network, system, options));
    EXPECT_EQ(quick.finish_ns, slow.finish_ns);
  }
}

TEST(FlowNetworkTest, TimesBeyondWhatADoubleCountsStillEnd) {
  // The slowest links there are: the first message alone takes 2^52 ns, and three share one link.
  const NetworkConfig network = ParseGb(4, "{ shape: star, bandwidth: 0.0009765625, latency: 0 }");
  constexpr int64_t kBytes = int64_t{1} << 42;
  EXPECT_THAT(
      SendEnds(network, {SendNode(0, 3, kBytes), SendNode(1, 3, kBytes), SendNode(2, 3, kBytes)},
               {0, 1, 2}),
      ElementsAre(3 * (kBytes << 10), 3 * (kBytes << 10), 3 * (kBytes << 10)));
}

TEST(LinkPathsTest, TakesTheFewestLinks) {
  const NetworkConfig network = ParseGb(4, "{ shape: torus, sizes: [ 4 ], bandwidth: 1 }");
  LinkPaths paths(network);
  // Links are 0-1, 1-2, 2-3, 3-0.
  EXPECT_THAT(paths.Find(0, 1).links, ElementsAre(0));
  EXPECT_THAT(paths.Find(0, 3).links, ElementsAre(7));
  EXPECT_THAT(paths.Find(0, 2).links, SizeIs(2));
}

TEST(LinkPathsTest, DestinationsSpreadOverLinksThatLeadAsNear) {
  const NetworkConfig network =
      ParseGb(8, "{ shape: leaf_spine, leaf: 4, spines: 4, bandwidth: 1, latency: 1 }");
  LinkPaths paths(network);
  std::vector<int32_t> spines;
  for (int32_t to = 4; to < 8; ++to) {
    const LinkPath path = paths.Find(0, to);
    ASSERT_THAT(path.links, SizeIs(4));
    EXPECT_EQ(path.latency_ns, 4);
    spines.push_back(network.links[path.links[1] / 2].ends[1]);
  }
  EXPECT_THAT(spines, ElementsAre(10, 11, 12, 13));
}

TEST(LinksConfigTest, ShapesHaveTheirLinks) {
  EXPECT_THAT(Star(5).links, SizeIs(5));
  EXPECT_THAT(Tree(8).links, SizeIs(8 + 2));
  EXPECT_EQ(Tree(8).links.back().bytes_per_ns, 1);
  // 16 NPUs and 4 pods of 2 edges and 2 aggregations, 4 cores: 16 links between each two layers.
  const NetworkConfig fat_tree = ParseGb(16, "{ shape: fat_tree, ports: 4, bandwidth: 1 }");
  EXPECT_THAT(fat_tree.links, SizeIs(3 * 16));
  EXPECT_THAT(fat_tree.switches, SizeIs(8 + 8 + 4));
  EXPECT_THAT(ParseGb(24, "{ shape: torus, sizes: [ 2, 3, 4 ], bandwidth: 1 }").links,
              SizeIs(12 + 24 + 24));
  // 3 groups of 4 routers with 2 NPUs: 24 to NPUs, 6 within each group, 3 between them.
  const NetworkConfig dragonfly =
      ParseGb(24, "{ shape: dragonfly, routers: 4, hosts: 2, bandwidth: 1 }");
  EXPECT_THAT(dragonfly.links, SizeIs(24 + 3 * 6 + 3));
}

// Two groups of two rows of three routers, with four NPUs each; routers 0 and 1 of each group lead to the
// other.
TEST(LinksConfigTest, ADragonflyHasRowsColumnsAndLinksOfTheirOwn) {
  const NetworkConfig network = ParseGb(48, R"({ shape: dragonfly, routers: [ 3, 2 ], hosts: 4,
    bandwidth: 1, latency: 10, host_link: { bandwidth: 8, latency: 100 },
    column_link: { bandwidth: 3 }, group_link: { bandwidth: 2, latency: 50 }, group_links: 2 })");
  EXPECT_THAT(network.links, SizeIs(48 + 2 * (2 * 3 + 3) + 2));
  const auto alone = [&](int32_t to) {
    return SendEnds(network, {SendNode(0, to, 24000)}, {0})[0];
  };
  EXPECT_EQ(alone(1), 200 + 24000 / 8);
  EXPECT_EQ(alone(4), 210 + 24000);
  EXPECT_EQ(alone(12), 210 + 24000 / 3);
  EXPECT_EQ(alone(24), 250 + 24000 / 2);
  // To the last router of the other group through its row and its column.
  EXPECT_EQ(alone(44), 270 + 24000);
  EXPECT_THAT(ParseError(48, "  { shape: dragonfly, routers: [ 3 ], hosts: 4, bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("net.yml:4: ")));
  EXPECT_THAT(
      ParseError(48, "  { shape: dragonfly, routers: [ 16, 0 ], hosts: 4, bandwidth: 1 }\n"),
      StatusIs(kBad, AllOf(HasSubstr("net.yml:4: "),
                           HasSubstr("routers[1]: expected a whole number from 1 to 1048576"))));
  EXPECT_THAT(
      ParseError(48,
                 "  { shape: dragonfly, routers: 6, hosts: 4, bandwidth: 1, group_links: 7 }\n"),
      StatusIs(kBad, HasSubstr("expected group_links: 1 to 6, the routers of a group")));
}

TEST(LinksConfigTest, MultiplesStandForACalibratedLink) {
  NetworkConfig network = ParseGb(2, R"(
    - { between: [ 0, s ], bandwidth: 2x }
    - { between: [ 1, s ], bandwidth: 3, latency: 0.5x }
    - { between: [ 0, 1 ], bandwidth: 1x, latency: 9 })");
  EXPECT_THAT(CheckNetworkConfig(network), StatusIs(kBad, AllOf(HasSubstr("net.yml:5: bandwidth: "),
                                                                HasSubstr("--calibration"))));
  EXPECT_OK(ResolveLinks(Network({Dimension(BlockShape::kFullyConnected, 2, 50, 600)}), &network));
  EXPECT_OK(CheckNetworkConfig(network));
  EXPECT_EQ(network.links[0].bytes_per_ns, GibibytesPerSecondToBytesPerNs(100));
  EXPECT_EQ(network.links[0].latency_ns, 300);
  EXPECT_EQ(network.links[1].bytes_per_ns, 3);
  EXPECT_EQ(network.links[1].latency_ns, 150);
  EXPECT_EQ(network.links[2].latency_ns, 9);
}

TEST(LinksConfigTest, SaysWhereAFileIsWrong) {
  const std::string good = "- { between: [ 0, s ], bandwidth: 1 }\n";
  EXPECT_THAT(ParseError(2, good + "- { between: [ 1, t ], bandwidth: 1 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:4: links[0]"), HasSubstr("leads to s"))));
  EXPECT_THAT(ParseError(2, good + "- { between: [ 2, s ], bandwidth: 1 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:5: "), HasSubstr("no NPU 2"))));
  EXPECT_THAT(ParseError(2, good + "- { between: [ 1, s ], bandwidth: 0 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:5: "), HasSubstr("must be positive"))));
  EXPECT_THAT(ParseError(2, good + "- { between: [ 1, s ], bandwidth: -1x }\n"),
              StatusIs(kBad, HasSubstr("net.yml:5: ")));
  EXPECT_THAT(ParseError(2, good + "- { between: [ 1, 1 ], bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("net.yml:5: ")));
  EXPECT_THAT(ParseError(3, good + "- { between: [ 1, s ], bandwidth: 1 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:4: "), HasSubstr("no link reaches NPU 2"))));
  EXPECT_THAT(ParseError(2, "- { between: [ 1, s ] }\n"), StatusIs(kBad, HasSubstr("net.yml:4: ")));
  EXPECT_THAT(ParseError(2, "- { between: [ 1, s ], bandwidth: 1, speed: 3 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:4: "), HasSubstr("speed"))));
  EXPECT_THAT(ParseError(2, "  { shape: cube, bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("leaf_spine")));
  EXPECT_THAT(ParseError(2, "  { shape: torus, sizes: [ 3 ], bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("product")));
  EXPECT_THAT(ParseError(2, "  { shape: torus, sizes: [ 2, 1 ], bandwidth: 1 }\n"),
              StatusIs(kBad, AllOf(HasSubstr("net.yml:4: "),
                                   HasSubstr("sizes[1]: expected a whole number from 2 to"))));
  EXPECT_THAT(ParseError(5, "  { shape: fat_tree, ports: 3, bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("even")));
  EXPECT_THAT(ParseError(4, "  { shape: leaf_spine, leaf: 2, spine: 2, bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("spine")));
  EXPECT_THAT(
      ParseError(1000000, "  { shape: leaf_spine, leaf: 1, spines: 1000000, bandwidth: 1 }\n"),
      StatusIs(kBad, HasSubstr("more than")));
  EXPECT_THAT(ParseError(1000000, "  { shape: dragonfly, routers: 2, hosts: 1, bandwidth: 1 }\n"),
              StatusIs(kBad, HasSubstr("more than")));
}

}  // namespace
}  // namespace meridian
