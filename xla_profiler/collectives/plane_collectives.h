// One reader for each kind of plane that holds collectives; xspace_collectives.h puts them
// together.
#ifndef XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_
#define XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "xla_profiler/collectives/annotated_collective.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/host_executions.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// Times of a profile's events, in picoseconds from its session's start.
class ProfileTimes {
 public:
  explicit ProfileTimes(const SessionClock& clock) : clock_(clock), run_(clock.start_ns()) {}

  // Reads the start and end of an event. Returns false, and counts it as unresolved, when they do
  // not fit or the end lies before the start.
  bool Read(const XLineHeader& line, const XEventVisitor& event, CollectiveCollector* collector,
            int64_t* start_ps, int64_t* end_ps) const;

 private:
  const SessionClock& clock_;
  RunClock run_;
};

absl::Status ReadGpuCollectives(const XPlaneVisitor& plane, const HostExecutions& host,
                                const ProfileTimes& times, AnnotatedCollectives* annotated,
                                CollectiveCollector* collector);

absl::Status ReadCpuCollectives(const XPlaneVisitor& host_plane, const ProfileTimes& times,
                                CollectiveCollector* collector);

absl::Status ReadTpuCollectives(const XPlaneVisitor& plane, const ProfileTimes& times,
                                CollectiveCollector* collector);

// The program that an event's stats name, by id or module; nullptr when they name none.
const HloProgram* ProgramOf(const XEventVisitor& event, const CollectiveCollector& collector);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_PLANE_COLLECTIVES_H_
