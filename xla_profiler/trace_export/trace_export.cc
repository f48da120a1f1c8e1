#include "xla_profiler/trace_export/trace_export.h"

#include <cstdint>
#include <optional>

#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/trace_export/perfetto_sink.h"
#include "xla_profiler/trace_export/space_walk.h"
#include "xla_profiler/trace_export/trace_json_sink.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

// A viewer needs no Unix time: nullopt when nobody tells.
absl::StatusOr<std::optional<int64_t>> SessionStart(const XSpaceReader& reader,
                                                    const ExportOptions& options) {
  if (options.profile_start_ns.has_value()) return options.profile_start_ns;
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  return info.profile_start_ns;
}

}  // namespace

absl::StatusOr<ExportStats> ExportTraceJson(const XSpaceReader& reader,
                                            const ExportOptions& options, ByteSink& out) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> start_ns, SessionStart(reader, options));
  TraceJsonSink sink(start_ns, &out);
  ASSIGN_OR_RETURN(const ExportStats stats, WalkSpace(reader, options, TimeRange(), sink));
  RETURN_IF_ERROR(sink.Finish());
  return stats;
}

absl::StatusOr<ExportStats> ExportPerfetto(const XSpaceReader& reader, const ExportOptions& options,
                                           ByteSink& out) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> start_ns, SessionStart(reader, options));
  PerfettoSink sink(start_ns, &out);
  ASSIGN_OR_RETURN(const ExportStats stats,
                   WalkSpace(reader, options, PerfettoSink::Range(start_ns), sink));
  RETURN_IF_ERROR(sink.Finish());
  return stats;
}

}  // namespace meridian
