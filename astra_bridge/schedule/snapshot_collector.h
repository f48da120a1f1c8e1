// What is under way at once. A snapshot is a half-open interval in which the set of active edges is
// constant; every start and end of an edge is a change point.
//
//   edge a   |---------------|
//   edge b        |----------------|
//            |{a} |  {a, b}  | {b} |      three snapshots
//
// Partitioned, edges that cannot meet (edge_domains.h) are in snapshots of their own, each with its
// own change points.
#ifndef ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_COLLECTOR_H_
#define ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_COLLECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/edge_schedule.h"
#include "astra_bridge/schedule/workload_edges.h"

namespace meridian {

struct Snapshot {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // Ascending, at least one.
  std::vector<EdgeIndex> members;

  int64_t duration_ns() const { return end_ns - start_ns; }
};

// Returns for each edge whether it takes part in snapshots. Edges that move nothing do not. Nor do
// those of fewer bytes than coalesce_below_bytes: they are taken to disturb nobody and to be
// disturbed by nobody, so that snapshots that differ only in them become one.
std::vector<bool> EdgesInSnapshots(absl::Span<const CommEdge> edges, int64_t coalesce_below_bytes);

// Returns all snapshots by start, then by first member. Intervals may come from a schedule or from
// a measurement; edges with an empty one are in none. OutOfRange, with what to do, when the
// snapshots would have more than 50 million members in all.
absl::StatusOr<std::vector<Snapshot>> CollectSnapshots(absl::Span<const EdgeInterval> intervals,
                                                       const std::vector<bool>& takes_part,
                                                       const EdgeDomains& domains);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_COLLECTOR_H_
