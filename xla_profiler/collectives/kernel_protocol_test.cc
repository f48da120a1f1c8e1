#include "xla_profiler/collectives/kernel_protocol.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(KernelProtocolTest, SymbolsNameAlgorithmAndProtocol) {
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclArgs<4096ul>)"),
            "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_AllGather_RING_LL"), "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclDevKernel_ReduceScatter_Sum_f8e4m3_COLLNET_DIRECT_SIMPLE(A)"),
            "COLLNET_DIRECT_SIMPLE");
  EXPECT_EQ(ProtocolOfKernel("rcclDevKernel_AllReduce_Sum_bf16_TREE_SIMPLE"), "TREE_SIMPLE");
}

TEST(KernelProtocolTest, OlderSymbolsNameThemFirst) {
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_AllReduce_TREE_LL128_Sum_float(ncclDevComm*)"),
            "TREE_LL128");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t"), "RING_LL");
  EXPECT_EQ(ProtocolOfKernel("ncclKernel_AllReduce_RING_LL_Sum___nv_bfloat16"), "RING_LL");
}

TEST(KernelProtocolTest, OthersNameNone) {
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
