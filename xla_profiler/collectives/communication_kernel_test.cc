#include "xla_profiler/collectives/communication_kernel.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(CommunicationKernelTest, KnowsOtherLibraries) {
  const auto kind = [](absl::string_view name) { return KindOfKernel(name, false); };
  for (const char* all_reduce :
       {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "_ZN4vllm26cross_device_reduce_2stageIfLi4EEE",
        "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f16",
        "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half>>(A)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(A)",
        "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<2>(A)",
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(A)",
        "void multimem_one_shot_all_reduce_kernel<float, 16>(A)", "multimem_all_reduce_kernel",
        "void mscclpp::collective::allreduceAllPairs<0, float>(A)",
        "void allreduce7<float>(float*, mscclpp::DeviceHandle<mscclpp::MemoryChannel>*)",
        "void rdxn_on_stream_kernel<float>(A)"}) {
    EXPECT_EQ(kind(all_reduce), CollectiveKind::kAllReduce) << all_reduce;
  }
  EXPECT_EQ(kind("void deep_ep::intranode::dispatch<8, 768>(A)"), CollectiveKind::kRaggedAllToAll);
  EXPECT_EQ(kind("void deep_ep::intranode::cached_notify_combine<8>(A)"), CollectiveKind::kBarrier);
  EXPECT_EQ(kind("void barrier_on_stream_kernel_threadgroup<1>(int)"), CollectiveKind::kBarrier);
  EXPECT_EQ(kind("multimem_all_gather_kernel"), CollectiveKind::kAllGather);
  // Halves of an exchange, and what runs any collective, communicate, but tell no kind.
  for (const char* any : {"void deep_ep::internode_ll::dispatch<true, 7168>(A)",
                          "void mscclpp::executionKernel<mscclpp::LL8Packet>(A)"}) {
    EXPECT_TRUE(IsCommunicationKernel(any)) << any;
    EXPECT_EQ(kind(any), std::nullopt) << any;
  }
  for (const char* compute :
       {"triton_poi_fused_one_shot_all_reduce_2", "void at::native::reduce_kernel<512, 1>(A)",
        "void my_barrier_kernel(int)", "deep_ep::layout::get_dispatch_layout", "all_reduce"}) {
    EXPECT_FALSE(IsCommunicationKernel(compute)) << compute;
  }
}

TEST(CommunicationKernelTest, UsersAddRows) {
  EXPECT_FALSE(IsCommunicationKernel("my_fast_reduce_kernel(float*)"));
  EXPECT_OK(AddCommunicationKernels(
      "# ours\n\nmy_fast_\\w{1,9}_kernel, all-reduce\nmy_other,unknown\r\n", "rows.csv"));
  EXPECT_EQ(KindOfKernel("my_fast_reduce_kernel(float*)", false), CollectiveKind::kAllReduce);
  EXPECT_TRUE(IsCommunicationKernel("my_other"));
  EXPECT_EQ(KindOfKernel("my_other", false), std::nullopt);
}

TEST(CommunicationKernelTest, WrongRowsAreRefusedWithTheirLine) {
  const auto refused = [](absl::string_view text) {
    return std::string(AddCommunicationKernels(text, "rows.csv").message());
  };
  EXPECT_THAT(refused("a,all-reduce\nb"), HasSubstr("rows.csv:2: expected pattern,kind"));
  EXPECT_THAT(refused("a,sum"), HasSubstr("rows.csv:1: 'sum' is no kind of collective"));
  EXPECT_THAT(refused("(,all-reduce"), HasSubstr("rows.csv:1: no regular expression"));
  EXPECT_THAT(refused(std::string(1001, 'x') + ",all-reduce"), HasSubstr("more than 1000"));
  std::string rows;
  for (int i = 0; i < 1001; ++i) rows += "zzz,barrier\n";
  EXPECT_THAT(refused(rows), HasSubstr("rows.csv:1001: more than 1000 rows"));
  // Nothing of a refused file counts.
  EXPECT_FALSE(IsCommunicationKernel("zzz"));
}

TEST(CommunicationKernelTest, KnowsNcclAndRccl) {
  EXPECT_TRUE(IsCommunicationKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"));
  EXPECT_TRUE(IsCommunicationKernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t"));
  EXPECT_TRUE(IsCommunicationKernel("RCCLDevKernel"));
  EXPECT_FALSE(IsCommunicationKernel("void at::native::ncclish<float>()"));
  EXPECT_FALSE(IsCommunicationKernel("hipBLASLt_gemm"));
}

TEST(CommunicationKernelTest, KernelsNameTheirFunctionAsAWord) {
  EXPECT_EQ(KindOfKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", true),
            CollectiveKind::kAllReduce);
  EXPECT_EQ(KindOfKernel("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", true),
            CollectiveKind::kAllGather);
  EXPECT_EQ(KindOfKernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", true),
            CollectiveKind::kReduceScatter);
  EXPECT_EQ(KindOfKernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", true),
            CollectiveKind::kAllToAll);
  EXPECT_EQ(KindOfKernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", false),
            CollectiveKind::kCollectivePermute);
  EXPECT_EQ(KindOfKernel("input_reduce_fusion", true), std::nullopt);
  EXPECT_EQ(KindOfKernel("ncclDevKernel_Generic_1(int)", true), std::nullopt);
}

}  // namespace
}  // namespace meridian
