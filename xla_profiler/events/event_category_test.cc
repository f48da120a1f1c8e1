#include "xla_profiler/events/event_category.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(EventCategoryTest, KnowsKinetosCategories) {
  EXPECT_EQ(KinetoCategory("cpu_op", "aten::add"), EventCategory::kCpuOp);
  EXPECT_EQ(KinetoCategory("cuda_driver", "cuLaunchKernel"), EventCategory::kRuntimeApi);
  EXPECT_EQ(KinetoCategory("Kernel", "f"), EventCategory::kKernel);
  EXPECT_EQ(KinetoCategory("Trace", "PyTorch Profiler (0)"), EventCategory::kUnknown);
  EXPECT_EQ(KinetoCategory("", "x"), EventCategory::kUnknown);
}

TEST(EventCategoryTest, StepsAreAnnotationsOfACertainName) {
  EXPECT_EQ(KinetoCategory("user_annotation", "ProfilerStep#12"), EventCategory::kStep);
  EXPECT_EQ(KinetoCategory("user_annotation", "forward"), EventCategory::kAnnotation);
  EXPECT_EQ(KinetoCategory("gpu_user_annotation", "ProfilerStep#12"),
            EventCategory::kDeviceAnnotation);
}

TEST(EventCategoryTest, DeviceWorkIsToldFromHostWork) {
  EXPECT_TRUE(IsKinetoDeviceCategory(EventCategory::kMemset));
  EXPECT_TRUE(IsKinetoDeviceCategory(EventCategory::kDeviceSync));
  EXPECT_FALSE(IsKinetoDeviceCategory(EventCategory::kRuntimeApi));
  EXPECT_FALSE(IsKinetoDeviceCategory(EventCategory::kUnknown));
}

TEST(EventCategoryTest, CorrelationsAreLookedForWhereTheyMayBe) {
  EXPECT_TRUE(MayHaveKinetoCorrelation(EventCategory::kRuntimeApi));
  EXPECT_TRUE(MayHaveKinetoCorrelation(EventCategory::kKernel));
  EXPECT_TRUE(MayHaveKinetoCorrelation(EventCategory::kUnknown));
  EXPECT_FALSE(MayHaveKinetoCorrelation(EventCategory::kCpuOp));
}

TEST(EventCategoryTest, EveryCategoryHasAName) {
  for (int i = 0; i < kNumEventCategories; ++i) {
    EXPECT_NE(EventCategoryName(static_cast<EventCategory>(i)), "");
  }
}

}  // namespace
}  // namespace meridian
