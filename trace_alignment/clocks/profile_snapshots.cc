#include "trace_alignment/clocks/profile_snapshots.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// The Unix time of the earliest base of a line that the tracer stamped.
absl::StatusOr<std::optional<int64_t>> EarliestTracerBase(const XSpaceReader& profile,
                                                          const SessionClock& clock) {
  std::optional<int64_t> earliest_ns;
  RETURN_IF_ERROR(profile.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
      if (ClockDomainOf(plane.Name(), line.Name()) != ClockDomain::kTracer) return absl::OkStatus();
      ASSIGN_OR_RETURN(const int64_t base_ns, clock.LineBaseNs(line.Header()));
      earliest_ns = std::min(earliest_ns.value_or(base_ns), base_ns);
      return absl::OkStatus();
    });
  }));
  return earliest_ns;
}

}  // namespace

absl::StatusOr<std::optional<SnapshotPairs>> LoadProfileSnapshots(FileSystem& file_system,
                                                                  const XSpaceReader& profile,
                                                                  const SessionClock& clock,
                                                                  const std::string& file,
                                                                  SnapshotPairsOptions options) {
  if (!file.empty()) {
    ASSIGN_OR_RETURN(options.earliest_tracer_base_ns, EarliestTracerBase(profile, clock));
    ASSIGN_OR_RETURN(SnapshotPairs pairs, LoadSnapshotPairs(file_system, file, options));
    return std::optional<SnapshotPairs>(std::move(pairs));
  }
  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> plane,
                   profile.FindPlane(kSnapshotsPlaneName));
  if (!plane.has_value()) return std::optional<SnapshotPairs>();
  ASSIGN_OR_RETURN(options.earliest_tracer_base_ns, EarliestTracerBase(profile, clock));
  ASSIGN_OR_RETURN(SnapshotPairs pairs,
                   SnapshotPairsFromPlane(*plane, clock, profile.name(), options));
  return std::optional<SnapshotPairs>(std::move(pairs));
}

}  // namespace meridian
