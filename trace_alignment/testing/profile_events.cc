#include "trace_alignment/testing/profile_events.h"

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

constexpr char kName[] = "profile";

// Old profiles do not say when their session began.
constexpr int64_t kAssumedStartNs = 1'700'000'000'000'000'000;

absl::StatusOr<SessionClock> ClockOf(const XSpaceReader& reader) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  return SessionClock::Create(kName, info, info.profile_start_ns.value_or(kAssumedStartNs));
}

}  // namespace

absl::StatusOr<std::vector<ProfileEvent>> ListProfileEvents(absl::string_view profile,
                                                            int64_t base_ns) {
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(profile, kName));
  ASSIGN_OR_RETURN(const SessionClock clock, ClockOf(reader));
  const RunClock run(base_ns);
  std::vector<ProfileEvent> events;
  int64_t lines = 0;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t line_base_ns, clock.LineBaseNs(line.Header()));
      const int64_t number = lines++;
      return line.ForEachEvent([&](const XEventVisitor& visitor) -> absl::Status {
        if (visitor.IsAggregatedEvent()) return absl::OkStatus();
        ProfileEvent event;
        event.domain = ClockDomainOf(plane.Name(), line.Name());
        event.line = number;
        ASSIGN_OR_RETURN(event.start_ps, run.ToRunPs(line_base_ns, visitor.OffsetPs()));
        event.end_ps = event.start_ps + visitor.DurationPs();
        event.name = absl::StrCat(plane.Name(), " | ", line.Name(), " | ", visitor.Name());
        events.push_back(event);
        return absl::OkStatus();
      });
    });
  }));
  return events;
}

absl::StatusOr<AlignedProfile> AlignProfile(
    absl::string_view profile,
    absl::FunctionRef<absl::StatusOr<NodeClock>(const RunClock& session)> make_clock,
    const AlignOptions& options) {
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(profile, kName));
  ASSIGN_OR_RETURN(const SessionClock clock, ClockOf(reader));
  ASSIGN_OR_RETURN(const NodeClock node, make_clock(RunClock(clock.start_ns())));
  AlignedProfile aligned;
  StringSink sink(&aligned.bytes);
  ASSIGN_OR_RETURN(aligned.stats, AlignXSpace(reader, clock, node, options, sink));
  return aligned;
}

}  // namespace meridian
