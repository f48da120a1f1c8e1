#include "trace_alignment/combine/plane_naming.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(PlaneNamingTest, DevicesAreNumberedThroughPerKind) {
  PlaneNames names(PlaneNaming::kViewer);
  EXPECT_THAT(names.Name(0, "/device:GPU:0"), IsOkAndHolds("/device:GPU:0"));
  EXPECT_THAT(names.Name(0, "/device:GPU:1"), IsOkAndHolds("/device:GPU:1"));
  EXPECT_THAT(names.Name(3, "/device:GPU:0"), IsOkAndHolds("/device:GPU:2"));
  EXPECT_THAT(names.Name(3, "/device:TPU:0"), IsOkAndHolds("/device:TPU:0"));
  EXPECT_THAT(names.Name(4, "/device:TPU:0"), IsOkAndHolds("/device:TPU:1"));
}

TEST(PlaneNamingTest, PlanesOfOneDeviceShareItsNumber) {
  PlaneNames names(PlaneNaming::kViewer);
  EXPECT_THAT(names.Name(0, "/device:TPU:0"), IsOkAndHolds("/device:TPU:0"));
  EXPECT_THAT(names.Name(1, "/device:TPU:0"), IsOkAndHolds("/device:TPU:1"));
  EXPECT_THAT(names.Name(1, "/device:TPU:0 SparseCore 1"),
              IsOkAndHolds("/device:TPU:1 SparseCore 1"));
}

TEST(PlaneNamingTest, OtherPlanesAreNamedByTheirNode) {
  PlaneNames names(PlaneNaming::kViewer);
  EXPECT_THAT(names.Name(3, "/host:snapshots"), IsOkAndHolds("/node:3/host:snapshots"));
  EXPECT_THAT(names.Name(3, "Megascale Trace"), IsOkAndHolds("/node:3/Megascale Trace"));
  EXPECT_THAT(names.Name(3, "/device:CUSTOM:Megascale"),
              IsOkAndHolds("/node:3/device:CUSTOM:Megascale"));
}

TEST(PlaneNamingTest, AllPlanesCanBeNamedByTheirNode) {
  PlaneNames names(PlaneNaming::kNodePrefix);
  EXPECT_THAT(names.Name(3, "/device:GPU:0"), IsOkAndHolds("/node:3/device:GPU:0"));
}

TEST(PlaneNamingTest, MoreDevicesThanViewersShowAreRefusedWithAWayOut) {
  PlaneNames names(PlaneNaming::kViewer);
  for (int64_t node = 0; node < kMaxViewerDevices; ++node) {
    ASSERT_OK(names.Name(node, "/device:GPU:0"));
  }
  EXPECT_THAT(names.Name(kMaxViewerDevices, "/device:GPU:0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--output_dir")));
  PlaneNames by_node(PlaneNaming::kNodePrefix);
  for (int64_t node = 0; node <= kMaxViewerDevices; ++node) {
    ASSERT_OK(by_node.Name(node, "/device:GPU:0"));
  }
}

}  // namespace
}  // namespace meridian
