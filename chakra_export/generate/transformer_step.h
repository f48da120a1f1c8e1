// One training step of a transformer on tensor x data x pipeline parallel ranks (rank_layout.h).
//
// A stage of the pipeline has an equal share of the layers, the first also the embedding, the last
// the head (output weights of its own). The microbatches pass through as the schedule says
// (pipeline_schedule.h), each pass like this, B likewise in the other direction:
//
//   receive --> attention --> all-reduce --> MLP --> all-reduce --> next layer ... --> send
//               forward       of the tensor  forward
//                             group
//
//   tensor parallel    Megatron's: an all-reduce of the activations after attention and MLP,
//                      forward and backward; after the embedding, for the loss, and for the
//                      gradient that leaves the head
//   pipeline           messages between ranks of equal indices; the tag of an activation is its
//                      microbatch, of a gradient that plus the number of microbatches. The next
//                      receive of a direction is posted when the one before is done
//   data parallel      once a layer's last gradient is there, an all-reduce of all its gradients,
//                      beside further computation, but after all that another stage waits for.
//                      With `zero`: a reduce-scatter, and after the optimizer an all-gather of the
//                      parameters
//   optimizer          one node, after all gradients
//
// Communication has no duration of its own: it is what simulators find out.
#ifndef CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_
#define CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/pipeline_schedule.h"

namespace meridian {

// The names of flags are in error messages: --tp for tensor_parallel and so on.
struct TransformerOptions {
  int64_t tensor_parallel = 1;
  int64_t data_parallel = 1;
  int64_t pipeline_parallel = 1;

  int64_t layers = 24;
  int64_t hidden = 2048;
  int64_t sequence = 2048;
  // 0: neither embedding nor head.
  int64_t vocabulary = 51200;

  // Sequences of the step, over all data parallel copies, and into how many parts a copy cuts its
  // share.
  int64_t batch = 32;
  int64_t microbatches = 4;

  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  // Of activations, parameters and gradients.
  int64_t element_bytes = 2;
  // What a rank really reaches; makes durations of operations.
  double tflops = 300;
  // The copies divide the optimizer between them (ZeRO).
  bool zero = false;
};

// InvalidArgument or OutOfRange for sizes that are out of range, do not divide each other or make a
// workload that is too large.
absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeTransformerStep(
    const TransformerOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_TRANSFORMER_STEP_H_
