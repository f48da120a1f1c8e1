// Tells whether two ranks run the same program. A program_id does not: on GPUs it is a counter of
// each process.
#ifndef XLA_PROFILER_HLO_HLO_FINGERPRINT_H_
#define XLA_PROFILER_HLO_HLO_FINGERPRINT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace meridian {

// Returns a hash of the module's name, the shapes of its parameters and result, and its collectives
// in file order: opcode, shapes, groups and pairs in logical ids. Ids, device assignment and
// backend configuration, which differ between ranks, are left out. The value is the same on all
// machines and may be stored. InvalidArgument when a shape or the groups of a collective are
// damaged.
absl::StatusOr<uint64_t> HloFingerprint(const HloModule& module, const HloCollectives& collectives);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_FINGERPRINT_H_
