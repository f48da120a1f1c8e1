#include "critical_path/what_if/reorder_suggestions.h"

#include <cstdint>
#include <string>
#include <vector>

#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

ReorderSuggestions Suggest(const MeasuredGraph& measured, int64_t max_replays = 300) {
  absl::StatusOr<WhatIfResult> result = WhatIf(measured, "scale all 1");
  EXPECT_OK(result);
  absl::StatusOr<ReorderSuggestions> suggestions =
      SuggestReorderings(result->edited, result->path, max_replays);
  EXPECT_OK(suggestions);
  return suggestions.ok() ? *std::move(suggestions) : ReorderSuggestions();
}

TEST(ReorderSuggestionsTest, WhatIsWaitedForGoesFirst) {
  const ReorderSuggestions found = Suggest(Gradients());
  ASSERT_THAT(found.suggestions, SizeIs(1));
  // 165 us become 128 (structure_edits_test.cc).
  EXPECT_EQ(found.suggestions[0].gain_ps, 37'000'000);
  EXPECT_EQ(found.suggestions[0].edits, "move event=7 before event=6");
  // What it says is what an edit gives.
  EXPECT_EQ(MicrosAfter(Gradients(), found.suggestions[0].edits), 128);
}

// A collective that waits for a late kernel holds up another one that could run.
//
//   stream 7    |-- k: 10 .. 90 ------------|                  |-- m: 173 .. 203 --|
//   stream 20                                |- r1: 92 .. 122 -|- r2: 122 .. 172 -|
//
// r1 waits for k, r2 for nothing but the launch at 20, m for r2.
MeasuredGraph HeldUp() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaEventRecord", 5, 1, 10);
  trace.Call("cudaStreamWaitEvent", 6, 1, 11);
  trace.Call("cudaLaunchKernel", 10, 5, 2);
  trace.Call("cudaLaunchKernel", 20, 5, 3);
  trace.Call("cudaEventRecord", 25, 1, 12);
  trace.Call("cudaStreamWaitEvent", 26, 1, 13);
  trace.Call("cudaLaunchKernel", 30, 5, 4);
  trace.Call("cudaDeviceSynchronize", 35, 173, 5);
  trace.Kernel("k", 10, 80, 7, 1);
  trace.Kernel("nccl_r1", 92, 30, 20, 2);
  trace.Kernel("nccl_r2", 122, 50, 20, 3);
  trace.Kernel("m", 173, 30, 7, 4);
  trace.EventSync("Stream Wait Event", 90, 0, 20, 11, 7, 10);
  trace.EventSync("Stream Wait Event", 172, 0, 7, 13, 20, 12);
  trace.Sync("Context Sync", 35, 173, -1, 5);
  return MeasureTrace(trace);
}

TEST(ReorderSuggestionsTest, WhatCouldRunDoesNotWaitBehindWhatCannot) {
  EXPECT_EQ(MicrosAfter(HeldUp(), "scale all 1"), 208);
  const ReorderSuggestions found = Suggest(HeldUp());
  ASSERT_THAT(found.suggestions, SizeIs(1));
  EXPECT_EQ(found.suggestions[0].edits, "move event=11 before event=10");
  // r2 30 .. 80 (10 after its launch), r1 92 .. 122, m after k 90 and r2 80: both streams are free
  // before r1 ends, m 91 .. 121, and the host returns 5 after r1.
  EXPECT_EQ(found.suggestions[0].gain_ps, (208 - 127) * 1'000'000);
}

TEST(ReorderSuggestionsTest, AChainCannotBeShortened) {
  KinetoTrace trace;
  for (int i = 0; i < 4; ++i) {
    trace.Call("cudaLaunchKernel", 5 * i, 5, i + 1);
    trace.Kernel("k", 10 + 40 * i, 40, 7, i + 1);
  }
  trace.Call("cudaDeviceSynchronize", 20, 160, 9);
  trace.Sync("Context Sync", 20, 160, -1, 9);
  const ReorderSuggestions found = Suggest(MeasureTrace(trace));
  EXPECT_THAT(found.suggestions, IsEmpty());
  EXPECT_GT(found.candidates, 0);
  EXPECT_EQ(found.tried, found.candidates);
}

TEST(ReorderSuggestionsTest, WorkIsBounded) {
  const ReorderSuggestions found = Suggest(Gradients(), /*max_replays=*/0);
  EXPECT_EQ(found.tried, 0);
  EXPECT_GT(found.candidates, 0);
}

}  // namespace
}  // namespace meridian
