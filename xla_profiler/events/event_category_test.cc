#include "xla_profiler/events/event_category.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

TEST(EventCategoryTest, KnowsKinetosCategories) {
  EXPECT_EQ(KinetoCategory("cpu_op", "aten::add"), EventCategory::kCpuOp);
  EXPECT_EQ(KinetoCategory("cuda_driver", "cuLaunchKernel"), EventCategory::kRuntimeApi);
  EXPECT_EQ(KinetoCategory("Kernel", "f"), EventCategory::kKernel);
  EXPECT_EQ(KinetoCategory("mtia_ccp_events", "fc-dtype_Float"), EventCategory::kKernel);
  EXPECT_EQ(KinetoCategory("mtia_ccp_events", "dma_request"), EventCategory::kMemcpy);
  EXPECT_EQ(KinetoCategory("mtia_ccp_events", "event_wait"), EventCategory::kUnknown);
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

std::vector<EventCategory> Categories(bool on_device, const XPlaneProto& proto) {
  const std::string bytes = proto.SerializeAsString();
  const XSpaceSource source{bytes, {}};
  const auto plane = XPlaneVisitor::Create(source, bytes);
  EXPECT_OK(plane);
  std::vector<EventCategory> categories;
  EXPECT_OK(plane->ForEachLine([&](const XLineVisitor& line) {
    return line.ForEachEvent([&](const XEventVisitor& event) {
      categories.push_back(XSpaceEventCategory(on_device, line, event));
    });
  }));
  return categories;
}

TEST(EventCategoryTest, DevicesAreToldByLinesAndDetails) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  int64_t id = 0;
  for (const char* name : {"XLA Modules", "XLA Ops", "Async XLA Ops", "Steps", "Source code"}) {
    XLineBuilder line = plane.GetOrCreateLine(++id);
    line.SetName(name);
    line.AddEvent(*plane.GetOrCreateEventMetadata("event"));
  }
  XLineBuilder stream = plane.GetOrCreateLine(++id);
  stream.SetName("Stream #14(Compute,MemcpyD2D)");
  stream.AddEvent(*plane.GetOrCreateEventMetadata("fusion"));
  stream.AddEvent(*plane.GetOrCreateEventMetadata("copy"))
      .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kMemcpyDetails), "size:4");
  stream.AddEvent(*plane.GetOrCreateEventMetadata("set"))
      .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kMemsetDetails), "size:4");
  EXPECT_THAT(Categories(/*on_device=*/true, proto),
              ElementsAre(EventCategory::kXlaModule, EventCategory::kXlaOp, EventCategory::kXlaOp,
                          EventCategory::kStep, EventCategory::kUnknown, EventCategory::kKernel,
                          EventCategory::kMemcpy, EventCategory::kMemset));
}

TEST(EventCategoryTest, HostsAreToldByLinesStepsAndNames) {
  XPlaneProto proto;
  XPlaneBuilder plane(&proto);
  XLineBuilder api = plane.GetOrCreateLine(1);
  api.SetName("Host Threads/469");
  api.AddEvent(*plane.GetOrCreateEventMetadata("cuLaunchKernel"));
  XLineBuilder python = plane.GetOrCreateLine(2);
  python.SetName("python3");
  python.AddEvent(*plane.GetOrCreateEventMetadata("train"))
      .AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kStepNum), 3);
  python.AddEvent(*plane.GetOrCreateEventMetadata("$api.py:12 jit"));
  python.AddEvent(*plane.GetOrCreateEventMetadata("PjitFunction(f)"));
  EXPECT_THAT(Categories(/*on_device=*/false, proto),
              ElementsAre(EventCategory::kRuntimeApi, EventCategory::kStep, EventCategory::kPython,
                          EventCategory::kAnnotation));
}

}  // namespace
}  // namespace meridian
