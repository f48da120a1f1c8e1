#include "astra_bridge/timing/edge_algorithms.h"

#include <string>

#include "absl/strings/str_join.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
