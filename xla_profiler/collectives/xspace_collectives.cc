#include "xla_profiler/collectives/xspace_collectives.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/host_executions.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

absl::string_view TextOf(const XStatVisitor* stat) {
  return stat == nullptr ? absl::string_view() : stat->StrOrRefValue();
}

std::optional<int64_t> NumberOf(const XStatVisitor* stat) {
  return stat == nullptr ? std::nullopt : stat->IntOrUintValue();
}

absl::string_view TpuInstruction(const XEventMetadata& metadata) {
  absl::string_view name = metadata.name;
  if (!absl::ConsumePrefix(&name, "%")) return metadata.display_name;
  return name.substr(0, name.find(' '));
}

bool ProfileTimes::Read(const XLineHeader& line, const XEventVisitor& event,
                        CollectiveCollector* collector, int64_t* start_ps, int64_t* end_ps) const {
  const absl::StatusOr<int64_t> base_ns = clock_.LineBaseNs(line);
  const absl::StatusOr<int64_t> start =
      base_ns.ok() ? run_.ToRunPs(*base_ns, event.OffsetPs()) : base_ns;
  if (!start.ok() || event.DurationPs() < 0 ||
      __builtin_add_overflow(*start, event.DurationPs(), end_ps)) {
    collector->AddUnresolved("collective whose times cannot be true", std::string(event.Name()));
    return false;
  }
  *start_ps = *start;
  return true;
}

const HloProgram* ProgramOf(const XEventVisitor& event, const CollectiveCollector& collector) {
  return collector.FindProgram(NumberOf(event.GetEventOrMetadataStat(StatType::kProgramId)),
                               TextOf(event.GetEventOrMetadataStat(StatType::kHloModule)));
}

absl::StatusOr<ProfileCollectives> ReadXSpaceCollectives(const XSpaceReader& reader,
                                                         const XSpaceCollectivesOptions& options) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create(reader.name(), info, options.profile_start_ns));
  ProfileCollectives result;
  result.trace = reader.path();
  result.base_ns = clock.start_ns();
  const ProfileTimes times(clock);

  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> metadata,
                   reader.FindPlane(kMetadataPlaneName));
  const HloModuleIndex programs =
      metadata.has_value() ? HloModuleIndex(*metadata) : HloModuleIndex();
  CollectiveCollector collector(programs, &result);

  AnnotatedCollectives annotated;

  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> host,
                   reader.FindPlane(kHostThreadsPlaneName));
  if (host.has_value()) {
    RETURN_IF_ERROR(Annotate(ReadCpuCollectives(*host, times, &collector), reader.name()));
  }
  // Kernels are understood through their launches.
  std::optional<HostExecutions> executions;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) -> absl::Status {
    if (plane.NumLines() == 0) return absl::OkStatus();
    if (absl::StartsWith(plane.Name(), kGpuPlanePrefix)) {
      if (!executions.has_value()) {
        executions.emplace();
        if (host.has_value()) {
          ASSIGN_OR_RETURN(*executions, HostExecutions::Read(*host));
        }
      }
      return ReadGpuCollectives(plane, *executions, times, &annotated, &collector);
    }
    if (absl::StartsWith(plane.Name(), kTpuPlanePrefix)) {
      RETURN_IF_ERROR(ReadTpuCollectives(plane, times, &collector));
    }
    // Nothing is concluded from a profile that is damaged where nobody looks.
    const bool was_read = executions.has_value() && host.has_value() &&
                          plane.Layout().payload.data() == host->Layout().payload.data();
    return was_read ? absl::OkStatus() : plane.CheckEvents();
  }));
  collector.Finish();
  return result;
}

}  // namespace meridian
