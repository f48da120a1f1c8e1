#include "critical_path/node_bound.h"

#include "chakra_export/et/et_attributes.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(NodeBoundTest, GapsComeBeforeWhereTheyAre) {
  EXPECT_EQ(BoundByOf(kHostGapOpKind, false, false), BoundBy::kHostGap);
  EXPECT_EQ(BoundByOf(kHostGapOpKind, true, true), BoundBy::kHostGap);
}

TEST(NodeBoundTest, TheHostIsTheCpu) {
  EXPECT_EQ(BoundByOf("", true, false), BoundBy::kCpu);
  EXPECT_EQ(BoundByOf("", true, true), BoundBy::kCpu);
}

TEST(NodeBoundTest, CollectivesWithoutACounterpartCommunicate) {
  EXPECT_EQ(BoundByOf("", false, true), BoundBy::kGpuCommunication);
  EXPECT_EQ(BoundByOf(kUnmatchedOpKind, false, false), BoundBy::kGpuCommunication);
  EXPECT_EQ(BoundByOf(kLocalOpKind, false, false), BoundBy::kGpuCommunication);
}

TEST(NodeBoundTest, AllElseOnDevicesComputes) {
  EXPECT_EQ(BoundByOf("", false, false), BoundBy::kGpuCompute);
  EXPECT_EQ(BoundByOf(kMemcpyOpKind, false, false), BoundBy::kGpuCompute);
}

}  // namespace
}  // namespace meridian
