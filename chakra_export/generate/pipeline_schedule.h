// In which order a stage of a pipeline takes the forward (F) and backward (B) passes of its
// microbatches. Three stages, four microbatches:
//
//   GPipe            stage 0   F0 F1 F2 F3          B3 B2 B1 B0
//                    stage 1      F0 F1 F2 F3    B3 B2 B1 B0
//                    stage 2         F0 F1 F2 F3 B3 B2 B1 B0       all activations are kept
//
//   1F1B             stage 0   F0 F1 F2       B0 F3 B1    B2    B3
//                    stage 1      F0 F1    B0 F2 B1 F3 B2    B3
//                    stage 2         F0 B0 F1 B1 F2 B2 F3 B3       those of at most 3 microbatches
//
// Either takes (microbatches + stages - 1) times a forward and a backward pass of one stage.
#ifndef CHAKRA_EXPORT_GENERATE_PIPELINE_SCHEDULE_H_
#define CHAKRA_EXPORT_GENERATE_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <vector>

namespace meridian {

enum class PipelineSchedule : uint8_t { kGpipe, kOneForwardOneBackward };

struct PipelinePass {
  bool is_forward = true;
  int64_t microbatch = 0;

  friend bool operator==(const PipelinePass& a, const PipelinePass& b) {
    return a.is_forward == b.is_forward && a.microbatch == b.microbatch;
  }
};

std::vector<PipelinePass> PassesOfStage(PipelineSchedule schedule, int64_t stage, int64_t stages,
                                        int64_t microbatches);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_PIPELINE_SCHEDULE_H_
