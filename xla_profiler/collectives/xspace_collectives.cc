#include "xla_profiler/collectives/xspace_collectives.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/collective_collector.h"
#include "xla_profiler/collectives/host_executions.h"
#include "xla_profiler/collectives/plane_collectives.h"
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

bool ReadTimes(const SessionClock& clock, const XLineVisitor& line, const XEventVisitor& event,
               CollectiveCollector* collector, CollectivePiece* piece) {
  if (clock.ReadTimes(line.Header(), event, &piece->start_ps, &piece->end_ps)) return true;
  collector->AddUnresolved("collective whose times cannot be true", std::string(event.Name()));
  return false;
}

const HloProgram* ProgramOf(const XEventVisitor& event, const HloModuleIndex& programs) {
  // A module of the same name may be another compilation.
  const std::optional<int64_t> id = NumberOf(event.GetEventOrMetadataStat(StatType::kProgramId));
  if (id.has_value()) return programs.Find(static_cast<uint64_t>(*id));
  const std::vector<const HloProgram*> named =
      programs.FindByName(TextOf(event.GetEventOrMetadataStat(StatType::kHloModule)));
  return named.size() == 1 ? named[0] : nullptr;
}

absl::StatusOr<ProfileCollectives> ReadXSpaceCollectives(const XSpaceReader& reader,
                                                         const XSpaceCollectivesOptions& options) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create(reader.name(), info, options.profile_start_ns));
  ProfileCollectives result;
  result.trace = reader.path();
  result.base_ns = clock.start_ns();

  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> metadata,
                   reader.FindPlane(kMetadataPlaneName));
  const HloModuleIndex programs =
      metadata.has_value() ? HloModuleIndex(*metadata) : HloModuleIndex();
  CollectiveCollector collector(programs, &result);

  AnnotatedCollectives annotated;

  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> host,
                   reader.FindPlane(kHostThreadsPlaneName));
  if (host.has_value()) {
    RETURN_IF_ERROR(Annotate(ReadCpuCollectives(reader, *host, clock, &collector), reader.name()));
  }
  // Kernels are understood through their launches.
  std::optional<HostExecutions> executions;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) -> absl::Status {
    const bool is_host =
        host.has_value() && plane.Layout().payload.data() == host->Layout().payload.data();
    if (plane.NumLines() == 0 || is_host) return absl::OkStatus();
    if (absl::StartsWith(plane.Name(), kGpuPlanePrefix)) {
      if (!executions.has_value()) {
        executions.emplace();
        if (host.has_value()) {
          ASSIGN_OR_RETURN(*executions, HostExecutions::Read(*host));
        }
      }
      return ReadGpuCollectives(plane, *executions, clock, &annotated, &collector);
    }
    if (absl::StartsWith(plane.Name(), kTpuPlanePrefix)) {
      RETURN_IF_ERROR(ReadTpuCollectives(plane, clock, &collector));
    }
    // Nothing is concluded from a profile that is damaged where nobody looks.
    return plane.CheckEvents();
  }));
  if (host.has_value()) {
    if (!executions.has_value()) {
      RETURN_IF_ERROR(Annotate(host->CheckEvents(), reader.name()));
    }
    RETURN_IF_ERROR(Annotate(ReadMegascaleMessages(*host, clock, &collector), reader.name()));
  }
  collector.Finish();
  return result;
}

}  // namespace meridian
