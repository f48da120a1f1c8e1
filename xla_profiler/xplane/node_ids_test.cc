#include "xla_profiler/xplane/node_ids.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(NodeIdsTest, LastIntegerInFileNameIgnoresTheFolder) {
  EXPECT_EQ(LastIntegerInFileName("run7/rank12.xplane.pb"), 12);
  EXPECT_EQ(LastIntegerInFileName("h200-node03.xplane.pb.gz"), 3);
  EXPECT_EQ(LastIntegerInFileName("run7/host.xplane.pb"), std::nullopt);
  EXPECT_EQ(LastIntegerInFileName("x99999999999999999999.pb"), std::nullopt);
  EXPECT_EQ(LastIntegerInFileName(""), std::nullopt);
}

TEST(NodeIdsTest, RanksInFileNamesAreTheNumbersBehindTheWord) {
  EXPECT_THAT(RanksInFileNames({"rank9/worker3_step_12.1694128201545.pt.trace.json.gz",
                                "worker7_rank-12.json", "Rank_4.json", "mtia_rank_0.json"}),
              Optional(ElementsAre(3, 12, 4, 0)));
  for (const char* none : {"frank3.json", "ranks.json", "rank99999999999999999999", "http2.json"}) {
    EXPECT_EQ(RanksInFileNames({none}), std::nullopt) << none;
  }
  EXPECT_EQ(RanksInFileNames({"a/rank3.json", "b/rank3.json"}), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto nodes,
                       AssignNodeIds({{"worker1_step_12.json", "worker0_step_12.json"}, {}, {}}));
  EXPECT_EQ(nodes[0].id, 1);
  EXPECT_EQ(nodes[1].id, 0);
}

// SGLang's names. With data-parallel attention the place along DP follows from that along TP.
TEST(NodeIdsTest, RanksInFileNamesCountThePartsOfAModel) {
  EXPECT_THAT(
      RanksInFileNames(
          {"1763-TP-1-DP-0-PP-1-EP-0.trace.json.gz", "1763-TP-0-DP-0-PP-0-EP-0.trace.json.gz",
           "1763-TP-1-DP-0-PP-0-EP-0.trace.json.gz", "1763-TP-0-DP-0-PP-1-EP-0.trace.json.gz"}),
      Optional(ElementsAre(3, 0, 1, 2)));
  EXPECT_THAT(RanksInFileNames(
                  {"a-TP-0-DP-0.json", "a-TP-3-DP-1.json", "a-TP-2-DP-1.json", "a-TP-1-DP-0.json"}),
              Optional(ElementsAre(0, 3, 2, 1)));
  EXPECT_EQ(RanksInFileNames({"a-TP-0.json", "b-TP-0.json"}), std::nullopt);
  EXPECT_EQ(RanksInFileNames({"a-TP-0.json", "a-TP-3.json"}), std::nullopt);
}

TEST(NodeIdsTest, GivenIdsWin) {
  ASSERT_OK_AND_ASSIGN(const auto nodes,
                       AssignNodeIds({{"rank0.pb", "rank1.pb"}, {5, 3}, {7, std::nullopt}}));
  EXPECT_EQ(nodes[0].id, 5);
  EXPECT_EQ(nodes[1].id, 3);
  EXPECT_FALSE(nodes[0].is_position);
}

TEST(NodeIdsTest, SnapshotIdsComeBeforeNames) {
  ASSERT_OK_AND_ASSIGN(const auto nodes,
                       AssignNodeIds({{"rank0.pb", "rank1.pb"}, {}, {7, std::nullopt}}));
  EXPECT_EQ(nodes[0].id, 7);
  EXPECT_FALSE(nodes[0].is_position);
  EXPECT_EQ(nodes[1].id, 1);
  EXPECT_FALSE(nodes[1].is_position);
}

TEST(NodeIdsTest, NamesServeOnlyWhenUnique) {
  ASSERT_OK_AND_ASSIGN(auto nodes, AssignNodeIds({{"b/rank9.pb", "a/rank4.pb"}, {}, {}}));
  EXPECT_EQ(nodes[0].id, 9);
  EXPECT_EQ(nodes[1].id, 4);
  ASSERT_OK_AND_ASSIGN(nodes, AssignNodeIds({{"10.0.0.1_6003.pb", "10.0.0.2_6003.pb"}, {}, {}}));
  EXPECT_EQ(nodes[0].id, 0);
  EXPECT_EQ(nodes[1].id, 1);
  EXPECT_TRUE(nodes[1].is_position);
}

TEST(NodeIdsTest, ARepeatedIdNamesBothFiles) {
  EXPECT_THAT(AssignNodeIds({{"a.pb", "b.pb"}, {2, 2}, {}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("node id 2"), HasSubstr("a.pb"), HasSubstr("b.pb"))));
  EXPECT_THAT(AssignNodeIds({{"rank0.pb", "rank1.pb"}, {}, {1, std::nullopt}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node id 1")));
}

TEST(NodeIdsTest, AWrongNumberOfIdsIsRefused) {
  EXPECT_THAT(AssignNodeIds({{"a.pb", "b.pb"}, {2}, {}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 node ids for 2 files")));
}

}  // namespace
}  // namespace meridian
