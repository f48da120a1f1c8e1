#include "chakra_export/generate/transformer_cost.h"

#include <limits>

#include "absl/status/status.h"

namespace meridian {
namespace {

// Takes 128-bit numbers into 64 bits and remembers whether one did not fit.
class Narrower {
 public:
  int64_t operator()(absl::int128 value) {
    // A backward pass is twice a forward pass.
    if (value > std::numeric_limits<int64_t>::max() / 2) fits_ = false;
    return static_cast<int64_t>(value);
  }
  absl::Status status() const {
    return fits_ ? absl::OkStatus()
                 : absl::OutOfRangeError(
                       "operations or bytes of one node do not fit into 64 bits; make --hidden, "
                       "--sequence, --vocab or the batch smaller");
  }

 private:
  bool fits_ = true;
};

}  // namespace

absl::StatusOr<TransformerCost> CostOfTransformer(const TransformerShape& shape) {
  const absl::int128 t = absl::int128(shape.microbatch) * shape.sequence;
  const absl::int128 h = shape.hidden;
  const absl::int128 s = shape.sequence;
  const absl::int128 v = shape.vocabulary;
  const absl::int128 p = shape.tensor_parallel;
  const absl::int128 e = shape.element_bytes;
  Narrower narrow;
  TransformerCost cost;
  cost.attention = {narrow((8 * t * h * h + 4 * t * s * h) / p),
                    narrow(e * (2 * t * h + (8 * t * h + 4 * h * h) / p))};
  cost.mlp = {narrow(16 * t * h * h / p), narrow(e * (2 * t * h + (8 * t * h + 8 * h * h) / p))};
  cost.embedding = {narrow(t * h), narrow(e * 2 * t * h)};
  cost.head = {narrow(2 * t * v * h / p), narrow(e * (t * h + (t * v + v * h) / p))};
  cost.layer_parameters = narrow(12 * h * h / p);
  cost.vocabulary_parameters = narrow(v * h / p);
  cost.activation_bytes = narrow(e * t * h);
  cost.loss_bytes = narrow(3 * 4 * t);
  if (!narrow.status().ok()) return narrow.status();
  return cost;
}

WorkCost BackwardCost(const WorkCost& forward) {
  return {2 * forward.operations, 2 * forward.bytes};
}

absl::StatusOr<WorkCost> OptimizerCost(absl::int128 parameters, int64_t element_bytes) {
  Narrower narrow;
  const WorkCost cost = {narrow(12 * parameters), narrow((2 * element_bytes + 24) * parameters)};
  if (!narrow.status().ok()) return narrow.status();
  return cost;
}

}  // namespace meridian
