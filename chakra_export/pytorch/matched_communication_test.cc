#include "chakra_export/pytorch/matched_communication.h"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/pytorch/testing/torch_rank.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kAllReduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";

// What a kernel of 64 floats says about itself; `ranks` are those of the group.
std::string Described(const std::string& collective, const std::string& group,
                      const std::vector<int64_t>& ranks, const std::string& more = "") {
  return absl::StrCat(R"(, "Collective name": ")", collective,
                      R"(", "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", )",
                      R"("Group size": )", ranks.size(), R"(, "Process Group Name": ")", group,
                      R"(", "Process Group Ranks": "[)", absl::StrJoin(ranks, ", "), "]\"", more);
}

class MatchedCommunicationTest : public ::testing::Test {
 protected:
  // Ranks are numbered in the order in which they are added.
  void AddRank(const KinetoText& device) { ranks_.emplace_back(HostTraceText(), device); }

  absl::StatusOr<MatchedCommunication> Match(bool allow_violations = false) {
    std::vector<RankCollectives> collectives;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      collectives.push_back(ReadRankCollectives(ranks_[i].device, ranks_[i].device_text,
                                                absl::StrCat("kineto_", i, ".json"),
                                                ranks_[i].timeline));
    }
    return MatchCommunication(std::move(collectives), allow_violations);
  }

  // What the kernel of that name communicates on a rank.
  static const NodeCommunication* Find(const MatchedCommunication& matched, const TorchRank& rank,
                                       size_t position, const std::string& kernel) {
    const auto it = matched.ranks[position].nodes.find(rank.DeviceNode(kernel));
    return it == matched.ranks[position].nodes.end() ? nullptr : &it->second[0];
  }

  std::deque<TorchRank> ranks_;
};

// Rank 0 waits from 10 to 25 for rank 1; both move data until 40 and 42.
TEST_F(MatchedCommunicationTest, WhatIsWaitedIsNotTransfer) {
  AddRank(KinetoText(0, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 25, 17, 1, Described("allreduce", "0", {0, 1})));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  EXPECT_EQ(matched.world_size, 2);
  EXPECT_TRUE(matched.clocks_agree);
  const NodeCommunication* early = Find(matched, ranks_[0], 0, kAllReduce);
  const NodeCommunication* late = Find(matched, ranks_[1], 1, kAllReduce);
  ASSERT_NE(early, nullptr);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(early->type, ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_EQ(early->collective, ChakraProtoMsg::ALL_REDUCE);
  EXPECT_EQ(early->bytes, 256);
  EXPECT_EQ(early->process_group, "0");
  EXPECT_THAT(early->ranks, ElementsAre(0, 1));
  EXPECT_EQ(early->transfer_ps, 15 * kPsPerUs);
  EXPECT_EQ(late->transfer_ps, 17 * kPsPerUs);
  EXPECT_EQ(early->instance, late->instance);
}

// Instances are numbered by their last starts, which all ranks share: first "b" (its last member
// starts at 20), then "a" (at 30).
TEST_F(MatchedCommunicationTest, InstancesAreInTheOrderInWhichTheyCouldBegin) {
  const std::string group_a = Described("allreduce", "1", {0, 1}, R"(, "Seq": 3)");
  const std::string group_b = Described("allreduce", "2", {0, 1}, R"(, "Seq": 5)");
  const std::string a = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(a)";
  const std::string b = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(b)";
  AddRank(KinetoText(0, 2).Kernel(a, 16, 10, 50, 1, group_a).Kernel(b, 17, 15, 50, 2, group_b));
  AddRank(KinetoText(1, 2).Kernel(b, 17, 20, 50, 1, group_b).Kernel(a, 16, 30, 50, 2, group_a));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_NE(Find(matched, ranks_[i], i, a), nullptr);
    EXPECT_EQ(Find(matched, ranks_[i], i, b)->instance, 0u);
    EXPECT_EQ(Find(matched, ranks_[i], i, a)->instance, 1u);
  }
}

TEST_F(MatchedCommunicationTest, MessagesKnowTheirPeers) {
  const std::string send = "ncclDevKernel_SendRecv(send)";
  const std::string recv = "ncclDevKernel_SendRecv(recv)";
  const std::vector<int64_t> world = {0, 1, 2};
  // 0 -> 1 -> 2, a pipeline; rank 1 receives, then sends.
  AddRank(KinetoText(0, 3).Kernel(send, 16, 10, 20, 1,
                                  Described("send", "0", world, R"(, "Dst Rank": 1)")));
  AddRank(KinetoText(1, 3)
              .Kernel(recv, 16, 5, 25, 1, Described("recv", "0", world, R"(, "Src Rank": 0)"))
              .Kernel(send, 16, 40, 20, 2, Described("send", "0", world, R"(, "Dst Rank": 2)")));
  AddRank(KinetoText(2, 3).Kernel(recv, 16, 50, 12, 1,
                                  Described("recv", "0", world, R"(, "Src Rank": 1)")));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  for (const RankCommunication& rank : matched.ranks) EXPECT_THAT(rank.unmatched, IsEmpty());
  const NodeCommunication& first_send = *Find(matched, ranks_[0], 0, send);
  const NodeCommunication& first_recv = *Find(matched, ranks_[1], 1, recv);
  const NodeCommunication& second_send = *Find(matched, ranks_[1], 1, send);
  const NodeCommunication& second_recv = *Find(matched, ranks_[2], 2, recv);
  EXPECT_EQ(first_send.type, ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_EQ(first_recv.type, ChakraProtoMsg::COMM_RECV_NODE);
  EXPECT_THAT(std::make_pair(first_send.source, first_send.target), Pair(0, 1));
  EXPECT_THAT(std::make_pair(first_recv.source, first_recv.target), Pair(0, 1));
  EXPECT_THAT(std::make_pair(second_send.source, second_send.target), Pair(1, 2));
  EXPECT_THAT(std::make_pair(second_recv.source, second_recv.target), Pair(1, 2));
  EXPECT_EQ(first_send.instance, first_recv.instance);
  EXPECT_EQ(second_send.instance, second_recv.instance);
  EXPECT_NE(first_send.instance, second_send.instance);
  EXPECT_EQ(first_recv.bytes, 256);
  // From 10, when both are there, to 30.
  EXPECT_EQ(first_recv.transfer_ps, 20 * kPsPerUs);
  // From 50 to 62; the send had started at 40.
  EXPECT_EQ(second_recv.transfer_ps, 12 * kPsPerUs);
  EXPECT_EQ(second_send.transfer_ps, 10 * kPsPerUs);
}

TEST_F(MatchedCommunicationTest, AMessageWhosePeerIsSilentIsUnmatched) {
  const std::string send = "ncclDevKernel_SendRecv(send)";
  AddRank(KinetoText(0, 2)
              .Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1}))
              .Kernel(send, 16, 60, 20, 2, Described("send", "0", {0, 1}, R"(, "Dst Rank": 1)")));
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  EXPECT_THAT(matched.ranks[0].nodes, SizeIs(1));
  EXPECT_THAT(matched.ranks[0].unmatched,
              ElementsAre(Pair(ranks_[0].DeviceNode(send), "its peer's profile does not show it")));
}

TEST_F(MatchedCommunicationTest, ACollectiveThatARankLacksIsUnmatched) {
  const std::string second = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(second)";
  AddRank(KinetoText(0, 2)
              .Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1}))
              .Kernel(second, 16, 60, 20, 2, Described("broadcast", "0", {0, 1})));
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  EXPECT_THAT(matched.ranks[0].unmatched,
              ElementsAre(Pair(ranks_[0].DeviceNode(second), HasSubstr("rank"))));
}

TEST_F(MatchedCommunicationTest, AGroupOfOneRankCommunicatesWithNobody) {
  AddRank(KinetoText(0, 1).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0})));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  EXPECT_THAT(matched.ranks[0].nodes, IsEmpty());
  EXPECT_THAT(matched.ranks[0].unmatched,
              ElementsAre(Pair(ranks_[0].DeviceNode(kAllReduce), "its group has one rank")));
}

TEST_F(MatchedCommunicationTest, UndescribedKernelsSaySo) {
  AddRank(KinetoText(0, 1).Kernel(kAllReduce, 16, 10, 30, 1));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  EXPECT_THAT(matched.ranks[0].unmatched,
              ElementsAre(Pair(ranks_[0].DeviceNode(kAllReduce), "its bytes are not known")));
}

TEST_F(MatchedCommunicationTest, GroupsThatDisagreeNameTheFilesAndRanks) {
  AddRank(KinetoText(0, 3).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "5", {0, 1})));
  AddRank(KinetoText(1, 3).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "5", {1, 2})));
  AddRank(KinetoText(2, 3));
  EXPECT_THAT(Match(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kineto_1.json: process group 5 has the ranks 1, 2"),
                             HasSubstr("but 0, 1 in kineto_0.json"))));
}

// Groups of one name that share no rank are the groups of a mesh's axis.
TEST_F(MatchedCommunicationTest, GroupsOfOneNameMayBeApart) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    const std::vector<int64_t> group = {rank % 2, rank % 2 + 2};
    AddRank(
        KinetoText(rank, 4).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "5", group)));
  }
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match());
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_NE(Find(matched, ranks_[i], i, kAllReduce), nullptr);
    EXPECT_THAT(Find(matched, ranks_[i], i, kAllReduce)->ranks,
                ElementsAre(static_cast<int64_t>(i % 2), static_cast<int64_t>(i % 2 + 2)));
  }
  EXPECT_EQ(Find(matched, ranks_[0], 0, kAllReduce)->instance,
            Find(matched, ranks_[2], 2, kAllReduce)->instance);
  EXPECT_NE(Find(matched, ranks_[0], 0, kAllReduce)->instance,
            Find(matched, ranks_[1], 1, kAllReduce)->instance);
}

TEST_F(MatchedCommunicationTest, TwoTracesOfOneRankAreRefused) {
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  EXPECT_THAT(Match(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("kineto_0.json"), HasSubstr("kineto_1.json"))));
}

// Rank 1 begins after rank 0 has ended.
TEST_F(MatchedCommunicationTest, ClocksThatContradictAreRefusedUnlessInsistedOn) {
  AddRank(KinetoText(0, 2).Kernel(kAllReduce, 16, 10, 30, 1, Described("allreduce", "0", {0, 1})));
  AddRank(KinetoText(1, 2).Kernel(kAllReduce, 16, 90, 20, 1, Described("allreduce", "0", {0, 1})));
  EXPECT_THAT(Match(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("1 of 1 collectives"), HasSubstr("run combine first"))));
  ASSERT_OK_AND_ASSIGN(const MatchedCommunication matched, Match(/*allow_violations=*/true));
  EXPECT_FALSE(matched.clocks_agree);
  // Nobody knows who waited: the kernels' own times.
  EXPECT_EQ(Find(matched, ranks_[0], 0, kAllReduce)->transfer_ps, 30 * kPsPerUs);
  EXPECT_EQ(Find(matched, ranks_[1], 1, kAllReduce)->transfer_ps, 20 * kPsPerUs);
}

TEST(RankCollectivesTest, KernelsHaveTheirNodesDescribedOrNot) {
  constexpr char kOldAllReduce[] = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)";
  KinetoText device(1, 4);
  device.Collective("allreduce", kAllReduce, 16, 20, 10, 1, 256);
  device.Kernel(kOldAllReduce, 16, 40, 10, 2).Kernel("mul", 7, 40, 10, 3);
  const TorchRank rank(HostTraceText(), device);
  const RankCollectives read =
      ReadRankCollectives(rank.device, rank.device_text, "kineto.json", rank.timeline);
  ASSERT_THAT(read.profile.ops, SizeIs(2));
  EXPECT_EQ(read.profile.ops[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(read.profile.ops[0].operand_bytes, 1024);
  EXPECT_TRUE(read.profile.ops[1].by_order);
  ASSERT_THAT(read.profile.events, SizeIs(2));
  EXPECT_THAT(read.nodes, ElementsAre(rank.DeviceNode(kAllReduce), rank.DeviceNode(kOldAllReduce)));
  EXPECT_THAT(read.undescribed, IsEmpty());
}

}  // namespace
}  // namespace meridian
