// SPDX-License-Identifier: Apache-2.0
// An HLO module, decoded from the bytes of an xla.HloProto.
//
//   HloModule ── computations ── HloComputation   a function: the entry, a fusion, a loop's body
//             └─ instructions ── HloInstruction   in file order, computation by computation
//
// Each stands for its message (third_party/hlo/hlo.proto), with the ids in it turned into pointers.
//
//   ASSIGN_OR_RETURN(const std::unique_ptr<HloModule> module, HloModule::Decode(bytes, origin));
//   if (const HloInstruction* instruction = module->FindInstruction("all-reduce.3")) ...
#ifndef XLA_PROFILER_HLO_HLO_MODULE_H_
#define XLA_PROFILER_HLO_HLO_MODULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/hlo/device_assignment.h"

namespace meridian {

class HloComputation;
class HloInstruction;
class HloModule;

using HloInstructionList = absl::Span<const HloInstruction* const>;
using HloComputationList = absl::Span<const HloComputation* const>;

class HloInstruction {
 public:
  const xla::HloInstructionProto& proto() const { return *proto_; }
  int64_t id() const { return proto_->id(); }
  absl::string_view name() const { return proto_->name(); }
  // As in HLO text: "all-reduce", "get-tuple-element".
  absl::string_view opcode() const { return proto_->opcode(); }
  const xla::ShapeProto& shape() const { return proto_->shape(); }
  const HloComputation& computation() const { return *computation_; }

  HloInstructionList operands() const { return operands_; }
  HloInstructionList control_predecessors() const { return control_predecessors_; }
  HloComputationList called_computations() const { return called_computations_; }
  // True when the file names operands that it does not have; operands() is then short of them.
  bool has_dangling_operands() const {
    return operands_.size() != static_cast<size_t>(proto_->operand_ids_size());
  }

 private:
  friend class HloModule;

  const xla::HloInstructionProto* proto_ = nullptr;
  const HloComputation* computation_ = nullptr;
  std::vector<const HloInstruction*> operands_;
  std::vector<const HloInstruction*> control_predecessors_;
  std::vector<const HloComputation*> called_computations_;
};

class HloComputation {
 public:
  int64_t id() const { return proto_->id(); }
  absl::string_view name() const { return proto_->name(); }
  const HloModule& module() const { return *module_; }
  // In file order: operands first in what XLA writes, but nothing here relies on it.
  absl::Span<const HloInstruction> instructions() const { return instructions_; }
  // The instruction whose value the computation returns; null when the file does not have it.
  const HloInstruction* root() const { return root_; }
  // In the order of execution; empty when the module is not scheduled.
  HloInstructionList schedule() const { return schedule_; }

 private:
  friend class HloModule;

  const xla::HloComputationProto* proto_ = nullptr;
  const HloModule* module_ = nullptr;
  absl::Span<const HloInstruction> instructions_;
  const HloInstruction* root_ = nullptr;
  std::vector<const HloInstruction*> schedule_;
};

class HloModule {
 public:
  // `bytes` is an xla.HloProto that lies within the file that begins at `origin`. InvalidArgument
  // "offset N: reason" for malformed bytes.
  static absl::StatusOr<std::unique_ptr<HloModule>> Decode(absl::string_view bytes,
                                                           const char* origin);

  HloModule(const HloModule&) = delete;
  HloModule& operator=(const HloModule&) = delete;

  int64_t id() const { return proto_.hlo_module().id(); }
  absl::string_view name() const { return proto_.hlo_module().name(); }
  // Where the module begins; null when the file does not have it.
  const HloComputation* entry() const { return entry_; }
  absl::Span<const HloComputation> computations() const { return computations_; }
  // The instructions of all computations.
  absl::Span<const HloInstruction> instructions() const { return instructions_; }
  const xla::BufferAssignmentProto& buffer_assignment() const { return proto_.buffer_assignment(); }
  // Null when the module does not say.
  const DeviceAssignment* device_assignment() const {
    return device_assignment_.has_value() ? &*device_assignment_ : nullptr;
  }

  // How much is wrong with a module whose bytes are well-formed:
  // - ids and names that occur twice: all stay in the lists, lookups find the first;
  // - references to what the file does not have: they are left out;
  // - a root or entry that the file does not have: a null pointer stands in its place.
  int64_t num_problems() const { return num_problems_; }

  // Returns the file and line that the instruction comes from, "train.py:42"; empty when the module
  // does not say.
  std::string SourceOf(const HloInstruction& instruction) const;

  // Return nullptr when there is none.
  const HloInstruction* FindInstruction(absl::string_view name) const;
  const HloInstruction* FindInstructionById(int64_t id) const;
  const HloComputation* FindComputationById(int64_t id) const;

 private:
  HloModule() = default;

  // Lists and indexes the proto's computations and instructions, and only then turns ids into
  // pointers, since a reference may point forward.
  void Index();
  void ResolveReferences();
  // Returns what the ids refer to, without those of nothing.
  template <typename Ids, typename Pointer>
  std::vector<const Pointer*> Resolve(const Ids& ids,
                                      const absl::flat_hash_map<int64_t, Pointer*>& by_id);
  void CountUnless(bool is_fine) { num_problems_ += is_fine ? 0 : 1; }

  xla::HloProto proto_;
  std::vector<HloComputation> computations_;
  std::vector<HloInstruction> instructions_;
  const HloComputation* entry_ = nullptr;
  std::optional<DeviceAssignment> device_assignment_;
  int64_t num_problems_ = 0;
  absl::flat_hash_map<absl::string_view, const HloInstruction*> by_name_;
  absl::flat_hash_map<int64_t, HloInstruction*> by_id_;
  absl::flat_hash_map<int64_t, HloComputation*> computations_by_id_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_MODULE_H_
