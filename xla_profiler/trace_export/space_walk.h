// The walk over a profile that all exports share.
#ifndef XLA_PROFILER_TRACE_EXPORT_SPACE_WALK_H_
#define XLA_PROFILER_TRACE_EXPORT_SPACE_WALK_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "xla_profiler/trace_export/export_options.h"
#include "xla_profiler/trace_export/trace_sink.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// Times that the format can hold, from the session's start. Events that start before or end after
// are left out.
struct TimeRange {
  int64_t min_ps = std::numeric_limits<int64_t>::min();
  int64_t max_ps = std::numeric_limits<int64_t>::max();
};

// Tells the sink all of the profile. Memory: the metadata of one plane, the names of all lines,
// and, for a line whose events are not in order (none of the known profilers writes such), up to 80
// bytes for each of them.
//
// Arrows need no table of launches: the ends that share a node and a correlation id share the id of
// the arrow. Correlation ids of 2^32 and more (none of the known profilers') get no arrow.
absl::StatusOr<ExportStats> WalkSpace(const XSpaceReader& reader, const ExportOptions& options,
                                      const TimeRange& range, TraceSink& sink);

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_SPACE_WALK_H_
