#include "chakra_export/generate/generated_workload.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// The picture of the header.
TEST(RankLayoutTest, TensorRanksAreNextToEachOtherThenCopiesThenStages) {
  const RankLayout layout(2, 2, 2);
  EXPECT_EQ(layout.rank_count(), 8);
  EXPECT_EQ(layout.Stage(3), 0);
  EXPECT_EQ(layout.Stage(4), 1);
  EXPECT_EQ(layout.InStage(3, 1), 7);
  EXPECT_EQ(layout.InStage(6, 0), 2);
  EXPECT_THAT(layout.TensorGroup(3).ranks, ElementsAre(2, 3));
  EXPECT_THAT(layout.TensorGroup(4).ranks, ElementsAre(4, 5));
  EXPECT_THAT(layout.DataGroup(0).ranks, ElementsAre(0, 2));
  EXPECT_THAT(layout.DataGroup(3).ranks, ElementsAre(1, 3));
  EXPECT_THAT(layout.DataGroup(7).ranks, ElementsAre(5, 7));
}

TEST(RankLayoutTest, NumbersTensorGroupsFirst) {
  const RankLayout layout(2, 2, 2);
  EXPECT_EQ(layout.TensorGroup(0).name, "1");
  EXPECT_EQ(layout.TensorGroup(7).name, "4");
  EXPECT_EQ(layout.DataGroup(0).name, "5");
  EXPECT_EQ(layout.DataGroup(1).name, "6");
  EXPECT_EQ(layout.DataGroup(4).name, "7");
  EXPECT_EQ(layout.DataGroup(7).name, "8");
  EXPECT_EQ(layout.named_tensor_groups(), 4);
  EXPECT_EQ(layout.named_data_groups(), 4);
}

TEST(RankLayoutTest, AGroupOfAllRanksHasNoName) {
  const RankLayout tensor(4, 1, 1);
  EXPECT_EQ(tensor.TensorGroup(2).name, "");
  EXPECT_THAT(tensor.TensorGroup(2).ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(tensor.named_tensor_groups(), 0);
  const RankLayout data(1, 3, 1);
  EXPECT_EQ(data.DataGroup(2).name, "");
  EXPECT_THAT(data.DataGroup(2).ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(data.named_data_groups(), 0);
}

TEST(RankLayoutTest, GroupsOfOneRankTakeNoNumbers) {
  const RankLayout layout(1, 2, 2);
  EXPECT_EQ(layout.named_tensor_groups(), 0);
  EXPECT_EQ(layout.DataGroup(0).name, "1");
  EXPECT_EQ(layout.DataGroup(3).name, "2");
}

TEST(RankLayoutTest, EveryRankIsInItsGroupsAndMembersAgree) {
  for (const RankLayout& layout : {RankLayout(2, 3, 4), RankLayout(4, 2, 1), RankLayout(3, 1, 5)}) {
    std::map<std::string, std::vector<int64_t>> groups;
    for (int64_t rank = 0; rank < layout.rank_count(); ++rank) {
      for (const ProcessGroup& group : {layout.TensorGroup(rank), layout.DataGroup(rank)}) {
        if (group.ranks.size() == 1) continue;
        EXPECT_THAT(group.ranks, ::testing::Contains(rank));
        EXPECT_EQ(groups.emplace(group.name, group.ranks).first->second, group.ranks);
      }
    }
    EXPECT_EQ(groups.size(),
              static_cast<size_t>(layout.named_tensor_groups() + layout.named_data_groups()));
    EXPECT_EQ(groups.count(absl::StrCat(groups.size())), 1u);
  }
}

}  // namespace
}  // namespace meridian
