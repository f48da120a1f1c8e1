// SPDX-License-Identifier: Apache-2.0
// When each comm edge of a workload runs, given how long it takes: the workload is replayed, and an
// edge is under way from when its last member was issued to its end.
//
//   rank 0   [ compute ][ wait ][ all-reduce ][ compute ]
//   rank 1   [ compute         ][ all-reduce ]
//                               |<-interval->|
#ifndef ASTRA_BRIDGE_SCHEDULE_EDGE_SCHEDULE_H_
#define ASTRA_BRIDGE_SCHEDULE_EDGE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

// From start to before end; empty for an edge that takes no time.
struct EdgeInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;

  int64_t duration_ns() const { return end_ns - start_ns; }
  friend bool operator==(const EdgeInterval& a, const EdgeInterval& b) {
    return a.start_ns == b.start_ns && a.end_ns == b.end_ns;
  }
};

struct EdgeSchedule {
  // When each edge is under way, by edge.
  std::vector<EdgeInterval> intervals;
  // When each node of the graph runs.
  GraphReplay replay;
};

// Replays the workload with edges that last edge_ns[edge], all members alike. Messages are sent as
// in ASTRA-sim, whether or not their receiver is there. FailedPrecondition when nodes wait for each
// other for ever, naming them: by their dependencies, or in communication.
absl::StatusOr<EdgeSchedule> ScheduleEdges(const ExecutionGraph& graph,
                                           const CommunicationMatch& match,
                                           const WorkloadEdges& edges,
                                           absl::Span<const int64_t> edge_ns,
                                           ReplayResources resources);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_EDGE_SCHEDULE_H_
