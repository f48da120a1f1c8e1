// SPDX-License-Identifier: Apache-2.0
// Rewrites a profile on another clock, streaming: starts, ends, line bases and the session's start
// and stop are mapped; planes, lines and events keep their order and everything else they hold.
#ifndef TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_
#define TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

class AlignmentStats;

// What an aligned profile says about its alignment, as stats on the planes that were moved.
struct AlignmentRecord {
  int64_t node_id = 0;
  // How the node's clock was found, e.g. "offsets".
  std::string method;
};

// Adds the stats alignment_node_id and alignment_method; their names begin with the prefix where a
// plane has those of several nodes.
void AddTo(PlaneAdditions* plane, const AlignmentRecord& record, absl::string_view prefix = "");

// True when the profile has such stats.
absl::StatusOr<bool> IsAligned(const XSpaceReader& reader);

struct AlignOptions {
  AlignmentRecord record;
  LineAlignerOptions lines;
};

// Writes the aligned profile to the sink and returns what was done.
absl::StatusOr<AlignmentStats> AlignXSpace(const XSpaceReader& reader, const SessionClock& clock,
                                           const NodeClock& node, const AlignOptions& options,
                                           ByteSink& sink);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_ALIGNER_XSPACE_ALIGNER_H_
