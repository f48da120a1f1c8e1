#include "astra_bridge/engine/deadlock.h"

#include <numeric>
#include <string>
#include <vector>

#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(DeadlockTest, NamesTheCircleFirst) {
  Workload workload = EveryRank(3, CollectiveNode(5, CollectiveKind::kAllReduce, 64, /*group=*/2));
  workload.ranks[0].source = "w.0.et";
  // Rank 0 waits for 1, which waits for 2 and not for 0; 2 waits for 1.
  const std::vector<int32_t> one = {1};
  const std::vector<int32_t> two = {1, 2};
  EXPECT_EQ(
      DescribeDeadlock(workload, {{0, 0, one, ""}, {1, 0, two, ""}, {2, 0, one, "a note"}}, 70),
      "deadlock at 70 ns: rank 1 waits in node 5 (all-reduce of group 2) for rank 2; rank 2 "
      "waits in node 5 (all-reduce of group 2) for rank 1: a note; rank 0 (w.0.et) waits in "
      "node 5 (all-reduce of group 2) for rank 1");
}

TEST(DeadlockTest, DescribesReceivesAndRanksThatAreDone) {
  Workload workload = EveryRank(2, ReceiveNode(3, 1, 64, /*tag=*/7));
  const std::vector<int32_t> one = {1};
  EXPECT_EQ(DescribeDeadlock(workload, {{0, 0, one, ""}}, 0),
            "deadlock at 0 ns: rank 0 waits in node 3 (receive from rank 1, tag 7, 64 bytes) for "
            "rank 1");
}

TEST(DeadlockTest, StaysShort) {
  const Workload workload = EveryRank(100, CollectiveNode(1, CollectiveKind::kAllGather, 64));
  std::vector<int32_t> others(50);
  std::iota(others.begin(), others.end(), 50);
  std::vector<WaitingNode> waiting;
  for (int32_t rank = 0; rank < 50; ++rank) waiting.push_back({rank, 0, others, ""});
  const std::string text = DescribeDeadlock(workload, waiting, 0);
  EXPECT_THAT(text, HasSubstr("for ranks 50, 51, 52, 53, 54, 55, 56, 57 and others"));
  EXPECT_THAT(text, EndsWith("; 42 more nodes wait"));
}

}  // namespace
}  // namespace meridian
