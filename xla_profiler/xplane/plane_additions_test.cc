#include "xla_profiler/xplane/plane_additions.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

// The order of libprotobuf's maps changes from process to process.
TEST(PlaneAdditionsTest, StatsAreWrittenInTheOrderOfTheirIds) {
  PlaneAdditions additions{XPlaneProto()};
  for (int i = 10; i < 60; ++i) additions.DefineStat(absl::StrCat("stat", i));
  const std::string bytes = additions.Serialize();
  size_t last = 0;
  for (int i = 10; i < 60; ++i) {
    const size_t place = bytes.find(absl::StrCat("stat", i));
    ASSERT_NE(place, std::string::npos);
    EXPECT_GT(place, last) << i;
    last = place;
  }
}

}  // namespace
}  // namespace meridian
