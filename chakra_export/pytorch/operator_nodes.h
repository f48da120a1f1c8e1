// SPDX-License-Identifier: Apache-2.0
// What a PyTorch program asked for, before it was lowered to kernels: the outermost operators of the
// execution traces and the collectives that they stand for, joined by the tensors that one makes and
// another uses. Nothing has a time, nothing waits for a stream.
#ifndef CHAKRA_EXPORT_PYTORCH_OPERATOR_NODES_H_
#define CHAKRA_EXPORT_PYTORCH_OPERATOR_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/matched_communication.h"
#include "chakra_export/pytorch/op_tensors.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "chakra_export/run/run_graph.h"

namespace meridian {

// One rank's input; the pointers must outlive the nodes.
struct OperatorInput {
  const HostTrace* host = nullptr;
  const RankTimeline* timeline = nullptr;
  const RankCommunication* communication = nullptr;
};

struct OperatorNodes {
  RunGraph graph;
  struct Origin {
    // Position among the inputs.
    uint32_t input = 0;
    HostOpIndex op = kNoHostOp;
    // What the operator costs with all that it calls.
    OpCost cost;
  };
  // Where each node of the graph came from.
  std::vector<Origin> origins;
  // How many communication kernels no operator launched.
  int64_t lost = 0;
};

// Operators are those with a schema (aten::linear, c10d::allreduce_); what they call is part of them,
// and what calls them (steps, modules, the autograd engine) is none. One whose
// communication has no counterpart is computation.
// OutOfRange for more edges than a graph holds.
absl::StatusOr<OperatorNodes> MakeOperatorNodes(absl::Span<const OperatorInput> inputs,
                                                EtFlavor flavor, int64_t world_size);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_OPERATOR_NODES_H_
