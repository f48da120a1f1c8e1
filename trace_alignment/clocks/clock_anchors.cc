#include "trace_alignment/clocks/clock_anchors.h"

#include "xla_profiler/base/status_macros.h"

namespace meridian {

absl::StatusOr<ClockAnchors> ReadClockAnchors(const JsonlRow& row) {
  ClockAnchors anchors;
  if (row.Has("start_walltime_ns")) {
    ASSIGN_OR_RETURN(anchors.start_walltime_ns, row.Int64("start_walltime_ns"));
    if (anchors.start_walltime_ns == 0) return ClockAnchors();
  }
  if (row.Has("start_gpu_ns")) {
    ASSIGN_OR_RETURN(anchors.start_gpu_ns, row.Int64("start_gpu_ns"));
  }
  return anchors;
}

}  // namespace meridian
