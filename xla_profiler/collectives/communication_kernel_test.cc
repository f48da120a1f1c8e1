#include "xla_profiler/collectives/communication_kernel.h"

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

}  // namespace
}  // namespace meridian
