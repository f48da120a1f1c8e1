#include "xla_profiler/xplane/session_clock.h"

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// No session lasts longer: 40 hours. What lies farther from its start is no time of its events.
constexpr int64_t kMaxSessionPs = int64_t{1} << 57;

// Returns the stat's positive number; nullopt when it is something else.
std::optional<int64_t> UnixTimeStat(const XPlaneVisitor& plane, StatType type) {
  const XStatVisitor* stat = plane.GetStat(type);
  const std::optional<int64_t> value = stat == nullptr ? std::nullopt : stat->IntOrUintValue();
  return value.value_or(0) > 0 ? value : std::nullopt;
}

}  // namespace

absl::StatusOr<SessionInfo> ReadSessionInfo(const XSpaceReader& reader) {
  SessionInfo info;
  for (absl::string_view hostname : reader.layout().hostnames) {
    info.hostnames.emplace_back(hostname);
  }
  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> environment,
                   reader.FindPlane(kTaskEnvPlaneName));
  if (environment.has_value()) {
    info.profile_start_ns = UnixTimeStat(*environment, StatType::kProfileStartTime);
    info.profile_stop_ns = UnixTimeStat(*environment, StatType::kProfileStopTime);
  }
  return info;
}

absl::StatusOr<SessionClock> SessionClock::Create(const std::string& file, const SessionInfo& info,
                                                  std::optional<int64_t> override_start_ns) {
  const std::optional<int64_t> start_ns =
      override_start_ns.has_value() ? override_start_ns : info.profile_start_ns;
  if (!start_ns.has_value()) {
    return FailedPrecondition(file, ": no '", kTaskEnvPlaneName, "' plane with a ",
                              StatTypeName(StatType::kProfileStartTime),
                              ", so the times of its events are not known absolutely; give "
                              "--profile_start_ns, a flag of combine, xprof_trace_align and "
                              "chakra_export");
  }
  return SessionClock(file, *start_ns);
}

absl::StatusOr<int64_t> SessionClock::LineBaseNs(const XLineHeader& line) const {
  const std::optional<int64_t> base_ns = NarrowToInt64(absl::int128(start_ns_) + line.timestamp_ns);
  if (!base_ns.has_value()) {
    return absl::OutOfRangeError(absl::StrCat(file_, ": line '", line.name, "' begins ",
                                              line.timestamp_ns, " ns after the session started"));
  }
  return *base_ns;
}

bool SessionClock::ReadTimes(const XLineHeader& line, const XEventVisitor& event, int64_t* start_ps,
                             int64_t* end_ps) const {
  const std::optional<int64_t> start =
      NarrowToInt64(absl::int128(line.timestamp_ns) * kPsPerNs + event.OffsetPs());
  if (!start.has_value() || event.DurationPs() < 0) return false;
  *start_ps = *start;
  return !__builtin_add_overflow(*start, event.DurationPs(), end_ps) &&
         *start_ps >= -kMaxSessionPs && *end_ps <= kMaxSessionPs;
}

absl::StatusOr<int64_t> RunClock::ToRunPs(int64_t unix_ns, int64_t offset_ps) const {
  const std::optional<int64_t> run_ps =
      NarrowToInt64((absl::int128(unix_ns) - base_ns_) * kPsPerNs + offset_ps);
  if (!run_ps.has_value()) {
    return absl::OutOfRangeError(absl::StrCat("Unix time ", unix_ns, " ns and ", offset_ps,
                                              " ps lies more than 106 days from the run's start, ",
                                              base_ns_, " ns"));
  }
  return *run_ps;
}

int64_t RunClock::ToUnixNs(int64_t run_ps) const {
  return SaturateToInt64(absl::int128(base_ns_) + FloorToNs(run_ps));
}

}  // namespace meridian
