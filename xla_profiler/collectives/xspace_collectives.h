// SPDX-License-Identifier: Apache-2.0
// The collectives of an XSpace profile.
//
//   GPU   kernels of `/device:GPU:<n>`, told by hlo_op and program; launches give run and device
//   CPU   thunks on the threads of `/host:CPU`, told by hlo_op and device_ordinal
//   TPU   ops on the line "XLA Ops" of `/device:TPU:<n>`; "XLA Modules" gives the run
//
// The HLO in `/host:metadata` says which instruction is a collective, of what kind and among whom;
// profiles without it are read by the annotations of their kernels, as far as these go. What cannot
// be resolved is counted, with the reason.
#ifndef XLA_PROFILER_COLLECTIVES_XSPACE_COLLECTIVES_H_
#define XLA_PROFILER_COLLECTIVES_XSPACE_COLLECTIVES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct XSpaceCollectivesOptions {
  // When the session began, for profiles that do not say. Unix time.
  std::optional<int64_t> profile_start_ns;
};

// Errors are those of a damaged file, and FailedPrecondition when the session's start is not known.
absl::StatusOr<ProfileCollectives> ReadXSpaceCollectives(
    const XSpaceReader& reader, const XSpaceCollectivesOptions& options = {});

// Return what a stat says; nothing for nullptr and for a stat of another type.
absl::string_view TextOf(const XStatVisitor* stat);
std::optional<int64_t> NumberOf(const XStatVisitor* stat);

// Returns the program that an event names by id, or, if it gives no id, by the name of its module
// when that is unique; nullptr when there is none.
const HloProgram* ProgramOf(const XEventVisitor& event, const HloModuleIndex& programs);

// Returns the instruction of an op on a TPU's line: "fusion.1" for
// "%fusion.1 = f32[8]{0} fusion(...)".
absl::string_view TpuInstruction(const XEventMetadata& metadata);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_XSPACE_COLLECTIVES_H_
