#include "chakra_export/et/et_flavor.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TEST(EtFlavorTest, IsParsedFromItsName) {
  EXPECT_THAT(ParseEtFlavor("simulation"), IsOkAndHolds(EtFlavor::kSimulation));
  EXPECT_THAT(ParseEtFlavor("full"), IsOkAndHolds(EtFlavor::kFull));
}

TEST(EtFlavorTest, RefusesOtherNamesAndSaysWhichThereAre) {
  for (const char* name : {"", "Full", "full ", "both"}) {
    EXPECT_THAT(ParseEtFlavor(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is unknown; expected simulation or full")));
  }
}

}  // namespace
}  // namespace meridian
