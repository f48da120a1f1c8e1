// Rewrites a profile on another clock, streaming: starts, ends, line bases and the session's start
// and stop are mapped; planes, lines and events keep their order and everything else they hold.
#ifndef TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_
#define TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_

#include "absl/status/statusor.h"
#include "trace_alignment/aligner/alignment_record.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct AlignOptions {
  // Written into the planes.
  AlignmentRecord record;
  LineAlignerOptions lines;
};

// Writes the aligned profile to the sink and returns what was done. `node` maps times that count
// from the session's start, `clock.start_ns()`.
absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_
