#include "trace_alignment/clocks/clock_anchors.h"

#include <optional>

#include "gtest/gtest.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

absl::StatusOr<ClockAnchors> Read(absl::string_view text) {
  return ReadClockAnchors(JsonlRow(text, "a.jsonl", 1, "{}"));
}

TEST(ClockAnchorsTest, EachIsReadAloneOrWithTheOther) {
  ASSERT_OK_AND_ASSIGN(const ClockAnchors both,
                       Read(R"({"start_walltime_ns":1700000000000000001,"start_gpu_ns":-5})"));
  EXPECT_EQ(both.start_walltime_ns, 1700000000000000001);
  EXPECT_EQ(both.start_gpu_ns, -5);
  ASSERT_OK_AND_ASSIGN(const ClockAnchors gpu, Read(R"({"start_gpu_ns":7})"));
  EXPECT_EQ(gpu.start_walltime_ns, std::nullopt);
  EXPECT_EQ(gpu.start_gpu_ns, 7);
}

TEST(ClockAnchorsTest, AWallTimeOfZeroMeansNeitherIsKnown) {
  ASSERT_OK_AND_ASSIGN(const ClockAnchors none,
                       Read(R"({"start_walltime_ns":0,"start_gpu_ns":7})"));
  EXPECT_EQ(none.start_walltime_ns, std::nullopt);
  EXPECT_EQ(none.start_gpu_ns, std::nullopt);
}

TEST(ClockAnchorsTest, WhatIsNoIntegerIsRefused) {
  EXPECT_THAT(Read(R"({"start_gpu_ns":1.5})"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace meridian
