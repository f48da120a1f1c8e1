#include "xla_profiler/collectives/communication_kernel.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

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

TEST(CommunicationKernelTest, SymbolsNameAlgorithmAndProtocol) {
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclArgs<4096ul>)"),
            "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_AllGather_RING_LL"), "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_ReduceScatter_Sum_f8e4m3_COLLNET_DIRECT_SIMPLE(A)"),
            "COLLNET_DIRECT_SIMPLE");
  EXPECT_EQ(ProtocolOfKernel("rcclDevKernel_AllReduce_Sum_bf16_TREE_SIMPLE"), "TREE_SIMPLE");
}

TEST(CommunicationKernelTest, OlderSymbolsNameThemFirst) {
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_AllReduce_TREE_LL128_Sum_float(ncclDevComm*)"),
            "TREE_LL128");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t"), "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_AllReduce_RING_LL_Sum___nv_bfloat16"), "RING_LL");
}

TEST(CommunicationKernelTest, OthersNameNone) {
  EXPECT_EQ(ProtocolOfKernel(""), "");
  EXPECT_EQ(ProtocolOfKernel("nccl"), "");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"), "");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"), "");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_Generic_4(ncclDevComm*)"), "");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_AllReduce_Sum_f32(RING_LL)"), "");
  EXPECT_EQ(ProtocolOfKernel("gemm_fusion_RING_LL"), "");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_" + std::string(100, 'A')), "");
}

}  // namespace
}  // namespace meridian
