// SPDX-License-Identifier: Apache-2.0
// The graph of a run while it is being made: nodes of all ranks, edges within ranks, and which
// nodes are one communication. Passes add edges and nodes; ToExecutionGraph ends the making.
//
// A rank's nodes are added in the order of their starts. Every pass up to AddCommunicationOrder
// adds edges from a node to a later one of its rank only, so that no rank has a cycle of its own.
#ifndef CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_
#define CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/xspace/device_work.h"
#include "xla_profiler/hlo/hlo_collective.h"

namespace meridian {

struct WorkNode {
  static constexpr uint32_t kNoInstance = std::numeric_limits<uint32_t>::max();

  absl::string_view name;
  ChakraProtoMsg::NodeType type = kComputationNode;
  Resource resource;
  // Unix time, as measured; kNoTimeNs when nothing was.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // What it takes in a simulation: of communication the transfer without the waiting, where the
  // clocks tell.
  int64_t duration_ns = 0;
  std::optional<Communication> communication;
  // Collectives of one execution have one number on all ranks; a send and its receive, too.
  uint32_t instance = kNoInstance;
  // When the last member of the instance had started, and how long the instance took from then.
  int64_t instance_start_ns = 0;
  int64_t transfer_ns = 0;
  // What a COMP node is when it is no kernel; empty for kernels.
  absl::string_view op_kind;
  // The first of the pieces that the node stands for, and how many they are; null and 0 for nodes
  // that were made up.
  const DeviceWork* work = nullptr;
  uint32_t pieces = 0;
  // What it ran; null when that is not known, or several.
  const HloInstruction* instruction = nullptr;
  // Of the nodes that one instruction ran as, the one that has its shapes and its cost.
  bool bears_cost = false;
  // What its pieces compute and move, as far as it is known; 0 where another node bears it.
  int64_t operations = 0;
  int64_t bytes = 0;

  bool IsCommunication() const { return communication.has_value(); }
  void SetCollective(int64_t comm_size, ChakraProtoMsg::CollectiveCommType kind, GroupIndex group);
  void SetMessage(bool is_send, int64_t comm_size, int64_t source, int64_t target, int32_t tag);
};

// The groups of a run while they are being found. The first is that of all ranks, which has no
// name; others are "1", "2", ...
class ProcessGroupList {
 public:
  explicit ProcessGroupList(int64_t rank_count);

  // Returns the group of these ranks, new or known.
  GroupIndex Add(const std::vector<int64_t>& ranks);

  const std::vector<ProcessGroup>& groups() const { return groups_; }

  // InvalidArgument when there are more than ASTRA-sim can tell apart.
  absl::Status Check() const;

 private:
  std::vector<ProcessGroup> groups_;
  std::map<std::vector<int64_t>, GroupIndex> known_;
};

struct WorkGraph {
  std::vector<WorkNode> nodes;
  std::vector<DependencyEdge> edges;
  // The groups that nodes' communication points to; the first is that of all ranks.
  std::vector<ProcessGroup> groups;
  // How many ranks the run has.
  int64_t rank_count = 0;
};

// Lets each node of a stream wait for the one before it. A stream begins its next work when it has
// done the last; also where the measured times overlap a little, as those of kernels that are
// launched early do.
void AddStreamOrder(WorkGraph* graph);

// How many pieces of work make a node.
enum class WorkGranularity : uint8_t {
  // Every kernel is a node.
  kKernel,
  // Kernels of one instruction, or of one command buffer, that follow each other are one.
  kHlo,
  // So is all computation of a step between two communications of its rank.
  kStep,
};

// Op kind of the nodes that kStep makes.
inline constexpr absl::string_view kStepOpKind = "step";

// Joins nodes that follow each other in the order of their starts, so that edges still lead
// forward; a joint node lasts from the first start to the last end, and costs what all of them do.
// Edges between what was joined go. Communication is never joined, and no computation across the
// end of one.
void MergeWork(WorkGranularity granularity, WorkGraph* graph);

// Ends the making. `order` holds every node once; ids count up in that order, from 1 on each rank.
// Node i of the result is order[i].
ExecutionGraph ToExecutionGraph(const WorkGraph& graph, absl::Span<const NodeIndex> order);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_WORK_GRAPH_H_
