#include "chakra_export/xspace/hlo_cost.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/hlo/hlo_shape.h"

namespace meridian {
namespace {

// No computation of more operations, or bytes, is believed.
constexpr int64_t kMaxOperations = int64_t{1} << 60;
// How deep fusions may lie within fusions.
constexpr int kMaxFusionDepth = 8;

// Returns nullopt for a product that is not believed, and for negative sizes.
template <typename Sizes>
std::optional<int64_t> ProductOf(const Sizes& sizes) {
  absl::int128 product = 1;
  for (const int64_t size : sizes) {
    product *= size;
    if (size < 0 || product > kMaxOperations) return std::nullopt;
  }
  return static_cast<int64_t>(product);
}

std::optional<int64_t> ElementsOf(const HloInstruction& instruction) {
  const xla::ShapeProto* shape = &instruction.shape();
  while (!shape->tuple_shapes().empty()) shape = &shape->tuple_shapes(0);
  return ProductOf(shape->dimensions());
}

// Every element is a sum over the contracted dimensions: a product and an addition for each.
std::optional<int64_t> OperationsOfDot(const HloInstruction& dot) {
  const std::optional<int64_t> elements = ElementsOf(dot);
  if (dot.operands().empty() || !elements.has_value()) return std::nullopt;
  const xla::ShapeProto& lhs = dot.operands()[0]->shape();
  std::vector<int64_t> factors = {2, *elements};
  for (const int64_t dimension : dot.proto().dot_dimension_numbers().lhs_contracting_dimensions()) {
    if (dimension < 0 || dimension >= lhs.dimensions_size()) return std::nullopt;
    factors.push_back(lhs.dimensions(static_cast<int>(dimension)));
  }
  return ProductOf(factors);
}

// True for opcodes that only move or arrange values.
bool IsFree(absl::string_view opcode) {
  static const auto& opcodes = *new absl::flat_hash_set<absl::string_view>(absl::StrSplit(
      "parameter constant tuple get-tuple-element bitcast copy broadcast reshape transpose slice "
      "pad concatenate dynamic-slice dynamic-update-slice gather scatter iota reverse partition-id "
      "bitcast-convert replica-id after-all opt-barrier copy-start copy-done",
      ' '));
  return opcodes.contains(opcode);
}

// True for opcodes whose operations the shapes do not tell.
bool IsOpaque(absl::string_view opcode) {
  static constexpr absl::string_view kOpcodes[] = {
      "custom-call", "while",  "conditional", "convolution", "sort", "fft",
      "cholesky",    "infeed", "outfeed",     "rng",         "topk", "triangular-solve",
      "async-start", "call"};
  return absl::c_linear_search(kOpcodes, opcode);
}

std::optional<int64_t> OperationsOf(const HloInstruction& instruction, int depth) {
  const absl::string_view opcode = instruction.opcode();
  if (IsFree(opcode)) return 0;
  if (IsOpaque(opcode) || depth == 0) return std::nullopt;
  if (opcode == "fusion") {
    int64_t sum = 0;
    for (const HloComputation* called : instruction.called_computations()) {
      for (const HloInstruction& fused : called->instructions()) {
        const std::optional<int64_t> operations = OperationsOf(fused, depth - 1);
        if (!operations.has_value() || *operations > kMaxOperations - sum) return std::nullopt;
        sum += *operations;
      }
    }
    return sum;
  }
  if (opcode == "dot") return OperationsOfDot(instruction);
  const bool reduces = opcode == "reduce" || opcode == "reduce-window";
  if (reduces && !instruction.operands().empty()) return ElementsOf(*instruction.operands()[0]);
  return ElementsOf(instruction);
}

std::optional<int64_t> BytesOf(const HloInstruction& instruction) {
  if (instruction.has_dangling_operands()) return std::nullopt;
  std::vector<const HloInstruction*> values(instruction.operands().begin(),
                                            instruction.operands().end());
  values.push_back(&instruction);
  int64_t sum = 0;
  for (const HloInstruction* value : values) {
    const absl::StatusOr<int64_t> bytes = ShapeBytes(value->shape());
    if (!bytes.ok() || *bytes > kMaxOperations - sum) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

}  // namespace

HloCost CostOf(const HloInstruction& instruction) {
  return {BytesOf(instruction), OperationsOf(instruction, kMaxFusionDepth)};
}

}  // namespace meridian
