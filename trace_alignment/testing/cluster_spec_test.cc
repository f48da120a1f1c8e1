#include "trace_alignment/testing/cluster_spec.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ClusterSpecTest, ReadsKindsAndGroups) {
  ASSERT_OK_AND_ASSIGN(const std::vector<CollectiveSpec> specs,
                       ParseCollectives("all-reduce,all-gather/4,collective-permute/2s", 8));
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(specs[0].group_size, 0);
  EXPECT_EQ(specs[1].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(specs[1].group_size, 4);
  EXPECT_FALSE(specs[1].strided);
  EXPECT_EQ(specs[2].kind, CollectiveKind::kCollectivePermute);
  EXPECT_EQ(specs[2].group_size, 2);
  EXPECT_TRUE(specs[2].strided);
}

TEST(ClusterSpecTest, RefusesUnknownKindsAndSizesThatDoNotDivide) {
  for (const char* text : {"", "all-reduce,", "all_reduce", "send"}) {
    EXPECT_THAT(ParseCollectives(text, 8),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no collective")));
  }
  for (const char* text : {"all-reduce/3", "all-reduce/0", "all-reduce/", "all-reduce/s"}) {
    EXPECT_THAT(ParseCollectives(text, 8),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not divide 8 ranks")));
  }
}

TEST(ClusterSpecTest, ReadsStragglers) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Straggler> stragglers,
                       ParseStragglers("3:500,7:2000:4", 8));
  ASSERT_EQ(stragglers.size(), 2u);
  EXPECT_EQ(stragglers[0].rank, 3);
  EXPECT_EQ(stragglers[0].delay_ns, 500'000);
  EXPECT_EQ(stragglers[0].every, 1);
  EXPECT_EQ(stragglers[1].every, 4);
  EXPECT_THAT(ParseStragglers("", 8), IsOkAndHolds(IsEmpty()));
}

TEST(ClusterSpecTest, RefusesStragglersThatAreNoRank) {
  for (const char* text : {"8:500", "-1:500", "3", "3:-5", "3:500:0", "3:500:1:1", "x:1"}) {
    EXPECT_THAT(ParseStragglers(text, 8),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no straggler")));
  }
}

}  // namespace
}  // namespace meridian
