#include "chakra_export/generate/workload_limits.h"

#include <cmath>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(WorkloadLimitsTest, RangesIncludeTheirEnds) {
  EXPECT_OK(CheckRange("--x", 1, 1, 3));
  EXPECT_OK(CheckRange("--x", 3, 1, 3));
  EXPECT_THAT(CheckRange("--x", 0, 1, 3), StatusIs(kInvalid, "--x=0: expected 1 to 3"));
  EXPECT_THAT(CheckRange("--x", 4, 1, 3), StatusIs(kInvalid, "--x=4: expected 1 to 3"));
}

TEST(WorkloadLimitsTest, ASpeedIsAPositiveNumber) {
  EXPECT_OK(CheckTflops(0.001));
  EXPECT_OK(CheckTflops(1e5));
  for (const double tflops :
       {0.0, -1.0, 2e5, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(CheckTflops(tflops), StatusIs(kInvalid, HasSubstr("--tflops"))) << tflops;
  }
}

TEST(WorkloadLimitsTest, WhatDoesNotDivideIsToldWhatWould) {
  EXPECT_OK(CheckDivides("--layers", 12, "--pp=4", 4));
  EXPECT_THAT(CheckDivides("--layers", 10, "--pp=4", 4),
              StatusIs(kInvalid, "--layers=10 does not divide by --pp=4; 8 or 12 would"));
  EXPECT_THAT(CheckDivides("--layers", 3, "--pp=4", 4),
              StatusIs(kInvalid, "--layers=3 does not divide by --pp=4; 4 would"));
}

TEST(WorkloadLimitsTest, CountsHaveLimits) {
  EXPECT_OK(CheckRankCount(kMaxGeneratedRanks));
  EXPECT_THAT(CheckRankCount(kMaxGeneratedRanks + 1),
              StatusIs(kInvalid, AllOf(HasSubstr("16,385 ranks"), HasSubstr("at most 16,384"))));
  EXPECT_OK(CheckGroupCount(499, ""));
  EXPECT_THAT(CheckGroupCount(500, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("500 process groups"), HasSubstr(": do x"))));
  EXPECT_OK(CheckNodeCount(kMaxGeneratedNodes, ""));
  EXPECT_THAT(CheckNodeCount(kMaxGeneratedNodes + 1, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("50,000,001 nodes"), HasSubstr(": do x"))));
  // More than 64 bits hold.
  EXPECT_THAT(CheckNodeCount(absl::int128(1) << 80, "do x"),
              StatusIs(kInvalid, HasSubstr("9,223,372,036,854,775,807")));
  EXPECT_OK(CheckAllGatherBytes(64, ""));
  EXPECT_THAT(CheckAllGatherBytes(63, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("63 bytes"), HasSubstr(": do x"))));
}

TEST(WorkloadLimitsTest, ComputationEnds) {
  // 10^17 ns at 1,000 operations in each.
  EXPECT_OK(CheckComputation(absl::int128(9'000'000'000'000'000'000), 100, ""));
  EXPECT_THAT(CheckComputation(absl::int128(9'000'000'000'000'000'000), 0.01, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("three years"), HasSubstr(": do x"))));
  EXPECT_THAT(CheckComputation(absl::int128(1) << 63, 100, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("64 bits"), HasSubstr(": do x"))));
}

}  // namespace
}  // namespace meridian
