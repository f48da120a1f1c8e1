// SPDX-License-Identifier: Apache-2.0
// One training step of a transformer on tensor x data x pipeline parallel ranks (RankLayout), or its
// forward passes alone, for inference. docs/chakra_generate.md lists what is computed and what is
// communicated, how often and with how many bytes.
//
// A stage of the pipeline has an equal share of the layers, the first also the embedding, the last
// the head (output weights of its own). The microbatches pass through as PipelineSchedule says,
// each forward pass like this, a backward pass likewise in the other direction:
//
//   receive --> attention --> all-reduce --> MLP --> all-reduce --> next layer ... --> send
//               forward       of the tensor  forward
//                             group
//
// - The next receive of a direction is posted when the one before is done.
// - Gradients are summed beside further computation, but after all that another stage waits for.
//   Those of experts are nobody else's.
// - Sharded parameters are gathered before a pass computes with them, one part ahead.
// - The optimizer is one node, after all gradients.
//
// Communication has no duration of its own: it is what simulators find out.
#ifndef CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_
#define CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "chakra_export/generate/device_model.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// In which order a stage of the pipeline takes the forward (F) and backward (B) passes of its
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
//
// Interleaved 1F1B: a stage holds several chunks of layers that lie apart, so that a microbatch
// passes through all stages once for each chunk (chunk.microbatch). Two stages of two chunks, four
// microbatches:
//
//                    stage 0   F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 ...
//                    stage 1   F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 ...
//
// The ramps at both ends are shorter by the number of chunks; messages are as many times more.
enum class PipelineSchedule : uint8_t { kGpipe, kOneForwardOneBackward };

struct PipelinePass {
  bool is_forward = true;
  int64_t microbatch = 0;
  // Which of the stage's chunks of layers, from 0.
  int64_t chunk = 0;
  // Whether no later backward pass of the stage is of the same chunk.
  bool completes_gradients = false;
};

// More than one chunk is of 1F1B alone; then microbatches must divide by stages.
std::vector<PipelinePass> PassesOfStage(PipelineSchedule schedule, int64_t stage, int64_t stages,
                                        int64_t microbatches, int64_t chunks = 1);

// What a step is. For inference, passes are forward alone: of all tokens of the sequences, or of one
// new token of each, whose attention reads what was kept of the others.
enum class TransformerPhase : uint8_t { kTraining, kPrefill, kDecode };

// The names of flags are in error messages: --tp for tensor_parallel and so on.
struct TransformerOptions {
  int64_t tensor_parallel = 1;
  int64_t data_parallel = 1;
  int64_t pipeline_parallel = 1;
  // Beside the data parallel copies: so many share each sequence.
  int64_t context_parallel = 1;

  int64_t layers = 24;
  int64_t hidden = 2048;
  int64_t sequence = 2048;
  // 0 for neither embedding nor head.
  int64_t vocabulary = 51200;

  // Sequences of the step, over all data parallel copies, and into how many parts a copy cuts its
  // share.
  int64_t batch = 32;
  int64_t microbatches = 4;

  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  // Chunks of layers that a stage holds (interleaved stages).
  int64_t chunks = 1;
  // Between attention and MLP the tensor parallel ranks have a part of the tokens each (Megatron's
  // sequence parallelism): sums are scattered, and gathered where all tokens are needed.
  bool sequence_parallel = false;
  // Bytes of one number of the activations, parameters and gradients.
  int64_t element_bytes = 2;
  // What a rank really reaches, in 10^12 operations per second; gives computations their durations.
  double tflops = 300;
  // Where it has memories, its roofline gives them instead.
  DeviceModel device;
  // The copies divide the optimizer between them (ZeRO).
  bool zero = false;
  // They divide the parameters, too (fully sharded data parallel, ZeRO-3).
  bool sharded = false;
  // Of each layer, in place of the MLP, divided between the copies; 0 for the MLP. And to how many
  // of them a token goes.
  int64_t experts = 0;
  int64_t experts_per_token = 2;
  TransformerPhase phase = TransformerPhase::kTraining;
};

// What the pieces of a transformer cost one rank, for one microbatch; docs/chakra_generate.md has the
// formulas. Every product reads its operands and writes its result once; attention scores never
// leave the chip.
struct TransformerCost {
  // Costs of the forward pass.
  WorkCost attention;
  WorkCost mlp;
  WorkCost embedding;
  WorkCost head;
  // Parameters that one rank holds of one layer, without its experts; of its experts; and of the
  // embedding, or of the head, which has as many.
  int64_t layer_parameters = 0;
  int64_t expert_parameters = 0;
  int64_t vocabulary_parameters = 0;
  // What goes from layer to layer.
  int64_t activation_bytes = 0;
  // The keys and values of a rank's own tokens, in bytes.
  int64_t context_bytes = 0;
  // What goes to the experts of the tokens, and back.
  int64_t expert_bytes = 0;
  // What the ranks of a tensor group sum to get the loss: of each token its largest logit, the sum of
  // exponentials and the logit of the right answer, as 4-byte numbers. Or to get the next token: 8
  // bytes of each.
  int64_t loss_bytes = 0;
};

// The sizes must be in range and divide each other as MakeTransformerStep wants it. OutOfRange when
// something does not fit into 64 bits, the backward pass included.
absl::StatusOr<TransformerCost> CostOfTransformer(const TransformerOptions& options);

WorkCost BackwardCost(const WorkCost& forward);

// Adam: 12 operations for a parameter. It reads the gradient and writes the parameter, of
// element_bytes each, and reads and writes three 4-byte numbers: the exact parameter and two
// moments.
absl::StatusOr<WorkCost> OptimizerCost(absl::int128 parameters, int64_t element_bytes);

// InvalidArgument or OutOfRange for sizes that are out of range, do not divide each other or make a
// workload that is too large.
absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeTransformerStep(
    const TransformerOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_
