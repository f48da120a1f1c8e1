#include "chakra_export/xspace/comm_vocabulary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProcessGroupListTest, TheGroupOfAllRanksHasNoNameAndOthersAreNumbered) {
  ProcessGroupList list(4);
  EXPECT_EQ(list.Add({3, 2, 1, 0}), 0);
  EXPECT_EQ(list.Add({0, 2}), 1);
  EXPECT_EQ(list.Add({2, 0}), 2);
  EXPECT_EQ(list.Add({0, 2}), 1);
  ASSERT_EQ(list.groups().size(), 3);
  EXPECT_EQ(list.groups()[0].name, "");
  EXPECT_EQ(list.groups()[2].name, "2");
  EXPECT_THAT(list.groups()[2].ranks, ElementsAre(2, 0));
}

TEST(ProcessGroupListTest, MoreGroupsThanAstraSimTellsApartAreRefused) {
  ProcessGroupList list(2000);
  for (int64_t i = 0; i < 499; ++i) list.Add({i, i + 1});
  EXPECT_THAT(list.Check(), IsOk());
  list.Add({1000, 1001});
  EXPECT_THAT(list.Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("500 groups")));
}

}  // namespace
}  // namespace meridian
