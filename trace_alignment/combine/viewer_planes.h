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
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/trace_export/trace_export.h"

namespace meridian {

struct ViewedNode {
  int64_t id = 0;
  // Takes times of its host to the common clock. Must outlive this object.
  const NodeClock* clock = nullptr;
  // When its profile ended, Unix time on its own clock.
  int64_t end_ns = 0;
};

// Returns what the nodes' clocks showed now and then, from the common clock's start_ns to the last
// end.
std::vector<ShownTimes> ReadClocks(absl::Span<const ViewedNode> nodes, int64_t start_ns);

struct ViewerPlanesInput {
  // Its times are those of the common clock.
  const CollectiveTable& table;
  // Those that the table was made of, and the ids of their nodes.
  absl::Span<const ProfileCollectives> profiles;
  absl::Span<const int64_t> node_ids;
  absl::Span<const ShownTimes> readings;
  // What times count from, Unix time.
  int64_t start_ns = 0;
};

// Returns an XSpace (ExportOptions::additions) with two planes:
//
//   Clock offsets  a counter for each node: how far its clock was ahead of the common one, in ns
//   Collectives    a line for each rank, a slice for each of its collectives; those of one instance
//                  are joined by an arrow from who came first to who came last, and each to its
//                  kernel
//
// ResourceExhausted when there are too many collectives for one message of protobuf.
absl::StatusOr<std::string> ViewerPlanes(const ViewerPlanesInput& input);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_VIEWER_PLANES_H_
