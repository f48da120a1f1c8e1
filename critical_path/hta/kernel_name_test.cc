#include "critical_path/hta/hta_graph.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(KernelNameTest, DropsArgumentsAndReturnType) {
  EXPECT_EQ(ShortenKernelName("void at::native::f<4, int>(int, float*)"), "at::native::f");
  EXPECT_EQ(ShortenKernelName("gemm"), "gemm");
  EXPECT_EQ(ShortenKernelName("name with spaces"), "name with spaces");
  EXPECT_EQ(ShortenKernelName("enumerate(DataLoader)#next"), "enumerate#next");
  EXPECT_EQ(ShortenKernelName("a<b<c>>(d(e))->f"), "af");
}

TEST(KernelNameTest, ABracketThatNeverBeganTakesAll) {
  EXPECT_EQ(ShortenKernelName("a b(c> d"), "d");
  EXPECT_EQ(ShortenKernelName("(a"), "(a");
}

TEST(KernelNameTest, CopiesAndSetsStay) {
  EXPECT_EQ(ShortenKernelName("Memcpy DtoH (Device -> Pageable)"),
            "Memcpy DtoH (Device -> Pageable)");
  EXPECT_EQ(ShortenKernelName("hipMemset(x)"), "hipMemset(x)");
}

TEST(KernelNameTest, KnowsHtasCommunication) {
  EXPECT_TRUE(IsHtaCommunicationName("ncclDevKernel_AllReduce"));
  EXPECT_TRUE(IsHtaCommunicationName("x_ncclKernel_y"));
  EXPECT_TRUE(IsHtaCommunicationName("hipblas_gemm"));
  EXPECT_TRUE(IsHtaCommunicationName("hccl"));
  EXPECT_FALSE(IsHtaCommunicationName("my_nccl"));
  EXPECT_FALSE(IsHtaCommunicationName("gemm"));
}

}  // namespace
}  // namespace meridian
