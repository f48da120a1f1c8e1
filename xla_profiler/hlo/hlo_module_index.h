// SPDX-License-Identifier: Apache-2.0
// The programs of a profile. The plane "/host:metadata" holds one event metadata entry for each,
// "jit_step(1989)", with the module as bytes; kernels name their program by program_id or module
// name, and their instruction by name.
//
//   const HloModuleIndex index(*metadata_plane);
//   if (const HloProgram* program = index.Find(program_id)) {
//     ASSIGN_OR_RETURN(const HloCollectives* collectives, program->Collectives());
//   }
#ifndef XLA_PROFILER_HLO_HLO_MODULE_INDEX_H_
#define XLA_PROFILER_HLO_HLO_MODULE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/device_assignment.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// The name that a program has in the plane, "jit_step(1989)", in its parts.
struct ProgramName {
  absl::string_view module;
  std::optional<uint64_t> program_id;
};

// Splits a name. One without a number in parentheses at its end is all module.
ProgramName ParseProgramName(absl::string_view name);

// Tells whether two ranks run the same program. A program_id does not: on GPUs it is a counter of
// each process. Returns a hash of the module's name, the shapes of its parameters and result, and
// its collectives in file order: opcode, shapes, groups and pairs in logical ids. Ids, device
// assignment and backend configuration, which differ between ranks, are left out. The value is the
// same on all machines and may be stored. InvalidArgument when a shape or the groups of a
// collective are damaged.
absl::StatusOr<absl::uint128> HloFingerprint(const HloModule& module,
                                             const HloCollectives& collectives);

// One program, decoded on first request and kept; so is the error when that fails. Points into the
// file's bytes. Not safe to use from several threads.
class HloProgram {
 public:
  HloProgram(uint64_t program_id, absl::string_view name, absl::string_view bytes,
             const char* origin)
      : program_id_(program_id), name_(name), bytes_(bytes), origin_(origin) {}

  // Writers print it unsigned, stats may hold it signed: the 64 bits are the same.
  uint64_t program_id() const { return program_id_; }
  // The module's name, without "(program_id)".
  absl::string_view name() const { return name_; }
  // The xla.HloProto.
  absl::string_view bytes() const { return bytes_; }

  // Errors name program and offset: "jit_step(1989): offset 17: reason".
  absl::StatusOr<const HloModule*> Module() const;
  absl::StatusOr<const HloCollectives*> Collectives() const;
  absl::StatusOr<absl::uint128> Fingerprint() const;

  // Read by itself, without decoding the module; nullopt when the module does not say.
  absl::StatusOr<std::optional<DeviceAssignment>> ReadDeviceAssignment() const;
  // The bytes that it is read from: equal ones need not be read again.
  absl::StatusOr<std::optional<absl::string_view>> FindDeviceAssignment() const;

 private:
  uint64_t program_id_;
  absl::string_view name_;
  absl::string_view bytes_;
  const char* origin_;
  mutable std::optional<absl::StatusOr<std::unique_ptr<HloModule>>> module_;
  mutable std::optional<HloCollectives> collectives_;
  mutable std::optional<absl::StatusOr<absl::uint128>> fingerprint_;
};

class HloModuleIndex {
 public:
  // For a profile without programs: finds none.
  HloModuleIndex() = default;

  // Lists the entries of the plane that hold a module, without decoding any. The file's bytes must
  // outlive the index; the visitor need not.
  explicit HloModuleIndex(const XPlaneVisitor& metadata_plane);

  // In file order.
  const std::vector<HloProgram>& programs() const { return programs_; }

  // Returns the first program of that id, or nullptr.
  const HloProgram* Find(uint64_t program_id) const;

  // Returns the programs whose module has that name, in file order: a function that was compiled
  // for several shapes has several.
  std::vector<const HloProgram*> FindByName(absl::string_view name) const;

 private:
  std::vector<HloProgram> programs_;
  // Positions in programs_.
  absl::flat_hash_map<uint64_t, size_t> by_id_;
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> by_name_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_MODULE_INDEX_H_
