#include "astra_bridge/timing/edge_workload.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::StatusOr<EdgeWorkload> AllAtOnce(const std::vector<CommEdge>& edges, const Fabric& fabric) {
  std::vector<std::vector<int64_t>> begins_ns;
  for (const CommEdge& edge : edges) begins_ns.emplace_back(edge.participants.size(), 0);
  return MakeEdgeWorkload(edges, fabric, {begins_ns, {}});
}

TEST(EdgeWorkloadTest, EachOfSeveralIsAGroup) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 4)});
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 64, Ranks(4)),
                                       Edge(CollectiveKind::kAllGather, 32, {2, 0}),
                                       Edge(CollectiveKind::kAllToAll, 16, {2, 0})};
  ASSERT_OK_AND_ASSIGN(const EdgeWorkload result, AllAtOnce(edges, fabric));
  const Workload& workload = result.workload;
  ASSERT_THAT(workload.ranks, SizeIs(4));
  EXPECT_THAT(workload.groups, ElementsAre(Pair(1, ElementsAre(0, 1, 2, 3)),
                                           Pair(2, ElementsAre(2, 0)), Pair(3, ElementsAre(2, 0))));
  EXPECT_EQ(result.comm_streams, 3);
  EXPECT_THAT(workload.ranks[1].nodes(), SizeIs(1));
  const auto nodes = workload.ranks[2].nodes();
  ASSERT_THAT(nodes, SizeIs(3));
  EXPECT_EQ(nodes[0].group, 1);
  EXPECT_EQ(nodes[0].bytes, 64);
  EXPECT_EQ(nodes[0].id, EdgeNodeId(0));
  EXPECT_EQ(nodes[1].group, 2);
  EXPECT_EQ(nodes[1].op, CollectiveKind::kAllGather);
  EXPECT_EQ(nodes[2].group, 3);
  EXPECT_EQ(nodes[2].id, EdgeNodeId(2));
}

TEST(EdgeWorkloadTest, AllRanksAloneAreTheWorld) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 4)});
  ASSERT_OK_AND_ASSIGN(const EdgeWorkload result,
                       AllAtOnce({Edge(CollectiveKind::kAllReduce, 64, Ranks(4))}, fabric));
  EXPECT_THAT(result.workload.groups, IsEmpty());
  EXPECT_EQ(result.workload.ranks[0].nodes()[0].group, kWorldGroup);
}

TEST(EdgeWorkloadTest, PartsBeginAsLongAfterTheOneBeforeAsInTheSchedule) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 4)});
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kPointToPoint, 8, {3, 1}),
                                       Edge(CollectiveKind::kPointToPoint, 8, {3, 2})};
  ASSERT_OK_AND_ASSIGN(
      const EdgeWorkload result,
      MakeEdgeWorkload(edges, fabric, {{{70, 0}, {20, 20}}, {90, 50}}, /*overhead_ns=*/5));
  // The second edge begins first, and the first 20 ns after its end.
  const RankWorkload& rank = result.workload.ranks[3];
  ASSERT_THAT(rank.nodes(), SizeIs(2));
  EXPECT_EQ(rank.nodes()[0].id, EdgeNodeId(1));
  EXPECT_EQ(rank.nodes()[0].delay_ns, 20 + 5);
  EXPECT_THAT(rank.dependencies(0), IsEmpty());
  EXPECT_EQ(rank.nodes()[1].id, EdgeNodeId(0));
  EXPECT_EQ(rank.nodes()[1].delay_ns, 20 + 5);
  EXPECT_THAT(rank.dependencies(1), ElementsAre(EdgeNodeId(1)));
  EXPECT_EQ(result.comm_streams, 2);
  // Without ends all count from the start.
  ASSERT_OK_AND_ASSIGN(const EdgeWorkload apart,
                       MakeEdgeWorkload(edges, fabric, {{{70, 0}, {20, 20}}, {}}));
  EXPECT_EQ(apart.workload.ranks[3].nodes()[1].delay_ns, 70);
  EXPECT_THAT(apart.workload.ranks[3].dependencies(1), IsEmpty());
}

TEST(EdgeWorkloadTest, PointToPointIsASendAndAReceiveOfOneTag) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 4)});
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kPointToPoint, 8, {3, 1}),
                                       Edge(CollectiveKind::kPointToPoint, 8, {3, 1})};
  ASSERT_OK_AND_ASSIGN(const EdgeWorkload result, AllAtOnce(edges, fabric));
  const auto sends = result.workload.ranks[3].nodes();
  const auto receives = result.workload.ranks[1].nodes();
  ASSERT_THAT(sends, SizeIs(2));
  ASSERT_THAT(receives, SizeIs(2));
  EXPECT_EQ(sends[0].type, WorkloadNodeType::kSend);
  EXPECT_EQ(sends[0].peer, 1);
  EXPECT_EQ(receives[0].type, WorkloadNodeType::kReceive);
  EXPECT_EQ(receives[0].peer, 3);
  EXPECT_EQ(sends[0].tag, receives[0].tag);
  EXPECT_NE(sends[0].tag, sends[1].tag);
  EXPECT_THAT(result.workload.ranks[0].nodes(), IsEmpty());
}

TEST(EdgeWorkloadTest, HintsBecomeAlgorithmsOfTheNode) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kFullyConnected, 4)});
  CommEdge ring = Edge(CollectiveKind::kAllReduce, 64, Ranks(4));
  ring.hint = AlgorithmHint::kRing;
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 64, Ranks(4)), ring, ring};
  ASSERT_OK_AND_ASSIGN(const EdgeWorkload result, AllAtOnce(edges, fabric));
  const auto nodes = result.workload.ranks[0].nodes();
  ASSERT_THAT(result.workload.algorithms, SizeIs(2));
  EXPECT_EQ(CollectiveAlgorithmName(result.workload.algorithms[nodes[0].algorithms][0]), "direct");
  EXPECT_EQ(CollectiveAlgorithmName(result.workload.algorithms[nodes[1].algorithms][0]), "ring");
  EXPECT_EQ(nodes[1].algorithms, nodes[2].algorithms);
}

class EdgeAlgorithmsTest : public ::testing::Test {
 protected:
  // Names of the algorithms of an all-reduce among the first ranks.
  static absl::StatusOr<std::string> Names(const Fabric& fabric, int32_t ranks,
                                           AlgorithmHint hint) {
    CommEdge edge = Edge(CollectiveKind::kAllReduce, 1024, Ranks(ranks));
    edge.hint = hint;
    ASSIGN_OR_RETURN(const std::vector<CollectiveAlgorithm> algorithms,
                     EdgeAlgorithms(edge, fabric));
    return absl::StrJoin(algorithms, " ", [](std::string* out, const CollectiveAlgorithm& a) {
      *out += CollectiveAlgorithmName(a);
    });
  }

  const Fabric flat_ = FabricOf({Dimension(BlockShape::kFullyConnected, 8)});
  const Fabric deep_ =
      FabricOf({Dimension(BlockShape::kFullyConnected, 4), Dimension(BlockShape::kRing, 2)});
};

TEST_F(EdgeAlgorithmsTest, WithoutAHintTheSystemDecides) {
  EXPECT_THAT(Names(flat_, 8, AlgorithmHint::kNone), IsOkAndHolds("direct"));
  EXPECT_THAT(Names(deep_, 8, AlgorithmHint::kNone), IsOkAndHolds("direct ring"));
}

TEST_F(EdgeAlgorithmsTest, RingAndDirectAreOnePhase) {
  EXPECT_THAT(Names(flat_, 8, AlgorithmHint::kRing), IsOkAndHolds("ring"));
  EXPECT_THAT(Names(deep_, 8, AlgorithmHint::kRing), IsOkAndHolds("oneRing"));
  EXPECT_THAT(Names(deep_, 8, AlgorithmHint::kDirect), IsOkAndHolds("oneDirect"));
  EXPECT_THAT(Names(deep_, 4, AlgorithmHint::kDirect), IsOkAndHolds("direct"));
}

TEST_F(EdgeAlgorithmsTest, TreesNeedOneDimension) {
  EXPECT_THAT(Names(flat_, 8, AlgorithmHint::kTree), IsOkAndHolds("doubleBinaryTree"));
  EXPECT_THAT(Names(deep_, 8, AlgorithmHint::kTree),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("edge AR 1024 0-7"), HasSubstr("network.yml"))));
}

TEST_F(EdgeAlgorithmsTest, HierarchiesNeedSeveralDimensionsAndAllRanks) {
  EXPECT_THAT(Names(deep_, 8, AlgorithmHint::kHierarchical), IsOkAndHolds("direct ring"));
  EXPECT_THAT(Names(deep_, 4, AlgorithmHint::kHierarchical),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8 ranks, 4 of which")));
  EXPECT_THAT(Names(flat_, 8, AlgorithmHint::kHierarchical),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(EdgeAlgorithmsTest, ASystemWithoutAnAlgorithmIsNamedWithItsKey) {
  Fabric fabric = flat_;
  fabric.system.source = "system.json";
  fabric.system.algorithms = {};
  EXPECT_THAT(Names(fabric, 8, AlgorithmHint::kNone),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("system.json: all-reduce-implementation is missing")));
  EXPECT_THAT(Names(fabric, 8, AlgorithmHint::kRing), IsOkAndHolds("ring"));
}

}  // namespace
}  // namespace meridian
