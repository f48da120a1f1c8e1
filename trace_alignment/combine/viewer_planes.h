// SPDX-License-Identifier: Apache-2.0
// What was found out about a run, for viewers that show it beside the profiles.
#ifndef TRACE_ALIGNMENT_COMBINE_VIEWER_PLANES_H_
#define TRACE_ALIGNMENT_COMBINE_VIEWER_PLANES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trace_alignment/clocks/node_clock.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/trace_export/trace_export.h"

namespace meridian {

struct ViewedNode {
  int64_t id = 0;
  // Takes times of its host to the common clock. Must outlive this object.
  const NodeClock* clock = nullptr;
  // When its profile ended, Unix time on its own clock.
  int64_t end_ns = 0;
};

// Returns an XSpace whose times count from start_ns, with a plane "Collectives": a line for each
// rank, a slice for each of its collectives; those of one instance are joined by arrows, from who
// came first to who came last. The table's times are those of the common clock. ResourceExhausted when there are too many collectives for one message of protobuf.
absl::StatusOr<std::string> CollectivesPlane(const CollectiveTable& table, int64_t start_ns);

// Returns what the nodes' clocks showed now and then, from the common clock's start_ns to the last
// end.
std::vector<ClockReading> ReadClocks(absl::Span<const ViewedNode> nodes, int64_t start_ns);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_VIEWER_PLANES_H_
