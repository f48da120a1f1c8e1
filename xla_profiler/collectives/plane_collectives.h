// SPDX-License-Identifier: Apache-2.0
// One reader for each kind of plane that holds collectives; xspace_collectives.h puts them
// together.
#ifndef XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_
#define XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/host_executions.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Reads the start and end of an event (SessionClock::ReadTimes). Returns false, and counts it as
// unresolved, when they cannot be true.
bool ReadTimes(const SessionClock& clock, const XLineVisitor& line, const XEventVisitor& event,
               CollectiveCollector* collector, CollectivePiece* piece);

// Collectives of profiles that hold no HLO, by what XLA's detailed annotations say about a kernel:
//
//   hlo_op=all-reduce.2  replica_groups={{0;1};{2;3}}  shape=f32[1024]     (";" stands for ",")
//
// Only a kernel with replica_groups counts. The annotations do not name the kind; the kernel's
// symbol does. Groups hold logical ids, taken for device ids since there is no device assignment.
class AnnotatedCollectives {
 public:
  // Returns the op of a kernel that is annotated as a collective; nullopt for others. Annotations
  // that cannot be read are counted as unresolved.
  std::optional<uint32_t> FindOp(const XEventVisitor& event, CollectiveCollector* collector);

 private:
  // The ops found so far, by module and instruction; nullopt for those that could not be read.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::optional<uint32_t>> ops_;
};

absl::Status ReadGpuCollectives(const XPlaneVisitor& plane, const HostExecutions& host,
                                const SessionClock& clock, AnnotatedCollectives* annotated,
                                CollectiveCollector* collector);

// The step of a thunk is the one that was under way when it began.
absl::Status ReadCpuCollectives(const XSpaceReader& reader, const XPlaneVisitor& host_plane,
                                const SessionClock& clock, CollectiveCollector* collector);

absl::Status ReadTpuCollectives(const XPlaneVisitor& plane, const SessionClock& clock,
                                CollectiveCollector* collector);

// Takes the host's threads; the devices of the profile must have been read.
absl::Status ReadMegascaleMessages(const XPlaneVisitor& host_plane, const SessionClock& clock,
                                   CollectiveCollector* collector);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_
