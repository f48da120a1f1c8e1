#include "xla_profiler/hlo/hlo_module.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_wire.h"

namespace meridian {
namespace {

// What a hostile file may cost: an empty instruction is two bytes in the file and two hundred in
// memory, a reference one byte and sixteen; a computation or a schedule is two bytes and up to a
// hundred.
constexpr size_t kMaxInstructions = size_t{1} << 24;
constexpr size_t kMaxReferences = size_t{1} << 28;
constexpr size_t kMaxParts = size_t{1} << 22;

int64_t AsInt(const WireField& field) { return static_cast<int64_t>(field.scalar); }

}  // namespace

// Fills a module in steps: cut the bytes into parts, decode computations and instructions with
// their references as ids, index them by id, and only then turn ids into pointers, since a
// reference may point forward.
class HloModuleDecoder {
 public:
  explicit HloModuleDecoder(HloModule* module) : module_(*module), origin_(module->origin_) {}

  absl::Status Decode(absl::string_view bytes) {
    RETURN_IF_ERROR(SplitProto(bytes));
    RETURN_IF_ERROR(DecodeComputations());
    IndexInstructions();
    IndexComputations();
    ResolveReferences();
    FindEntry();
    RETURN_IF_ERROR(DecodeSchedules());
    if (!device_assignment_.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(module_.device_assignment_,
                     DeviceAssignment::Decode(*device_assignment_, origin_));
    return absl::OkStatus();
  }

 private:
  // A computation's sequence of instruction ids.
  struct Schedule {
    int64_t computation_id = 0;
    std::vector<int64_t> instruction_ids;
  };

  absl::Status SplitProto(absl::string_view bytes) {
    return ForEachField(bytes, origin_, kHloProtoDepth, [&](const WireField& field) {
      return field.IsBytes(HloProtoField::kModule) ? SplitModule(field.bytes) : absl::OkStatus();
    });
  }

  absl::Status SplitModule(absl::string_view bytes) {
    WireReader reader(bytes, origin_, kHloModuleDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (field.IsVarint(HloModuleField::kId)) module_.id_ = AsInt(field);
      if (field.IsVarint(HloModuleField::kEntryComputationId)) entry_id_ = AsInt(field);
      if (field.type != WireType::kBytes) continue;
      switch (field.number) {
        case HloModuleField::kName:
          RETURN_IF_ERROR(ReadText(field.bytes, origin_, &module_.name_));
          break;
        case HloModuleField::kEntryComputationName:
          RETURN_IF_ERROR(ReadText(field.bytes, origin_, &entry_name_));
          break;
        case HloModuleField::kComputations:
          RETURN_IF_ERROR(CountPart(field));
          computation_bytes_.push_back(field.bytes);
          RETURN_IF_ERROR(CountInstructions(field.bytes));
          break;
        case HloModuleField::kSchedule:
          schedule_bytes_.push_back(field.bytes);
          break;
        case HloModuleField::kDeviceAssignment:
          device_assignment_ = field.bytes;
          break;
      }
    }
    return reader.status();
  }

  absl::Status CountPart(const WireField& field) {
    if (++num_parts_ <= kMaxParts) return absl::OkStatus();
    return WireError(
        field.bytes.data(), origin_,
        absl::StrCat("more than ", kMaxParts, " computations, schedules and payloads"));
  }

  absl::Status CountInstructions(absl::string_view computation) {
    WireReader reader(computation, origin_, kHloComputationDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (!field.IsBytes(HloComputationField::kInstructions)) continue;
      if (++num_instructions_ > kMaxInstructions) {
        return WireError(field.bytes.data(), origin_,
                         absl::StrCat("more than ", kMaxInstructions, " instructions"));
      }
    }
    return reader.status();
  }

  absl::Status DecodeComputations() {
    // Instructions are pointed to, so they must not move.
    module_.computations_.resize(computation_bytes_.size());
    module_.instructions_.reserve(num_instructions_);
    for (size_t i = 0; i < computation_bytes_.size(); ++i) {
      RETURN_IF_ERROR(DecodeComputation(computation_bytes_[i], &module_.computations_[i]));
    }
    return absl::OkStatus();
  }

  absl::Status DecodeComputation(absl::string_view bytes, HloComputation* computation) {
    std::vector<HloInstruction>& instructions = module_.instructions_;
    const size_t begin = instructions.size();
    WireReader reader(bytes, origin_, kHloComputationDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (field.IsBytes(HloComputationField::kInstructions)) {
        instructions.emplace_back();
        instructions.back().computation_ = computation;
        RETURN_IF_ERROR(DecodeInstruction(field.bytes, &instructions.back()));
      } else if (field.IsBytes(HloComputationField::kName)) {
        RETURN_IF_ERROR(ReadText(field.bytes, origin_, &computation->name_));
      } else if (field.IsVarint(HloComputationField::kId)) {
        computation->id_ = AsInt(field);
      } else if (field.IsVarint(HloComputationField::kRootId)) {
        computation->root_id_ = AsInt(field);
      }
    }
    computation->module_ = &module_;
    computation->instructions_ = instructions.data() + begin;
    computation->size_ = instructions.size() - begin;
    return reader.status();
  }

  absl::Status DecodeInstruction(absl::string_view bytes, HloInstruction* instruction) {
    instruction->bytes_ = bytes;
    WireReader reader(bytes, origin_, kHloInstructionDepth);
    WireField field;
    while (reader.Next(&field)) {
      if (field.type == WireType::kVarint) DecodeNumber(field, instruction);
      if (field.type == WireType::kBytes) RETURN_IF_ERROR(DecodeBytes(field, instruction));
      RETURN_IF_ERROR(DecodeReferences(field, instruction));
    }
    return reader.status();
  }

  static void DecodeNumber(const WireField& field, HloInstruction* instruction) {
    switch (field.number) {
      case HloInstructionField::kId:
        instruction->id_ = AsInt(field);
        break;
      case HloInstructionField::kChannelId:
        instruction->channel_id_ = AsInt(field);
        break;
      case HloInstructionField::kParameterNumber:
        instruction->parameter_number_ = AsInt(field);
        break;
      case HloInstructionField::kTupleIndex:
        instruction->tuple_index_ = AsInt(field);
        break;
      case HloInstructionField::kIsHostTransfer:
        instruction->is_host_transfer_ = field.scalar != 0;
        break;
      case HloInstructionField::kUseGlobalDeviceIds:
        instruction->use_global_device_ids_ = field.scalar != 0;
        break;
    }
  }

  absl::Status DecodeBytes(const WireField& field, HloInstruction* instruction) {
    switch (field.number) {
      case HloInstructionField::kName:
        return ReadText(field.bytes, origin_, &instruction->name_);
      case HloInstructionField::kOpcode:
        return ReadText(field.bytes, origin_, &instruction->opcode_);
      case HloInstructionField::kShape:
        instruction->shape_ = field.bytes;
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status DecodeReferences(const WireField& field, HloInstruction* instruction) {
    switch (field.number) {
      case HloInstructionField::kOperandIds:
        return AppendReferences(field, &operand_ids_, &instruction->num_operands_);
      case HloInstructionField::kControlPredecessorIds:
        return AppendReferences(field, &control_predecessor_ids_,
                                &instruction->num_control_predecessors_);
      case HloInstructionField::kCalledComputationIds:
        return AppendReferences(field, &called_computation_ids_,
                                &instruction->num_called_computations_);
    }
    return absl::OkStatus();
  }

  absl::Status AppendReferences(const WireField& field, std::vector<int64_t>* ids,
                                uint32_t* count) {
    const size_t before = ids->size();
    // An id takes at least a byte.
    const size_t most = field.type == WireType::kBytes ? field.bytes.size() : 1;
    if (most > kMaxReferences - before) {
      return WireError(field.raw.data(), origin_,
                       absl::StrCat("more than ", kMaxReferences, " references"));
    }
    RETURN_IF_ERROR(AppendIntegers(field, origin_, ids));
    *count += static_cast<uint32_t>(ids->size() - before);
    return absl::OkStatus();
  }

  void IndexInstructions() {
    module_.by_name_.reserve(num_instructions_);
    module_.by_id_.reserve(num_instructions_);
    for (const HloInstruction& instruction : module_.instructions_) {
      CountUnless(module_.by_name_.emplace(instruction.name_, &instruction).second);
      CountUnless(module_.by_id_.emplace(instruction.id_, &instruction).second);
    }
  }

  void IndexComputations() {
    module_.computations_by_id_.reserve(module_.computations_.size());
    for (HloComputation& computation : module_.computations_) {
      CountUnless(module_.computations_by_id_.emplace(computation.id_, &computation).second);
      computation.root_ = FindRoot(computation);
      CountUnless(computation.root_ != nullptr);
    }
  }

  // A root belongs to its computation; an instruction of that id elsewhere is not it.
  const HloInstruction* FindRoot(const HloComputation& computation) const {
    const HloInstruction* root = module_.FindInstructionById(computation.root_id_);
    return root != nullptr && root->computation_ == &computation ? root : nullptr;
  }

  void ResolveReferences() {
    module_.operands_.reserve(operand_ids_.size());
    module_.control_predecessors_.reserve(control_predecessor_ids_.size());
    module_.called_computations_.reserve(called_computation_ids_.size());
    const auto instruction_of = [this](int64_t id) { return module_.FindInstructionById(id); };
    const auto computation_of = [this](int64_t id) { return module_.FindComputationById(id); };
    const int64_t* operand_id = operand_ids_.data();
    const int64_t* predecessor_id = control_predecessor_ids_.data();
    const int64_t* computation_id = called_computation_ids_.data();
    for (HloInstruction& instruction : module_.instructions_) {
      const uint32_t num_operands = instruction.num_operands_;
      instruction.operands_ =
          Resolve(instruction_of, &operand_id, &module_.operands_, &instruction.num_operands_);
      instruction.has_dangling_operands_ = instruction.num_operands_ != num_operands;
      instruction.control_predecessors_ =
          Resolve(instruction_of, &predecessor_id, &module_.control_predecessors_,
                  &instruction.num_control_predecessors_);
      instruction.called_computations_ =
          Resolve(computation_of, &computation_id, &module_.called_computations_,
                  &instruction.num_called_computations_);
    }
  }

  // Appends what the next *count ids refer to, and returns where that begins. Ids of nothing are
  // left out and *count shrinks by them.
  template <typename Find, typename Pointer>
  const Pointer* Resolve(const Find& find, const int64_t** id, std::vector<Pointer>* pointers,
                         uint32_t* count) {
    const size_t begin = pointers->size();
    for (const int64_t* end = *id + *count; *id != end; ++*id) {
      const Pointer pointer = find(**id);
      CountUnless(pointer != nullptr);
      if (pointer != nullptr) pointers->push_back(pointer);
    }
    *count = static_cast<uint32_t>(pointers->size() - begin);
    return pointers->data() + begin;
  }

  // By id; by name when there is no id, which reads as 0.
  void FindEntry() {
    const bool has_id = entry_id_ != 0 || entry_name_.empty();
    if (has_id) {
      module_.entry_ = module_.FindComputationById(entry_id_);
    } else {
      for (const HloComputation& computation : module_.computations_) {
        if (computation.name_ == entry_name_) module_.entry_ = &computation;
      }
    }
    CountUnless(module_.entry_ != nullptr);
  }

  absl::Status DecodeSchedules() {
    std::vector<Schedule> schedules;
    const auto read_ids = [&](const WireField& field) {
      if (field.number != HloSequenceField::kInstructionIds) return absl::OkStatus();
      return AppendIntegers(field, origin_, &schedules.back().instruction_ids);
    };
    const auto read_entry = [&](const WireField& field) {
      if (field.IsVarint(MapEntryField::kKey)) schedules.back().computation_id = AsInt(field);
      if (!field.IsBytes(MapEntryField::kValue)) return absl::OkStatus();
      return ForEachField(field.bytes, origin_, kHloModuleDepth - 3, read_ids);
    };
    const auto read_sequences = [&](const WireField& field) -> absl::Status {
      if (!field.IsBytes(HloScheduleField::kSequences)) return absl::OkStatus();
      RETURN_IF_ERROR(CountPart(field));
      schedules.emplace_back();
      return ForEachField(field.bytes, origin_, kHloModuleDepth - 2, read_entry);
    };
    for (absl::string_view bytes : schedule_bytes_) {
      RETURN_IF_ERROR(ForEachField(bytes, origin_, kHloModuleDepth - 1, read_sequences));
    }
    ResolveSchedules(schedules);
    return absl::OkStatus();
  }

  void ResolveSchedules(const std::vector<Schedule>& schedules) {
    size_t total = 0;
    for (const Schedule& schedule : schedules) total += schedule.instruction_ids.size();
    module_.schedules_.reserve(total);
    for (const Schedule& schedule : schedules) {
      const HloComputation* computation = module_.FindComputationById(schedule.computation_id);
      CountUnless(computation != nullptr);
      if (computation == nullptr) continue;
      const size_t begin = module_.schedules_.size();
      for (int64_t id : schedule.instruction_ids) {
        const HloInstruction* instruction = module_.FindInstructionById(id);
        CountUnless(instruction != nullptr);
        if (instruction != nullptr) module_.schedules_.push_back(instruction);
      }
      HloComputation& scheduled = module_.computations_[computation - module_.computations_.data()];
      scheduled.schedule_ = absl::MakeConstSpan(module_.schedules_).subspan(begin);
    }
  }

  void CountUnless(bool is_fine) { module_.num_problems_ += is_fine ? 0 : 1; }

  HloModule& module_;
  const char* const origin_;

  std::vector<absl::string_view> computation_bytes_;
  std::vector<absl::string_view> schedule_bytes_;
  std::optional<absl::string_view> device_assignment_;
  size_t num_parts_ = 0;
  size_t num_instructions_ = 0;
  int64_t entry_id_ = 0;
  absl::string_view entry_name_;

  // References of all instructions, in their order.
  std::vector<int64_t> operand_ids_;
  std::vector<int64_t> control_predecessor_ids_;
  std::vector<int64_t> called_computation_ids_;
};

const char* HloInstruction::origin() const { return computation_->module().origin_; }

absl::StatusOr<HloShape> HloInstruction::Shape() const {
  return HloShape::Decode(shape_, origin());
}

absl::StatusOr<IdGroups> HloInstruction::ReplicaGroups() const {
  return DecodeReplicaGroups(bytes_, origin());
}

absl::StatusOr<std::vector<SourceTargetPair>> HloInstruction::SourceTargetPairs() const {
  return DecodeSourceTargetPairs(bytes_, origin());
}

absl::StatusOr<std::vector<std::pair<absl::string_view, absl::string_view>>>
HloInstruction::FrontendAttributes() const {
  std::vector<std::pair<absl::string_view, absl::string_view>> attributes;
  const auto read_entry = [&](const WireField& field) {
    auto& [key, value] = attributes.back();
    if (field.IsBytes(MapEntryField::kKey)) return ReadText(field.bytes, origin(), &key);
    if (field.IsBytes(MapEntryField::kValue)) return ReadText(field.bytes, origin(), &value);
    return absl::OkStatus();
  };
  const auto read_map = [&](const WireField& field) {
    if (!field.IsBytes(FrontendAttributesField::kMap)) return absl::OkStatus();
    attributes.emplace_back();
    return ForEachField(field.bytes, origin(), kHloInstructionDepth - 2, read_entry);
  };
  RETURN_IF_ERROR(ForEachField(bytes_, origin(), kHloInstructionDepth, [&](const WireField& field) {
    if (!field.IsBytes(HloInstructionField::kFrontendAttributes)) return absl::OkStatus();
    return ForEachField(field.bytes, origin(), kHloInstructionDepth - 1, read_map);
  }));
  return attributes;
}

absl::StatusOr<std::unique_ptr<HloModule>> HloModule::Decode(absl::string_view bytes,
                                                             const char* origin) {
  std::unique_ptr<HloModule> module = absl::WrapUnique(new HloModule(origin));
  RETURN_IF_ERROR(HloModuleDecoder(module.get()).Decode(bytes));
  return module;
}

const HloInstruction* HloModule::FindInstruction(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const HloInstruction* HloModule::FindInstructionById(int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

const HloComputation* HloModule::FindComputationById(int64_t id) const {
  const auto it = computations_by_id_.find(id);
  return it == computations_by_id_.end() ? nullptr : it->second;
}

}  // namespace meridian
