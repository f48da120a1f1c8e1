#include "xla_profiler/testing/xplane_utils.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(XPlaneUtilsTest, FindsAddsAndRemovesPlanes) {
  XSpaceProto space;
  for (const char* name : {"/device:GPU:0", "/host:CPU", "/device:GPU:0"}) {
    space.add_planes()->set_name(name);
  }
  EXPECT_EQ(FindPlaneWithName(space, "/device:GPU:0"), &space.planes(0));
  EXPECT_EQ(FindPlaneWithName(space, "/device:GPU"), nullptr);
  EXPECT_EQ(FindOrAddMutablePlaneWithName(&space, "/host:CPU"), &space.planes(1));
  XPlaneProto* added = FindOrAddMutablePlaneWithName(&space, "/host:metadata");
  ASSERT_EQ(space.planes_size(), 4);
  EXPECT_EQ(added, &space.planes(3));
  EXPECT_EQ(FindMutablePlaneWithName(&space, "/host:metadata"), added);
  RemovePlane(&space, &space.planes(0));
  ASSERT_EQ(space.planes_size(), 3);
  EXPECT_EQ(space.planes(0).name(), "/host:CPU");
  EXPECT_EQ(&space.planes(2), added);
}

}  // namespace
}  // namespace meridian
