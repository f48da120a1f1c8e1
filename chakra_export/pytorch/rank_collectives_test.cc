#include "chakra_export/pytorch/rank_collectives.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_rank.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kAllReduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";
constexpr char kOldAllReduce[] = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)";
constexpr char kSendRecv[] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)";

// The call, and its kernel from 20 us on.
KinetoText Launch(int64_t rank, const std::string& op, const std::string& kernel,
                  const std::string& arguments = "") {
  KinetoText device(rank, 4);
  device.Op(op, 1, 0, 10, 2).Call("cudaLaunchKernel", 1, 5, 2, 1);
  device.Kernel(kernel, 16, 20, 10, 1, arguments);
  return device;
}

// record_param_comms as PyTorch writes it before the profile describes kernels.
std::string Arguments(const std::string& tensors, const std::string& group, int64_t peer,
                      const std::string& name) {
  return absl::StrCat("[[", tensors, "], 17, ", group, ", ", peer, ", \"", name, "\"]");
}

RankCollectives Read(const TorchRank& rank, int64_t world_size = 4) {
  return ReadRankCollectives(rank.device, rank.device_text, "kineto.json", rank.host, rank.timeline,
                             world_size);
}

TEST(RankCollectivesTest, TheProfilesDescriptionComesFirst) {
  KinetoText device(1, 4);
  device.Op("record_param_comms", 1, 0, 10, 2).Call("cudaLaunchKernel", 1, 5, 2, 1);
  device.Collective("allreduce", kAllReduce, 16, 20, 10, 1, 256);
  // What the host trace says about the same call is something else.
  const TorchRank rank(HostTraceText().Op(2, 1, "record_param_comms", 1,
                                          Arguments(TensorJson(5, 8), "\"3\"", 0, "broadcast")),
                       device);
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.ops, SizeIs(1));
  EXPECT_EQ(read.profile.ops[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(read.profile.ops[0].operand_bytes, 1024);
  ASSERT_THAT(read.profile.events, SizeIs(1));
  EXPECT_THAT(read.nodes, ElementsAre(rank.DeviceNode(kAllReduce)));
  EXPECT_THAT(read.undescribed, IsEmpty());
}

TEST(RankCollectivesTest, OlderKernelsTakeBytesAndGroupFromTheirOperator) {
  HostTraceText host;
  host.Op(2, 1, "record_param_comms", 1,
          Arguments(absl::StrCat(TensorJson(5, 256), ", ", TensorJson(6, 64), ", ",
                                 TensorJson(7, 9, "cpu")),
                    R"(["3", "dp"])", 0, "allreduce"));
  // The list of groups is JSON in a string.
  host.Op(9, 1, "## process_group:init ##", 1,
          R"(["[{\"pg_name\": \"0\", \"ranks\": []}, {\"pg_name\": \"3\", \"ranks\": [3, 1]}]"])");
  const TorchRank rank(host, Launch(1, "record_param_comms", kOldAllReduce));
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.ops, SizeIs(1));
  const CollectiveOp& op = read.profile.ops[0];
  EXPECT_EQ(op.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(op.module, "3");
  // (256 + 64) floats; the tensor of the host does not count.
  EXPECT_EQ(op.operand_bytes, 1280);
  ASSERT_EQ(op.groups.size(), 1u);
  EXPECT_THAT(op.groups[0], ElementsAre(3, 1));
  ASSERT_THAT(read.profile.events, SizeIs(1));
  EXPECT_EQ(read.profile.events[0].start_ps, 20'000'000);
  EXPECT_EQ(read.profile.events[0].end_ps, 30'000'000);
  EXPECT_EQ(read.profile.events[0].correlation_id, 1u);
  EXPECT_EQ(read.profile.events[0].group, 0);
}

TEST(RankCollectivesTest, AGroupThatNobodyListsIsThatOfAllRanks) {
  const TorchRank rank(HostTraceText().Op(2, 1, "record_param_comms", 1,
                                          Arguments(TensorJson(5, 256), "\"0\"", 0, "allreduce")),
                       Launch(1, "record_param_comms", kOldAllReduce));
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.ops, SizeIs(1));
  ASSERT_EQ(read.profile.ops[0].groups.size(), 1u);
  EXPECT_THAT(read.profile.ops[0].groups[0], ElementsAre(0, 1, 2, 3));
}

// In the group {3, 1} the peer 0 is rank 3.
TEST(RankCollectivesTest, APeerIsAPlaceInItsGroup) {
  HostTraceText host;
  host.Op(2, 1, "record_param_comms", 1, Arguments(TensorJson(5, 256), "\"3\"", 0, "send"));
  host.Op(9, 1, "## process_group:init ##", 1, R"(["[{\"pg_name\": \"3\", \"ranks\": [3, 1]}]"])");
  const TorchRank rank(host, Launch(1, "record_param_comms", kSendRecv));
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.ops, SizeIs(1));
  EXPECT_EQ(read.profile.ops[0].kind, CollectiveKind::kSend);
  ASSERT_THAT(read.profile.ops[0].pairs, SizeIs(1));
  EXPECT_EQ(read.profile.ops[0].pairs[0].source, 1);
  EXPECT_EQ(read.profile.ops[0].pairs[0].target, 3);
  EXPECT_EQ(read.profile.ops[0].operand_bytes, 1024);
}

TEST(RankCollectivesTest, AReceiveComesFromItsPeer) {
  // Told by the operator's name where the arguments have none.
  HostTraceText host;
  host.Op(2, 1, "nccl:recv 2<-0", 1, absl::StrCat("[", TensorJson(5, 256), "]"));
  host.Op(3, 2, "record_param_comms", 1, Arguments(TensorJson(5, 256), "\"0\"", 0, "recv"));
  KinetoText device(2, 4);
  device.Op("nccl:recv 2<-0", 1, 0, 10, 2).Op("record_param_comms", 1, 1, 8, 3);
  device.Call("cudaLaunchKernel", 1, 5, 2, 1).Kernel(kSendRecv, 16, 20, 10, 1);
  const TorchRank rank(host, device);
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.ops, SizeIs(1));
  EXPECT_EQ(read.profile.ops[0].kind, CollectiveKind::kRecv);
  ASSERT_THAT(read.profile.ops[0].pairs, SizeIs(1));
  EXPECT_EQ(read.profile.ops[0].pairs[0].source, 0);
  EXPECT_EQ(read.profile.ops[0].pairs[0].target, 2);
}

TEST(RankCollectivesTest, APeerOutsideOfTheGroupIsNotKnown) {
  for (const int64_t peer : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    const TorchRank rank(HostTraceText().Op(2, 1, "record_param_comms", 1,
                                            Arguments(TensorJson(5, 256), "\"0\"", peer, "send")),
                         Launch(1, "record_param_comms", kSendRecv));
    const RankCollectives read = Read(rank);
    ASSERT_THAT(read.profile.ops, SizeIs(1));
    EXPECT_THAT(read.profile.ops[0].pairs, IsEmpty()) << peer;
  }
}

TEST(RankCollectivesTest, KernelsOfUnknownOperatorsAreUndescribed) {
  KinetoText device(0, 4);
  device.Op("aten::mul", 1, 0, 10, 2).Kernel(kOldAllReduce, 16, 20, 10, 1);
  const TorchRank rank(HostTraceText().Op(2, 1, "aten::mul"), device);
  const RankCollectives read = Read(rank);
  EXPECT_THAT(read.profile.events, IsEmpty());
  EXPECT_THAT(read.undescribed, ElementsAre(rank.DeviceNode(kOldAllReduce)));
}

// Those of the profile and those of the host trace together, by start; calls alike are one op.
TEST(RankCollectivesTest, EventsComeByStart) {
  const std::string arguments = Arguments(TensorJson(5, 256), "\"0\"", 0, "allreduce");
  HostTraceText host;
  host.Op(2, 1, "record_param_comms", 1, arguments).Op(3, 1, "record_param_comms", 1, arguments);
  KinetoText device(0, 4);
  device.Op("record_param_comms", 1, 0, 10, 2).Call("cudaLaunchKernel", 1, 5, 2, 1);
  device.Op("record_param_comms", 1, 10, 10, 3).Call("cudaLaunchKernel", 1, 15, 2, 2);
  device.Kernel(kOldAllReduce, 16, 60, 10, 2);
  device.Kernel(kOldAllReduce, 16, 20, 10, 1);
  device.Collective("allreduce", kAllReduce, 16, 40, 10, 3, 8);
  const TorchRank rank(host, device);
  const RankCollectives read = Read(rank);
  ASSERT_THAT(read.profile.events, SizeIs(3));
  EXPECT_EQ(read.profile.events[0].start_ps, 20'000'000);
  EXPECT_EQ(read.profile.events[1].start_ps, 40'000'000);
  EXPECT_EQ(read.profile.events[2].start_ps, 60'000'000);
  EXPECT_EQ(read.profile.events[0].op, read.profile.events[2].op);
  EXPECT_EQ(read.nodes[1], rank.DeviceNode(kAllReduce));
}

}  // namespace
}  // namespace meridian
