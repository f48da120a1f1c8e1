#include "xla_profiler/hlo/hlo_fingerprint.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/stable_hash.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

class Fingerprinter {
 public:
  absl::Status AddModule(const HloModule& module) {
    hash_.AddText(module.name());
    const HloComputation* entry = module.entry();
    if (entry == nullptr) return absl::OkStatus();
    for (const HloInstruction* parameter : Parameters(*entry)) {
      hash_.AddNumber(parameter->parameter_number());
      RETURN_IF_ERROR(AddShape(*parameter));
    }
    return entry->root() == nullptr ? absl::OkStatus() : AddShape(*entry->root());
  }

  absl::Status AddCollective(const HloCollective& collective) {
    RETURN_IF_ERROR(collective.status);
    const HloInstruction& instruction = *collective.instruction;
    hash_.AddText(instruction.opcode());
    hash_.AddNumber(instruction.operands().size());
    for (const HloInstruction* operand : instruction.operands()) {
      RETURN_IF_ERROR(AddShape(*operand));
    }
    ASSIGN_OR_RETURN(const HloShape output, OutputShape(collective));
    hash_.AddText(output.ToString());
    AddParticipants(*collective.participants);
    return absl::OkStatus();
  }

  uint64_t value() const { return hash_.value(); }

 private:
  // In the order of their numbers.
  static std::vector<const HloInstruction*> Parameters(const HloComputation& computation) {
    std::vector<const HloInstruction*> parameters;
    for (const HloInstruction& instruction : computation.instructions()) {
      if (instruction.opcode() == "parameter") parameters.push_back(&instruction);
    }
    std::stable_sort(parameters.begin(), parameters.end(),
                     [](const HloInstruction* a, const HloInstruction* b) {
                       return a->parameter_number() < b->parameter_number();
                     });
    return parameters;
  }

  // Shapes and participants are shared by many, so each is hashed once.
  absl::Status AddShape(const HloInstruction& instruction) {
    const auto known = shapes_.find(&instruction);
    if (known != shapes_.end()) {
      hash_.AddNumber(known->second);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const HloShape shape, instruction.Shape());
    StableHash hash;
    hash.AddText(shape.ToString());
    shapes_.emplace(&instruction, hash.value());
    hash_.AddNumber(hash.value());
    return absl::OkStatus();
  }

  void AddParticipants(const CollectiveParticipants& participants) {
    const auto [known, is_new] = participants_.try_emplace(&participants);
    if (is_new) known->second = HashOfParticipants(participants);
    hash_.AddNumber(known->second);
  }

  static uint64_t HashOfParticipants(const CollectiveParticipants& participants) {
    StableHash hash;
    const IdGroups& groups = participants.logical_groups;
    hash.AddNumber(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      hash.AddNumber(groups[i].size());
      for (int64_t id : groups[i]) hash.AddNumber(id);
    }
    hash.AddNumber(participants.logical_pairs.size());
    for (const SourceTargetPair& pair : participants.logical_pairs) {
      hash.AddNumber(pair.source);
      hash.AddNumber(pair.target);
    }
    return hash.value();
  }

  StableHash hash_;
  absl::flat_hash_map<const HloInstruction*, uint64_t> shapes_;
  absl::flat_hash_map<const CollectiveParticipants*, uint64_t> participants_;
};

}  // namespace

absl::StatusOr<uint64_t> HloFingerprint(const HloModule& module,
                                        const HloCollectives& collectives) {
  Fingerprinter fingerprinter;
  RETURN_IF_ERROR(fingerprinter.AddModule(module));
  for (const HloCollective& collective : collectives.all()) {
    RETURN_IF_ERROR(fingerprinter.AddCollective(collective));
  }
  return fingerprinter.value();
}

}  // namespace meridian
