#ifndef TRACE_ALIGNMENT_CLOCKS_CLOCK_ANCHORS_H_
#define TRACE_ALIGNMENT_CLOCKS_CLOCK_ANCHORS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "xla_profiler/base/json/jsonl_row.h"

namespace meridian {

// One instant on a node's two clocks; absent where unknown.
struct ClockAnchors {
  // W, Unix time.
  std::optional<int64_t> start_walltime_ns;
  // G, on the tracer's clock.
  std::optional<int64_t> start_gpu_ns;
};

// Reads "start_walltime_ns" and "start_gpu_ns". A start_walltime_ns of 0 is how writers say that
// they know neither.
absl::StatusOr<ClockAnchors> ReadClockAnchors(const JsonlRow& row);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_CLOCK_ANCHORS_H_
