#include "astra_bridge/engine/collective_plan.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Kind = CollectiveAlgorithm::Kind;

// A request on a network of 8 x 4 ranks, and what is planned.
class CollectivePlanTest : public testing::Test {
 protected:
  absl::StatusOr<CollectivePlan> Plan(const std::vector<std::string>& algorithms) {
    system_.algorithms = SystemWith(algorithms).algorithms;
    request_.algorithms = system_.algorithms_of(request_.op);
    return PlanCollective(request_, Topology(network_), system_);
  }

  NetworkConfig network_ =
      Network({Dimension(BlockShape::kRing, 8), Dimension(BlockShape::kSwitch, 4)});
  SystemConfig system_;
  CollectiveRequest request_;
};

// Operation, dimension, direction and bytes of a phase.
using Summary = std::tuple<CollectiveKind, int32_t, int32_t, int64_t>;

std::vector<Summary> Summarize(const CollectivePlan& plan) {
  std::vector<Summary> summaries;
  for (const CollectivePhase& phase : plan.phases) {
    summaries.emplace_back(phase.op, phase.dimension, phase.direction, phase.data_bytes);
  }
  return summaries;
}

TEST_F(CollectivePlanTest, EveryChunkHasTheSizeOfAFullOne) {
  request_.bytes = 1000;
  system_.preferred_dataset_splits = 7;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"ring", "ring"}));
  // 1000 / 7 = 142; seven of them leave 6 bytes for an eighth.
  EXPECT_EQ(plan.chunk_bytes, 142);
  EXPECT_EQ(plan.chunks, 8);
}

TEST_F(CollectivePlanTest, AChunkHasAtLeastAByteForEveryRank) {
  request_.bytes = 100;
  system_.preferred_dataset_splits = 4;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"ring", "ring"}));
  EXPECT_EQ(plan.chunk_bytes, 32);
  EXPECT_EQ(plan.chunks, 4);
  // Not so in an all-gather, where each rank puts in a shard.
  request_.op = CollectiveKind::kAllGather;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan gather, Plan({"ring", "ring"}));
  EXPECT_EQ(gather.chunk_bytes, 25);
  request_.bytes = 3;
  EXPECT_THAT(Plan({"ring", "ring"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("preferred-dataset-splits 4")));
}

TEST_F(CollectivePlanTest, AllReduceScattersUpwardsAndGathersDownwards) {
  request_.bytes = 1024;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"ring", "direct"}));
  EXPECT_THAT(Summarize(plan), ElementsAre(Summary(CollectiveKind::kReduceScatter, 0, 1, 1024),
                                           Summary(CollectiveKind::kAllReduce, 1, 1, 128),
                                           Summary(CollectiveKind::kAllGather, 0, -1, 128)));
  EXPECT_EQ(plan.phases[1].algorithm.kind, Kind::kDirect);
  EXPECT_EQ(plan.phases[1].stride, 8);
  EXPECT_EQ(plan.phases[1].size, 4);
}

TEST_F(CollectivePlanTest, BaselineAllReduceMovesEverythingInEachDimension) {
  request_.bytes = 1024;
  system_.collective_optimization = CollectiveOptimization::kBaseline;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"ring", "ring"}));
  EXPECT_THAT(Summarize(plan), ElementsAre(Summary(CollectiveKind::kAllReduce, 0, 1, 1024),
                                           Summary(CollectiveKind::kAllReduce, 1, 1, 1024)));
}

TEST_F(CollectivePlanTest, OthersPassOnWhatAMemberHolds) {
  request_.bytes = 1024;
  request_.op = CollectiveKind::kAllGather;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan gather, Plan({"ring", "ring"}));
  EXPECT_THAT(Summarize(gather), ElementsAre(Summary(CollectiveKind::kAllGather, 1, 1, 1024),
                                             Summary(CollectiveKind::kAllGather, 0, 1, 4096)));
  request_.op = CollectiveKind::kReduceScatter;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan scatter, Plan({"ring", "ring"}));
  EXPECT_THAT(Summarize(scatter), ElementsAre(Summary(CollectiveKind::kReduceScatter, 0, 1, 1024),
                                              Summary(CollectiveKind::kReduceScatter, 1, 1, 128)));
  request_.op = CollectiveKind::kAllToAll;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan all_to_all, Plan({"ring", "ring"}));
  EXPECT_THAT(Summarize(all_to_all), ElementsAre(Summary(CollectiveKind::kAllToAll, 0, 1, 1024),
                                                 Summary(CollectiveKind::kAllToAll, 1, 1, 1024)));
}

TEST_F(CollectivePlanTest, MembersAreTiedTogetherIfNoDimensionStaysOut) {
  request_.bytes = 1024;
  for (const CollectiveKind op : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    request_.op = op;
    request_.involved_dimensions = ~uint64_t{0};
    EXPECT_TRUE(Plan({"ring", "ring"})->ties_all_members);
    EXPECT_FALSE(Plan({"ring"})->ties_all_members);
    request_.involved_dimensions = 0b10;
    EXPECT_FALSE(Plan({"ring", "ring"})->ties_all_members);
  }
  // All ranks are one ring of the first dimension.
  request_.involved_dimensions = 0b01;
  EXPECT_TRUE(Plan({"oneRing"})->ties_all_members);
  // A group is one ring, whatever the dimensions.
  request_.group_size = 5;
  EXPECT_TRUE(Plan({"ring"})->ties_all_members);
}

TEST_F(CollectivePlanTest, DimensionsMayStayOut) {
  request_.bytes = 1024;
  request_.involved_dimensions = 0b01;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"ring", "ring"}));
  EXPECT_THAT(Summarize(plan), ElementsAre(Summary(CollectiveKind::kAllReduce, 0, 1, 1024)));
  // A shorter list leaves the last dimensions out as well.
  request_.involved_dimensions = ~uint64_t{0};
  ASSERT_OK_AND_ASSIGN(const CollectivePlan shorter, Plan({"ring"}));
  EXPECT_THAT(Summarize(shorter), ElementsAre(Summary(CollectiveKind::kAllReduce, 0, 1, 1024)));
  request_.involved_dimensions = 0;
  EXPECT_THAT(Plan({"ring", "ring"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("involved_dim")));
}

TEST_F(CollectivePlanTest, OneRingSpansAllRanks) {
  request_.bytes = 1024;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"oneRing", "ring"}));
  ASSERT_THAT(plan.phases, SizeIs(1));
  EXPECT_EQ(plan.phases[0].size, 32);
  EXPECT_EQ(plan.phases[0].stride, 1);
  EXPECT_EQ(plan.phases[0].messages, 62);
  EXPECT_EQ(plan.phases[0].message_bytes, 32);
}

TEST_F(CollectivePlanTest, GroupsAreARingWithADelayOfTheirOwn) {
  request_.bytes = 1024;
  request_.group_size = 5;
  system_.endpoint_delay_ns = 1000;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"direct", "direct"}));
  ASSERT_THAT(plan.phases, SizeIs(1));
  EXPECT_EQ(plan.phases[0].algorithm.kind, Kind::kRing);
  EXPECT_EQ(plan.phases[0].endpoint_delay_ns, 10);
  EXPECT_EQ(plan.phases[0].stride, 0);
  // A list of one entry is taken as it is.
  ASSERT_OK_AND_ASSIGN(const CollectivePlan direct, Plan({"direct2"}));
  EXPECT_EQ(direct.phases[0].algorithm.kind, Kind::kDirect);
  EXPECT_EQ(direct.phases[0].parallel, 2);
  EXPECT_EQ(direct.phases[0].reduced_run, 8);
}

TEST_F(CollectivePlanTest, CountsMessages) {
  request_.bytes = 1024;
  network_ = Network({Dimension(BlockShape::kRing, 8)});
  const auto phase = [&](CollectiveKind op, const char* algorithm) {
    request_.op = op;
    const absl::StatusOr<CollectivePlan> plan = Plan({algorithm});
    EXPECT_OK(plan.status());
    return plan->phases[0];
  };
  EXPECT_EQ(phase(CollectiveKind::kAllReduce, "ring").messages, 14);
  EXPECT_EQ(phase(CollectiveKind::kAllGather, "ring").messages, 7);
  EXPECT_EQ(phase(CollectiveKind::kAllGather, "ring").message_bytes, 1024);
  EXPECT_EQ(phase(CollectiveKind::kAllToAll, "ring").messages, 28);
  EXPECT_EQ(phase(CollectiveKind::kAllToAll, "direct").messages, 7);
  EXPECT_EQ(phase(CollectiveKind::kAllReduce, "direct").parallel, 7);
  EXPECT_EQ(phase(CollectiveKind::kAllReduce, "direct").reduced_run, 7);
  EXPECT_EQ(phase(CollectiveKind::kAllReduce, "direct99").parallel, 7);
  EXPECT_EQ(phase(CollectiveKind::kAllReduce, "halvingDoubling").messages, 6);
  EXPECT_EQ(phase(CollectiveKind::kReduceScatter, "halvingDoubling").messages, 3);
  EXPECT_EQ(phase(CollectiveKind::kReduceScatter, "halvingDoubling").message_bytes, 512);
}

TEST_F(CollectivePlanTest, AlternatesBetweenTreesOfADimension) {
  request_.bytes = 1024;
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"doubleBinaryTree", "doubleBinaryTree"}));
  ASSERT_THAT(plan.phases, SizeIs(3));
  EXPECT_EQ(plan.phases[0].tree_offset, 0);
  EXPECT_EQ(plan.phases[2].tree_offset, 1);
  EXPECT_EQ(plan.phases[2].trees_per_chunk, 2);
  EXPECT_EQ(plan.phases[1].tree_offset, 0);
  EXPECT_EQ(plan.phases[1].trees_per_chunk, 1);
  // A tree always hands everything on.
  EXPECT_EQ(plan.phases[1].data_bytes, 1024);
}

TEST_F(CollectivePlanTest, RefusesWhatAstraSimDoesNotFinish) {
  system_.source = "s.json";
  request_.bytes = 1024;
  EXPECT_THAT(Plan({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("s.json: all-reduce-implementation: missing")));
  EXPECT_THAT(Plan({"ring", "ring", "ring"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("s.json: all-reduce-implementation: has 3 entries")));
  network_ = Network({Dimension(BlockShape::kRing, 6)});
  EXPECT_THAT(Plan({"halvingDoubling"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("s.json: all-reduce-implementation: halvingDoubling needs a power "
                                 "of two of ranks, but there are 6")));
  EXPECT_THAT(Plan({"doubleBinaryTree"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("doubleBinaryTree needs")));
  request_.group_size = 4;
  EXPECT_THAT(Plan({"doubleBinaryTree"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not in a group")));
  network_ = Network({Dimension(BlockShape::kRing, 8)});
  request_.group_size = 0;
  request_.op = CollectiveKind::kAllToAll;
  EXPECT_THAT(Plan({"halvingDoubling"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all-to-all-implementation: halvingDoubling cannot")));
}

TEST_F(CollectivePlanTest, AHalvingDoublingAllGatherMayHaveSixRanks) {
  request_.op = CollectiveKind::kAllGather;
  request_.bytes = 1024;
  for (int32_t ranks = 2; ranks <= 24; ++ranks) {
    network_ = Network({Dimension(BlockShape::kRing, ranks)});
    // Those that the real AstraSim finishes.
    const bool finishes = std::set<int32_t>{2, 4, 6, 8, 12, 16, 20, 24}.count(ranks) > 0;
    EXPECT_EQ(Plan({"halvingDoubling"}).ok(), finishes) << ranks;
  }
  network_ = Network({Dimension(BlockShape::kRing, 6)});
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, Plan({"halvingDoubling"}));
  EXPECT_EQ(plan.phases[0].messages, 2);
}

TEST_F(CollectivePlanTest, BytesDoNotOverflow) {
  request_.op = CollectiveKind::kAllGather;
  request_.bytes = int64_t{1} << 42;
  EXPECT_THAT(Plan({"ring", "ring"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("grows beyond")));
}

TEST(ReductionNsTest, IsTwoReadsAndAWrite) {
  // 262144 bytes at 1600e9 bytes/s: 163.84 ns, three times 163.
  EXPECT_EQ(ReductionNs(262144, 1600), 489);
  EXPECT_EQ(ReductionNs(262144, 0), 0);
}

// Highest root: 3 has the child 1, which has 0 and 2. Lowest root: 0 has 2, which has 1 and 3.
TEST(PlaceInTreeTest, LabelsAreInOrder) {
  const auto place = [](int32_t position, bool highest) {
    const TreePlace place = PlaceInTree(position, 4, highest);
    return std::vector<int32_t>{place.parent, place.left_child, place.right_child};
  };
  EXPECT_THAT(place(3, true), ElementsAre(-1, 1, -1));
  EXPECT_THAT(place(1, true), ElementsAre(3, 0, 2));
  EXPECT_THAT(place(0, true), ElementsAre(1, -1, -1));
  EXPECT_THAT(place(2, true), ElementsAre(1, -1, -1));
  EXPECT_THAT(place(0, false), ElementsAre(-1, -1, 2));
  EXPECT_THAT(place(2, false), ElementsAre(0, 1, 3));
  EXPECT_THAT(place(1, false), ElementsAre(2, -1, -1));
  EXPECT_THAT(place(3, false), ElementsAre(2, -1, -1));
}

TEST(PlaceInTreeTest, ParentsAndChildrenAgree) {
  for (const int32_t size : {2, 4, 64, 1024}) {
    for (const bool highest : {false, true}) {
      for (int32_t position = 0; position < size; ++position) {
        const TreePlace place = PlaceInTree(position, size, highest);
        for (const int32_t child : {place.left_child, place.right_child}) {
          if (child < 0) continue;
          EXPECT_EQ(PlaceInTree(child, size, highest).parent, position);
        }
        if (place.parent < 0) {
          EXPECT_EQ(position, highest ? size - 1 : 0);
          continue;
        }
        const TreePlace parent = PlaceInTree(place.parent, size, highest);
        EXPECT_EQ(position < place.parent ? parent.left_child : parent.right_child, position);
      }
    }
  }
}

}  // namespace
}  // namespace meridian
