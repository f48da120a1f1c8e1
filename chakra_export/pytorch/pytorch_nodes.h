// SPDX-License-Identifier: Apache-2.0
// From the timelines of all ranks and what their kernels communicate to the nodes of a run.
//
//   host call, gap            COMP on its thread
//   kernel, copy, fill        COMP
//   collective, send, receive COMM_COLL, COMM_SEND, COMM_RECV; a batch one node for each of its parts
//   communication that is not understood, has no counterpart, or that a simulator could not run (a
//   barrier): COMP, with the reason as its op_kind
#ifndef CHAKRA_EXPORT_PYTORCH_PYTORCH_NODES_H_
#define CHAKRA_EXPORT_PYTORCH_PYTORCH_NODES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/pytorch/matched_communication.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "chakra_export/run/run_graph.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// One rank's input; the pointers must outlive the nodes.
struct RankInput {
  const EventTable* table = nullptr;
  const RankTimeline* timeline = nullptr;
  const RankCommunication* communication = nullptr;
};

// Where a node came from.
struct NodeOrigin {
  // Position among the inputs.
  uint32_t input = 0;
  TimelineIndex node = 0;
};

struct PytorchNodes {
  RunGraph graph;
  // Where each node of the graph came from.
  std::vector<NodeOrigin> origins;
  // For each input: how much communication was made computation, by reason.
  std::vector<std::map<std::string, int64_t>> lowered;
  // How many nodes communicate by the nearest collective that ASTRA-sim has.
  int64_t approximated = 0;
};

// In the simulation flavour (et_files.h) collectives that ASTRA-sim does not have (reduce, gather,
// scatter) become the nearest that it has, of the same bytes. OutOfRange for more nodes than a
// graph holds.
absl::StatusOr<PytorchNodes> MakePytorchNodes(absl::Span<const RankInput> inputs, EtFlavor flavor,
                                              const MatchedCommunication& communication);

// Returns whether traces of that flavour have it.
bool RunsIn(EtFlavor flavor, const NodeCommunication& communication);

// Lets the node communicate that, which traces of the flavour have. Returns whether what ASTRA-sim has
// stands for it.
bool SetCommunication(const NodeCommunication& from, EtFlavor flavor, ProcessGroupList* groups,
                      RunNode* node);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_PYTORCH_NODES_H_
