#include "astra_bridge/engine/simulation.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// What the user is told when the workload cannot end, on a ring with an NPU per rank.
std::string Failure(const Workload& workload) {
  const NetworkConfig ring =
      Network({Dimension(BlockShape::kRing, static_cast<int32_t>(workload.ranks.size()))});
  const absl::Status status = Simulate(workload, ring, SystemWith({"ring"}), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(DeadlockTest, ADeadlockNamesTheCircleFirst) {
  // Rank 0 waits for 1, which waits for 2 and not for 0; 2 waits for 1.
  Workload workload;
  workload.groups = {{1, {0, 1}}, {2, {1, 2}}, {3, {2, 1}}};
  workload.ranks.resize(3);
  workload.ranks[0].source = "w.0.et";
  for (int32_t rank = 0; rank < 3; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(5, CollectiveKind::kAllReduce, 64, rank + 1));
  }
  // The first messages leave after 10 ns and take 500 + 32 / 53.7 ns; then nothing happens.
  EXPECT_EQ(Failure(workload),
            "deadlock at 510 ns: rank 1 waits in node 5 (all-reduce of group 2) for rank 2; rank 2 "
            "waits in node 5 (all-reduce of group 3) for rank 1; rank 0 (w.0.et) waits in "
            "node 5 (all-reduce of group 1) for rank 1");
}

TEST(DeadlockTest, ADeadlockDescribesReceivesFromRanksThatAreDone) {
  Workload workload = EveryRank(2, ComputeNode(1, 0));
  workload.ranks[0].Add(ReceiveNode(3, 1, 64, /*tag=*/7));
  EXPECT_EQ(Failure(workload),
            "deadlock at 1 ns: rank 0 waits in node 3 (receive from rank 1, tag 7, 64 bytes) for "
            "rank 1");
}

TEST(DeadlockTest, WhatItSaysOfADeadlockStaysShort) {
  Workload workload = EveryRank(100, ComputeNode(1, 0));
  for (int32_t rank = 0; rank < 50; ++rank) {
    workload.ranks[rank].Add(CollectiveNode(2, CollectiveKind::kAllGather, 64));
  }
  const std::string text = Failure(workload);
  EXPECT_THAT(text, HasSubstr("for ranks 50, 51, 52, 53, 54, 55, 56, 57 and others"));
  EXPECT_THAT(text, EndsWith("; 42 more nodes wait"));
}

}  // namespace
}  // namespace meridian
