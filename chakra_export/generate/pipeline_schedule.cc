#include "chakra_export/generate/pipeline_schedule.h"

#include <algorithm>

namespace meridian {

std::vector<PipelinePass> PassesOfStage(PipelineSchedule schedule, int64_t stage, int64_t stages,
                                        int64_t microbatches) {
  std::vector<PipelinePass> passes;
  passes.reserve(2 * microbatches);
  if (schedule == PipelineSchedule::kGpipe) {
    for (int64_t i = 0; i < microbatches; ++i) passes.push_back({true, i});
    for (int64_t i = microbatches - 1; i >= 0; --i) passes.push_back({false, i});
    return passes;
  }
  // How far ahead of its first backward pass the stage is when the last stage begins.
  const int64_t ahead = std::min(microbatches, stages - 1 - stage);
  for (int64_t i = 0; i < ahead; ++i) passes.push_back({true, i});
  for (int64_t i = 0; i < microbatches; ++i) {
    if (ahead + i < microbatches) passes.push_back({true, ahead + i});
    passes.push_back({false, i});
  }
  return passes;
}

}  // namespace meridian
