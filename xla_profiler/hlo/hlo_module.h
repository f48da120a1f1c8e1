// SPDX-License-Identifier: Apache-2.0
// An HLO module, decoded in place from the bytes of an xla.HloProto.
//
//   HloModule ── computations ── HloComputation   a function: the entry, a fusion, a loop's body
//             └─ instructions ── HloInstruction   in file order, computation by computation
//
// Nothing is copied: names and payloads point into the bytes, which must outlive the module.
// Constants, which can be most of a module, are jumped over by their length. An instruction keeps
// what lookups and walks need; the rest is decoded from its bytes when asked for.
//
//   ASSIGN_OR_RETURN(const std::unique_ptr<HloModule> module, HloModule::Decode(bytes, origin));
//   if (const HloInstruction* instruction = module->FindInstruction("all-reduce.3")) ...
#ifndef XLA_PROFILER_HLO_HLO_MODULE_H_
#define XLA_PROFILER_HLO_HLO_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/hlo/device_assignment.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

class HloComputation;
class HloInstruction;
class HloModule;

using HloInstructionList = absl::Span<const HloInstruction* const>;
using HloComputationList = absl::Span<const HloComputation* const>;

class HloInstruction {
 public:
  int64_t id() const { return id_; }
  absl::string_view name() const { return name_; }
  // As in HLO text: "all-reduce", "get-tuple-element".
  absl::string_view opcode() const { return opcode_; }
  const HloComputation& computation() const { return *computation_; }

  HloInstructionList operands() const { return {operands_, num_operands_}; }
  HloInstructionList control_predecessors() const {
    return {control_predecessors_, num_control_predecessors_};
  }
  HloComputationList called_computations() const {
    return {called_computations_, num_called_computations_};
  }
  // True when the file names operands that it does not have; operands() is then short of them.
  bool has_dangling_operands() const { return has_dangling_operands_; }

  // The channel of a collective; 0 when it has none.
  int64_t channel_id() const { return channel_id_; }
  // Position among the computation's parameters, for instructions of opcode "parameter".
  int64_t parameter_number() const { return parameter_number_; }
  // Position in the tuple, for instructions of opcode "get-tuple-element".
  int64_t tuple_index() const { return tuple_index_; }
  // True for a send or recv whose other side is the host.
  bool is_host_transfer() const { return is_host_transfer_; }
  bool use_global_device_ids() const { return use_global_device_ids_; }

  // Decoded at each call. InvalidArgument "offset N: reason" when those bytes are damaged.
  absl::StatusOr<HloShape> Shape() const;
  absl::StatusOr<IdGroups> ReplicaGroups() const;
  absl::StatusOr<std::vector<SourceTargetPair>> SourceTargetPairs() const;
  // Keys and values in file order.
  absl::StatusOr<std::vector<std::pair<absl::string_view, absl::string_view>>> FrontendAttributes()
      const;

  // The xla.HloInstructionProto, and the first byte of the file it lies in.
  absl::string_view bytes() const { return bytes_; }
  const char* origin() const;

 private:
  friend class HloModuleDecoder;

  int64_t id_ = 0;
  absl::string_view name_;
  absl::string_view opcode_;
  absl::string_view shape_;
  absl::string_view bytes_;
  int64_t channel_id_ = 0;
  int64_t parameter_number_ = 0;
  int64_t tuple_index_ = 0;
  const HloComputation* computation_ = nullptr;
  // Point into the module's arrays.
  const HloInstruction* const* operands_ = nullptr;
  const HloInstruction* const* control_predecessors_ = nullptr;
  const HloComputation* const* called_computations_ = nullptr;
  uint32_t num_operands_ = 0;
  uint32_t num_control_predecessors_ = 0;
  uint32_t num_called_computations_ = 0;
  bool has_dangling_operands_ = false;
  bool is_host_transfer_ = false;
  bool use_global_device_ids_ = false;
};

class HloComputation {
 public:
  int64_t id() const { return id_; }
  absl::string_view name() const { return name_; }
  const HloModule& module() const { return *module_; }

  // In file order: operands first in what XLA writes, but nothing here relies on it.
  absl::Span<const HloInstruction> instructions() const { return {instructions_, size_}; }
  // The instruction whose value the computation returns; null when the file does not have it.
  const HloInstruction* root() const { return root_; }
  // In the order of execution; empty when the module is not scheduled.
  HloInstructionList schedule() const { return schedule_; }

 private:
  friend class HloModuleDecoder;

  int64_t id_ = 0;
  int64_t root_id_ = 0;
  absl::string_view name_;
  const HloModule* module_ = nullptr;
  const HloInstruction* instructions_ = nullptr;
  size_t size_ = 0;
  const HloInstruction* root_ = nullptr;
  HloInstructionList schedule_;
};

class HloModule {
 public:
  // `bytes` is an xla.HloProto that lies within the file that begins at `origin`. InvalidArgument
  // "offset N: reason" for malformed bytes.
  static absl::StatusOr<std::unique_ptr<HloModule>> Decode(absl::string_view bytes,
                                                           const char* origin);

  HloModule(const HloModule&) = delete;
  HloModule& operator=(const HloModule&) = delete;

  int64_t id() const { return id_; }
  absl::string_view name() const { return name_; }
  // Where the module begins; null when the file does not have it.
  const HloComputation* entry() const { return entry_; }
  absl::Span<const HloComputation> computations() const { return computations_; }
  // The instructions of all computations.
  absl::Span<const HloInstruction> instructions() const { return instructions_; }
  // Null when the module does not say.
  const DeviceAssignment* device_assignment() const {
    return device_assignment_.has_value() ? &*device_assignment_ : nullptr;
  }

  // How much is wrong with a module whose bytes are well-formed:
  // - ids and names that occur twice: all stay in the lists, lookups find the first;
  // - references to what the file does not have: they are left out;
  // - a root or entry that the file does not have: a null pointer stands in its place.
  int64_t num_problems() const { return num_problems_; }

  // Return nullptr when there is none.
  const HloInstruction* FindInstruction(absl::string_view name) const;
  const HloInstruction* FindInstructionById(int64_t id) const;
  const HloComputation* FindComputationById(int64_t id) const;

 private:
  friend class HloInstruction;
  friend class HloModuleDecoder;

  explicit HloModule(const char* origin) : origin_(origin) {}

  const char* origin_;
  int64_t id_ = 0;
  absl::string_view name_;
  std::vector<HloComputation> computations_;
  std::vector<HloInstruction> instructions_;
  const HloComputation* entry_ = nullptr;
  std::optional<DeviceAssignment> device_assignment_;
  int64_t num_problems_ = 0;

  // What the spans of instructions and computations point into.
  std::vector<const HloInstruction*> operands_;
  std::vector<const HloInstruction*> control_predecessors_;
  std::vector<const HloComputation*> called_computations_;
  std::vector<const HloInstruction*> schedules_;

  absl::flat_hash_map<absl::string_view, const HloInstruction*> by_name_;
  absl::flat_hash_map<int64_t, const HloInstruction*> by_id_;
  absl::flat_hash_map<int64_t, const HloComputation*> computations_by_id_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_MODULE_H_
