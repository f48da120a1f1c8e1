#include "chakra_export/xspace/hlo_cost.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/hlo/hlo_shape.h"

namespace meridian {
namespace {

// No computation of more operations, or bytes, is believed.
constexpr int64_t kMaxOperations = int64_t{1} << 60;
// How deep fusions may lie within fusions.
constexpr int kMaxFusionDepth = 8;

void AppendArrays(const xla::ShapeProto& shape, std::vector<xla::ShapeProto>* arrays) {
  if (shape.tuple_shapes().empty()) {
    arrays->push_back(shape);
    return;
  }
  for (const xla::ShapeProto& element : shape.tuple_shapes()) AppendArrays(element, arrays);
}

std::optional<int64_t> Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) || product > kMaxOperations) {
    return std::nullopt;
  }
  return product;
}

template <typename Sizes>
std::optional<int64_t> ProductOf(const Sizes& sizes) {
  std::optional<int64_t> product = 1;
  for (const int64_t size : sizes) {
    if (product.has_value()) product = Multiply(*product, size);
  }
  return product;
}

std::optional<int64_t> ElementsOf(const HloInstruction& instruction) {
  const xla::ShapeProto* shape = &instruction.shape();
  while (!shape->tuple_shapes().empty()) shape = &shape->tuple_shapes(0);
  return ProductOf(shape->dimensions());
}

// Returns how many products make one element of a dot.
std::optional<int64_t> ContractedSize(const HloInstruction& dot) {
  if (dot.operands().empty()) return std::nullopt;
  const xla::ShapeProto& lhs = dot.operands()[0]->shape();
  std::vector<int64_t> contracted;
  for (const int64_t dimension : dot.proto().dot_dimension_numbers().lhs_contracting_dimensions()) {
    if (dimension < 0 || dimension >= lhs.dimensions_size()) return std::nullopt;
    contracted.push_back(lhs.dimensions(static_cast<int>(dimension)));
  }
  return ProductOf(contracted);
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
  if (opcode == "dot") {
    const std::optional<int64_t> elements = ElementsOf(instruction);
    const std::optional<int64_t> products = ContractedSize(instruction);
    if (!elements.has_value() || !products.has_value()) return std::nullopt;
    const std::optional<int64_t> pairs = Multiply(*elements, *products);
    return pairs.has_value() ? Multiply(*pairs, 2) : std::nullopt;
  }
  const bool reduces = opcode == "reduce" || opcode == "reduce-window";
  if (reduces && !instruction.operands().empty()) return ElementsOf(*instruction.operands()[0]);
  return ElementsOf(instruction);
}

std::optional<int64_t> BytesOf(const HloCost& cost) {
  int64_t sum = 0;
  for (const auto* shapes : {&cost.inputs, &cost.outputs}) {
    for (const xla::ShapeProto& shape : *shapes) {
      const absl::StatusOr<int64_t> bytes = ShapeBytes(shape);
      if (!bytes.ok() || *bytes > kMaxOperations - sum) return std::nullopt;
      sum += *bytes;
    }
  }
  return sum;
}

}  // namespace

HloCost CostOf(const HloInstruction& instruction) {
  HloCost cost;
  for (const HloInstruction* operand : instruction.operands()) {
    AppendArrays(operand->shape(), &cost.inputs);
  }
  AppendArrays(instruction.shape(), &cost.outputs);
  if (!instruction.has_dangling_operands()) cost.bytes = BytesOf(cost);
  cost.operations = OperationsOf(instruction, kMaxFusionDepth);
  return cost;
}

void SetShapes(const std::vector<xla::ShapeProto>& shapes, ChakraProtoMsg::IOInfo* info) {
  std::vector<std::string> dimensions;
  std::vector<std::string> types;
  for (const xla::ShapeProto& shape : shapes) {
    dimensions.push_back(absl::StrCat("[", absl::StrJoin(shape.dimensions(), ", "), "]"));
    types.push_back(absl::StrCat("'", std::string(ElementTypeName(shape.element_type())), "'"));
  }
  info->set_shapes(absl::StrCat("[", absl::StrJoin(dimensions, ", "), "]"));
  info->set_types(absl::StrCat("[", absl::StrJoin(types, ", "), "]"));
}

}  // namespace meridian
