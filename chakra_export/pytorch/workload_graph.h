// SPDX-License-Identifier: Apache-2.0
// From the timelines of all ranks to the graph that Chakra traces store.
//
//   full         every host call, gap and device work, with all their edges
//   simulation   device work alone, as ASTRA-sim runs it to the end
//
// In the simulation flavour the host is folded away. What the host passed on stays: work launched
// after a thread had waited for other work waits for that work. Time in which the device had
// nothing to run because the host was busy becomes a node, host_gap, between what the device ran
// before and what it ran next:
//
//   measured    [kernel]          [kernel]         the second one's dependencies ended earlier
//   simulation  [kernel][host_gap][kernel]
//
// Ranks that communicate, and whose clocks agree, begin as far apart as measured: a gap comes first
// on the later ones.
//
// The collectives of a rank are chained in one order that all ranks share, so that one at a time
// cannot be a deadlock. Kinds that ASTRA-sim does not have (reduce, gather, scatter) become the
// nearest that it has, of the same bytes. Communication that is not understood or has no
// counterpart, and barriers, are computation here, as long as measured.
#ifndef CHAKRA_EXPORT_PYTORCH_WORKLOAD_GRAPH_H_
#define CHAKRA_EXPORT_PYTORCH_WORKLOAD_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/pytorch/matched_communication.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// One rank's input; the pointers must outlive the call.
struct RankInput {
  const EventTable* table = nullptr;
  const RankTimeline* timeline = nullptr;
  const RankCommunication* communication = nullptr;
};

// Where a node of the graph came from.
struct NodeOrigin {
  // Position among the inputs.
  uint32_t input = 0;
  // kNoTimelineNode for nodes that were added: gaps of the simulation, the table of groups.
  TimelineIndex node = kNoTimelineNode;
};

struct WorkloadGraph {
  ExecutionGraph graph;
  // Where each node of the graph came from.
  std::vector<NodeOrigin> origins;
  // For each input: how many nodes communicate; how much communication was made computation, by
  // reason.
  std::vector<int64_t> communication_nodes;
  std::vector<std::map<std::string, int64_t>> lowered;
  // How many nodes communicate by the nearest collective that ASTRA-sim has.
  int64_t approximated = 0;
  // How many edges were removed since others imply them.
  size_t removed_edges = 0;
};

struct WorkloadGraphOptions {
  EtFlavor flavor = EtFlavor::kSimulation;
  int64_t world_size = 1;
  // False when the ranks' clocks contradict each other.
  bool clocks_agree = true;
};

// OutOfRange for more nodes than a graph holds, more than 499 process groups in the simulation
// flavour.
absl::StatusOr<WorkloadGraph> BuildWorkloadGraph(absl::Span<const RankInput> inputs,
                                                 const WorkloadGraphOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_WORKLOAD_GRAPH_H_
