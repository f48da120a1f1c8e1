#include "chakra_export/xspace/hlo_tensors.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/hlo/hlo_shape.h"

namespace meridian {
namespace {

// Of tuples of more elements the others are not told apart.
constexpr int kMaxElements = 4096;

bool IsArray(const xla::ShapeProto& shape) {
  return shape.element_type() != xla::TUPLE && shape.element_type() != xla::TOKEN &&
         ShapeBytes(shape).ok();
}

// Returns how many arrays are in the value.
uint64_t ArraysIn(const xla::ShapeProto& shape) {
  if (shape.element_type() != xla::TUPLE) return 1;
  uint64_t arrays = 0;
  for (const xla::ShapeProto& element : shape.tuple_shapes()) arrays += ArraysIn(element);
  return arrays;
}

}  // namespace

HloTensors::HloTensors(const HloModule& module, bool open_fusions, bool loops_run_once)
    : module_(module),
      collectives_(module),
      loops_run_once_(loops_run_once),
      flow_(module, collectives_, open_fusions) {
  uint64_t tensors = 0;
  for (const HloInstruction& instruction : module.instructions()) {
    first_id_[&instruction] = tensors;
    tensors += ArraysIn(ShapeOf(instruction));
  }
  ReadPlaces();
  id_count_ = tensors + allocations_;
}

void HloTensors::ReadPlaces() {
  const xla::BufferAssignmentProto& assignment = module_.buffer_assignment();
  absl::flat_hash_map<int64_t, Place> place_of_buffer;
  for (const xla::BufferAllocationProto& allocation : assignment.buffer_allocations()) {
    for (const auto& assigned : allocation.assigned()) {
      place_of_buffer[assigned.logical_buffer_id()] = {allocations_, assigned.offset()};
    }
    ++allocations_;
  }
  for (const xla::LogicalBufferProto& buffer : assignment.logical_buffers()) {
    const auto place = place_of_buffer.find(buffer.id());
    const auto& defined = buffer.defined_at();
    // Older profiles have names in place of ids.
    const HloInstruction* instruction = defined.instruction_name().empty()
                                            ? module_.FindInstructionById(defined.instruction_id())
                                            : module_.FindInstruction(defined.instruction_name());
    if (place == place_of_buffer.end() || instruction == nullptr) continue;
    HloValue value{instruction, {defined.shape_index().begin(), defined.shape_index().end()}};
    std::reverse(value.path.begin(), value.path.end());
    places_[std::move(value)] = place->second;
  }
  for (const auto& [collective, joined] : flow_.joined()) {
    const auto whole = places_.find({collective, {}});
    if (whole == places_.end()) continue;
    Place place = whole->second;
    for (int i = 0; i < joined.shape.tuple_shapes_size(); ++i) {
      places_[{collective, {i}}] = place;
      const int64_t bytes = ShapeBytes(joined.shape.tuple_shapes(i)).value_or(0);
      if (bytes > std::numeric_limits<int64_t>::max() - std::max<int64_t>(place.second, 0)) break;
      place.second += bytes;
    }
  }
}

const xla::ShapeProto& HloTensors::ShapeOf(const HloInstruction& instruction) const {
  const auto joined = flow_.joined().find(&instruction);
  if (joined != flow_.joined().end()) return joined->second.shape;
  const HloCollective* collective = collectives_.Find(instruction.name());
  const bool is_collective = collective != nullptr && collective->instruction == &instruction;
  return is_collective ? OutputShape(*collective) : instruction.shape();
}

HloTensors::Tensor HloTensors::ArrayAt(uint64_t id, const xla::ShapeProto& shape,
                                       const HloValue& value) const {
  const auto place = places_.find(value);
  if (place == places_.end()) return {id, allocations_ + id, 0, &shape};
  return {id, place->second.first, place->second.second, &shape};
}

std::optional<HloTensors::Tensor> HloTensors::TensorOf(const HloValue& value) const {
  const xla::ShapeProto* shape = &ShapeOf(*value.instruction);
  uint64_t id = first_id_.at(value.instruction);
  for (auto index = value.path.rbegin(); index != value.path.rend(); ++index) {
    if (*index < 0 || *index >= std::min(shape->tuple_shapes_size(), kMaxElements)) {
      return std::nullopt;
    }
    for (int i = 0; i < *index; ++i) id += ArraysIn(shape->tuple_shapes(i));
    shape = &shape->tuple_shapes(static_cast<int>(*index));
  }
  if (!IsArray(*shape)) return std::nullopt;
  return ArrayAt(id, *shape, value);
}

void HloTensors::AddArrays(const xla::ShapeProto& shape, uint64_t* next_id, HloValue* value,
                           std::vector<Tensor>* arrays) const {
  if (shape.element_type() != xla::TUPLE) {
    if (IsArray(shape)) arrays->push_back(ArrayAt(*next_id, shape, *value));
    ++*next_id;
    return;
  }
  for (int i = 0; i < shape.tuple_shapes_size(); ++i) {
    if (i >= kMaxElements) {
      *next_id += ArraysIn(shape.tuple_shapes(i));
      continue;
    }
    value->path.insert(value->path.begin(), i);
    AddArrays(shape.tuple_shapes(i), next_id, value, arrays);
    value->path.erase(value->path.begin());
  }
}

void HloTensors::Add(const HloInstruction& instruction) {
  const auto [access, is_new] = accesses_.try_emplace(&instruction);
  if (!is_new) return;
  // Made by what runs later, or by the instruction itself.
  const auto is_of_next_iteration = [&](const HloValue& value) {
    return loops_run_once_ && !flow_.PassesOn(*value.instruction) &&
           (value.instruction == &instruction || !accesses_.contains(value.instruction));
  };
  for (const std::vector<HloValue>& operand : flow_.SourcesOf(instruction).operands) {
    std::vector<Tensor>& reads = access->second.reads.emplace_back();
    const bool has_other = !absl::c_all_of(operand, is_of_next_iteration);
    for (const HloValue& value : operand) {
      if (has_other && is_of_next_iteration(value)) continue;
      const std::optional<Tensor> tensor = TensorOf(value);
      if (tensor.has_value()) reads.push_back(*tensor);
    }
  }
  HloValue value{&instruction, {}};
  uint64_t next_id = first_id_.at(&instruction);
  AddArrays(ShapeOf(instruction), &next_id, &value, &access->second.writes);
}

void HloTensors::Describe(const HloInstruction& instruction, int operand, uint64_t first_id,
                          int64_t rank, ChakraProtoMsg::Node* message) const {
  const auto text_of = [&](absl::Span<const Tensor> tensors) {
    std::vector<std::string> values, shapes, types;
    for (const Tensor& tensor : tensors) {
      xla::ShapeProto element;
      element.set_element_type(tensor.shape->element_type());
      // Of shapes without bytes the product of the sizes need not fit into a number.
      int64_t elements = ShapeBytes(*tensor.shape).value_or(0) == 0 ? 0 : 1;
      for (const int64_t size : tensor.shape->dimensions()) elements *= elements == 0 ? 0 : size;
      values.push_back(absl::StrCat("[", first_id + tensor.id, ", ", first_id + tensor.storage,
                                    ", ", tensor.offset, ", ", elements, ", ",
                                    ShapeBytes(element).value_or(0), ", 'device:", rank, "']"));
      shapes.push_back(absl::StrCat("[", absl::StrJoin(tensor.shape->dimensions(), ", "), "]"));
      types.push_back(
          absl::StrCat("'Tensor(", ElementTypeName(tensor.shape->element_type()), ")'"));
    }
    ChakraProtoMsg::IOInfo info;
    info.set_values(absl::StrCat("[", absl::StrJoin(values, ", "), "]"));
    info.set_shapes(absl::StrCat("[", absl::StrJoin(shapes, ", "), "]"));
    info.set_types(absl::StrCat("[", absl::StrJoin(types, ", "), "]"));
    return info;
  };
  const Access& access = accesses_.at(&instruction);
  const bool is_part = operand >= 0 && operand < static_cast<int>(access.writes.size());
  std::vector<Tensor> reads;
  for (int i = 0; i < static_cast<int>(access.reads.size()); ++i) {
    if (is_part && i != operand) continue;
    reads.insert(reads.end(), access.reads[i].begin(), access.reads[i].end());
  }
  absl::Span<const Tensor> writes(access.writes);
  if (is_part) writes = writes.subspan(operand, 1);
  if (!reads.empty()) *message->mutable_inputs() = text_of(reads);
  if (!writes.empty()) *message->mutable_outputs() = text_of(writes);
}

}  // namespace meridian
