#include "chakra_export/generate/pipeline_schedule.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

constexpr PipelineSchedule kOneForwardOneBackward = PipelineSchedule::kOneForwardOneBackward;

std::string Text(const std::vector<PipelinePass>& passes) {
  return absl::StrJoin(passes, " ", [](std::string* out, const PipelinePass& pass) {
    absl::StrAppend(out, pass.is_forward ? "F" : "B", pass.microbatch);
  });
}

// The pictures of the header.
TEST(PipelineScheduleTest, GpipeRunsAllForwardPassesFirst) {
  for (int64_t stage = 0; stage < 3; ++stage) {
    EXPECT_EQ(Text(PassesOfStage(PipelineSchedule::kGpipe, stage, 3, 4)),
              "F0 F1 F2 F3 B3 B2 B1 B0");
  }
}

TEST(PipelineScheduleTest, OneForwardOneBackwardAlternatesOnceTheLastStageHasWork) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(PipelineScheduleTest, OneStageHasNoPipeline) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 1, 2)), "F0 B0 F1 B1");
}

TEST(PipelineScheduleTest, FewerMicrobatchesThanStagesAllGoForwardFirst) {
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 0, 5, 2)), "F0 F1 B0 B1");
  EXPECT_EQ(Text(PassesOfStage(kOneForwardOneBackward, 4, 5, 2)), "F0 B0 F1 B1");
}

// So no stage keeps the activations of more microbatches than there are stages from it on.
TEST(PipelineScheduleTest, OneForwardOneBackwardIsNeverFartherAheadThanItsPlace) {
  for (int64_t stage = 0; stage < 6; ++stage) {
    int64_t kept = 0;
    int64_t most = 0;
    for (const PipelinePass& pass : PassesOfStage(kOneForwardOneBackward, stage, 6, 40)) {
      kept += pass.is_forward ? 1 : -1;
      most = std::max(most, kept);
    }
    EXPECT_EQ(kept, 0);
    EXPECT_EQ(most, 6 - stage);
  }
}

}  // namespace
}  // namespace meridian
