// Rewrites a profile on another clock, streaming: starts, ends, line bases and the session's start
// and stop are mapped; planes, lines and events keep their order and everything else they hold.
#ifndef TRACE_ALIGNMENT_XSPACE_ALIGNER_H_
#define TRACE_ALIGNMENT_XSPACE_ALIGNER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace_alignment/alignment_stats.pb.h"
#include "trace_alignment/node_clock.h"
#include "xla_profiler/util/byte_sink.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct AlignOptions {
  int64_t node_id = 0;
  // Written into the planes, e.g. "offsets".
  std::string method;
  // Every start is later than its predecessor's, as the earlier tools had it, instead of the order
  // and nesting that the file has.
  bool strict_monotonic = false;
  // Events keep their original times as stats.
  bool keep_original = false;
  // An event farther outside the snapshot pairs or offsets than this is an error.
  int64_t max_extrapolation_ns = 60000000000;
};

// True when the profile was written by AlignXSpace.
absl::StatusOr<bool> IsAligned(const XSpaceReader& reader);

// Writes the aligned profile to the sink and returns what was done. `node` maps times that count
// from the session's start, `clock.start_ns()`.
absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_XSPACE_ALIGNER_H_
