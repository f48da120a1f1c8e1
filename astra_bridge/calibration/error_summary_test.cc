#include "astra_bridge/calibration/error_summary.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(ErrorSummaryTest, ErrorsAreRelativeToWhatWasMeasured) {
  const ErrorSummary summary =
      SummariseErrors({{1024, 100, 110}, {1 << 20, 200, 140}, {1 << 21, 100, 100}});
  EXPECT_EQ(summary.n(), 3);
  EXPECT_NEAR(summary.mape(), (0.1 + 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mean_signed_error(), (0.1 - 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mape_small(), 0.1, 1e-12);
  EXPECT_NEAR(summary.mape_large(), 0.15, 1e-12);
  // Between 0.1 and 0.3, a tenth of the way from the top.
  EXPECT_NEAR(summary.p95(), 0.28, 1e-12);
}

TEST(ErrorSummaryTest, PartsWithoutCellsAreAbsent) {
  EXPECT_FALSE(SummariseErrors({{1024, 100, 110}}).has_mape_large());
  EXPECT_FALSE(SummariseErrors({{1 << 20, 100, 110}}).has_mape_small());
  EXPECT_EQ(SummariseErrors({}).n(), 0);
}

}  // namespace
}  // namespace meridian
