#include "astra_bridge/prediction/edge_domains.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommEdge AllReduce(std::vector<int32_t> participants) {
  return Edge(CollectiveKind::kAllReduce, 1 << 20, std::move(participants));
}

bool Meet(const EdgeDomains& domains, size_t a, size_t b) {
  for (const uint32_t domain : domains.Of(a)) {
    for (const uint32_t other : domains.Of(b)) {
      if (domain == other) return true;
    }
  }
  return false;
}

bool MeetOn(std::vector<NetworkDimension> dimensions, std::vector<int32_t> a,
            std::vector<int32_t> b) {
  const std::vector<CommEdge> edges = {AllReduce(std::move(a)), AllReduce(std::move(b))};
  const FabricSet fabrics = FabricSet::ForAllEdges(FabricOf(std::move(dimensions)));
  const absl::StatusOr<EdgeDomains> domains =
      EdgeDomains::Find(edges, TrafficPartition::kLinkDomain, fabrics);
  EXPECT_OK(domains.status());
  return Meet(*domains, 0, 1);
}

TEST(EdgeDomainsTest, NamesAreThoseOfTheFlag) {
  std::vector<absl::string_view> names;
  for (const auto& [name, partition] : TrafficPartitionNames()) {
    EXPECT_EQ(TrafficPartitionName(partition), name);
    names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("none", "fabric", "kind", "link_domain"));
}

TEST(EdgeDomainsTest, OneRingIsOneDomain) {
  EXPECT_TRUE(MeetOn({Dimension(BlockShape::kRing, 8)}, {0, 1}, {4, 5}));
  EXPECT_TRUE(MeetOn({Dimension(BlockShape::kMesh, 8)}, {0, 1}, {4, 5}));
}

TEST(EdgeDomainsTest, SwitchesAndFullMeshesKeepDisjointGroupsApart) {
  for (const BlockShape shape : {BlockShape::kSwitch, BlockShape::kFullyConnected}) {
    EXPECT_FALSE(MeetOn({Dimension(shape, 8)}, {0, 1}, {4, 5}));
    EXPECT_TRUE(MeetOn({Dimension(shape, 8)}, {0, 4}, {4, 5}));
  }
}

TEST(EdgeDomainsTest, RowsAndColumnsOfATorusHaveLinksOfTheirOwn) {
  const std::vector<NetworkDimension> torus = {Dimension(BlockShape::kRing, 4),
                                               Dimension(BlockShape::kRing, 2)};
  EXPECT_FALSE(MeetOn(torus, {0, 1}, {4, 5}));
  EXPECT_FALSE(MeetOn(torus, {0, 1}, {1, 5}));
  EXPECT_TRUE(MeetOn(torus, {0, 1}, {2, 3}));
  // From 0 to 5 by way of 1: row 0, column 1.
  EXPECT_TRUE(MeetOn(torus, {0, 5}, {1, 5}));
  EXPECT_TRUE(MeetOn(torus, {0, 5}, {2, 3}));
  EXPECT_FALSE(MeetOn(torus, {0, 5}, {2, 6}));
}

TEST(EdgeDomainsTest, FabricsAreKnownByContentOfTheKey) {
  std::map<std::string, Fabric> by_key;
  by_key.emplace("default", FabricOf({Dimension(BlockShape::kRing, 4)}));
  by_key.emplace("pod", FabricOf({Dimension(BlockShape::kRing, 4)}));
  const FabricSet fabrics(std::move(by_key));
  std::vector<CommEdge> edges(3, AllReduce({0, 1}));
  edges[1].topology_key = "default";
  edges[2].topology_key = "pod";
  for (const TrafficPartition partition :
       {TrafficPartition::kFabric, TrafficPartition::kLinkDomain}) {
    ASSERT_OK_AND_ASSIGN(const EdgeDomains domains, EdgeDomains::Find(edges, partition, fabrics));
    EXPECT_TRUE(Meet(domains, 0, 1));
    EXPECT_FALSE(Meet(domains, 0, 2));
  }
  edges[2].topology_key = "elsewhere";
  edges[2].id = "e2";
  EXPECT_THAT(EdgeDomains::Find(edges, TrafficPartition::kFabric, fabrics),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("edge e2")));
}

std::vector<CommEdge> RandomEdges(int32_t npus, std::mt19937& random) {
  std::vector<CommEdge> edges;
  for (int i = 0; i < 3; ++i) {
    std::vector<int32_t> participants = Ranks(npus);
    std::shuffle(participants.begin(), participants.end(), random);
    participants.resize(2 + random() % 2);
    const CollectiveKind kind = participants.size() == 2 && random() % 2 == 0
                                    ? CollectiveKind::kPointToPoint
                                    : CollectiveKind::kAllReduce;
    edges.push_back(Edge(kind, int64_t{1} << (10 + random() % 10), std::move(participants)));
  }
  return edges;
}

// What the simulator says of all edges at once is what it says of the parts.
TEST(EdgeDomainsTest, PartsByLinksTakeAsLongAsTheWhole) {
  std::mt19937 random(11);
  const std::vector<std::vector<NetworkDimension>> networks = {
      {Dimension(BlockShape::kRing, 8)},
      {Dimension(BlockShape::kFullyConnected, 16)},
      {Dimension(BlockShape::kSwitch, 16)},
      {Dimension(BlockShape::kRing, 4), Dimension(BlockShape::kMesh, 6)},
      {Dimension(BlockShape::kFullyConnected, 4), Dimension(BlockShape::kRing, 6)},
      {Dimension(BlockShape::kSwitch, 2), Dimension(BlockShape::kSwitch, 3),
       Dimension(BlockShape::kRing, 3)}};
  int split = 0;
  for (const std::vector<NetworkDimension>& network : networks) {
    const std::shared_ptr<const FabricSet> fabrics = OneFabric(FabricOf(network));
    EmbeddedTiming timing(fabrics, Congestion::kAware, nullptr);
    int32_t npus = 1;
    for (const NetworkDimension& dimension : network) npus *= dimension.npus;
    for (int round = 0; round < 20; ++round) {
      const std::vector<CommEdge> edges = RandomEdges(npus, random);
      ASSERT_OK_AND_ASSIGN(const BatchEstimate whole, timing.EstimateBatch(edges));
      ASSERT_OK_AND_ASSIGN(const EdgeDomains domains,
                           EdgeDomains::Find(edges, TrafficPartition::kLinkDomain, *fabrics));
      ASSERT_OK_AND_ASSIGN(const std::vector<TrafficInterval> parts,
                           CollectTrafficIntervals(std::vector<EdgeInterval>(3, EdgeInterval{0, 1}),
                                                   std::vector<bool>(3, true), domains));
      split += parts.size() > 1;
      for (const TrafficInterval& part : parts) {
        std::vector<CommEdge> members;
        for (const CommEdgeIndex edge : part.members) members.push_back(edges[edge]);
        ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch(members));
        for (size_t i = 0; i < members.size(); ++i) {
          EXPECT_EQ(batch.seconds[i], whole.seconds[part.members[i]]) << members[i].id;
        }
      }
    }
  }
  EXPECT_GT(split, 40);
}

}  // namespace
}  // namespace meridian
