// SPDX-License-Identifier: Apache-2.0
// What the pieces of a transformer cost one rank, for one microbatch of t tokens: h = hidden size,
// s = sequence, v = vocabulary, p = tensor parallel ranks, e = bytes of an element.
//
//                operations            elements moved          parameters
//   attention    (8 t h^2 + 4 t s h)/p  2 t h + (8 t h + 4 h^2)/p   4 h^2 / p
//   MLP           16 t h^2 / p          2 t h + (8 t h + 8 h^2)/p   8 h^2 / p     (4 h inside)
//   embedding     t h                   2 t h                       v h / p
//   head          2 t v h / p           t h + (t v + v h)/p         v h / p
//
// for the forward pass; a backward pass is twice that. Every product reads its operands and writes
// its result once; attention scores never leave the chip. Norms and biases are left out.
#ifndef CHAKRA_EXPORT_GENERATE_TRANSFORMER_COST_H_
#define CHAKRA_EXPORT_GENERATE_TRANSFORMER_COST_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// All are positive but the vocabulary, which may be 0, and none is over 2^24; hidden and vocabulary
// divide by tensor_parallel.
struct TransformerShape {
  int64_t hidden = 0;
  int64_t sequence = 0;
  int64_t vocabulary = 0;
  // Sequences in a microbatch.
  int64_t microbatch = 0;
  int64_t element_bytes = 0;
  int64_t tensor_parallel = 1;
};

struct TransformerCost {
  // Costs of the forward pass.
  WorkCost attention;
  WorkCost mlp;
  WorkCost embedding;
  WorkCost head;
  // Parameters that one rank holds of one layer; and of the embedding, or of the head, which has as
  // many.
  int64_t layer_parameters = 0;
  int64_t vocabulary_parameters = 0;
  // What goes from layer to layer: t h elements, in bytes.
  int64_t activation_bytes = 0;
  // What the ranks of a tensor group sum to get the loss: of each token its largest logit, the sum
  // of exponentials and the logit of the right answer, as 4-byte numbers.
  int64_t loss_bytes = 0;
};

// OutOfRange when something does not fit into 64 bits, the backward pass included.
absl::StatusOr<TransformerCost> CostOfTransformer(const TransformerShape& shape);

WorkCost BackwardCost(const WorkCost& forward);

// Adam: 12 operations for a parameter. It reads the gradient and writes the parameter, of
// element_bytes each, and reads and writes three 4-byte numbers: the exact parameter and two
// moments.
absl::StatusOr<WorkCost> OptimizerCost(absl::int128 parameters, int64_t element_bytes);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_TRANSFORMER_COST_H_
