// SPDX-License-Identifier: Apache-2.0
// The graph of a run, whatever it was read from: nodes of all ranks, edges within ranks, and which
// nodes are one communication. Profiles of XLA (xspace/work_nodes.h) and of PyTorch
// (pytorch/pytorch_nodes.h) become one; the passes of this folder, and whoever asks what waited for
// what, do not know from which it came. docs/run_graph.md has the rules.
//
//   sources   device work, the host's calls, streams, launches, data, waits, communication
//   passes    one order of communication, hosts folded away, gaps (run_workload.h)
//   result    an ExecutionGraph, which Chakra traces store, replays run and critical paths walk
//
// Edges of a rank lead forward in time, so that no rank has a cycle of its own.
#ifndef CHAKRA_EXPORT_RUN_RUN_GRAPH_H_
#define CHAKRA_EXPORT_RUN_RUN_GRAPH_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/optional_number.h"

namespace meridian {

class HloInstruction;
struct DeviceWork;

struct RunNode {
  static constexpr uint32_t kNoInstance = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kNoKernel = std::numeric_limits<uint32_t>::max();

  absl::string_view name;
  Resource resource;
  // Unix time, as measured; kNoTimeNs when nothing was.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // What it takes when it is run again: of communication the transfer without the waiting, where
  // the clocks tell.
  int64_t duration_ns = 0;
  // Null for a node that does not communicate, as most do not: a run has millions of them.
  std::shared_ptr<const Communication> communication;
  // When the last member of the instance had started.
  int64_t instance_start_ns = 0;
  // What a COMP node is when it is no kernel; empty for kernels.
  absl::string_view op_kind;
  // The step in which the host ran or launched it; absent when there is none.
  OptionalNumber step;

  // Of profiles of XLA. The first of the pieces that the node stands for.
  const DeviceWork* work = nullptr;
  // What it ran; null when that is not known, or several.
  const HloInstruction* instruction = nullptr;
  // What its pieces compute and move, as far as it is known; 0 where another node bears it.
  int64_t operations = 0;
  int64_t bytes = 0;

  ChakraProtoMsg::NodeType type = kComputationNode;
  // Collectives of one execution have one number on all ranks; a send and its receive, too.
  uint32_t instance = kNoInstance;
  // Number of the device work that it stands for, or of the first piece of that; the nodes that one
  // kernel ran as, a send and its receive, have one number and stand together. kNoKernel for the
  // host's nodes and those that were made up.
  uint32_t kernel = kNoKernel;
  // Whether the host's call that launched it is known.
  bool is_launched = false;
  // Whether it is beside what its window stands for (WorkRange): another window counts it.
  bool is_beside = false;
  // The operand of `instruction` that it communicates, where each has a node of its own.
  static constexpr int16_t kAllOperands = -1;
  int16_t operand = kAllOperands;

  bool IsCommunication() const { return communication != nullptr; }
  bool IsDeviceWork() const { return kernel != kNoKernel; }
  bool IsOnHost() const { return resource.kind == ResourceKind::kHostThread; }
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

 private:
  std::vector<ProcessGroup> groups_;
  std::map<std::vector<int64_t>, GroupIndex> known_;
};

struct RunOutline;

struct RunGraph {
  std::vector<RunNode> nodes;
  std::vector<DependencyEdge> edges;
  // The groups that nodes' communication points to; the first is that of all ranks.
  std::vector<ProcessGroup> groups;
  // How many ranks the run has.
  int64_t rank_count = 0;
  // Whether times of different ranks can be compared. Otherwise all ranks are taken to begin at
  // once.
  bool has_one_clock = true;
  // Of a graph that has one rank alone, what it needs of the others, on one clock; else null.
  const RunOutline* outline = nullptr;
};

// What ranks need of each other when each has a graph of its own.
struct RunOutline {
  struct Meeting {
    // The collective's member of the least rank, or the message's send: its place in the graph of its
    // rank, and its start.
    int64_t rank = std::numeric_limits<int64_t>::max();
    NodeIndex node = kNoNodeIndex;
    int64_t start_ns = 0;
    // How many nodes it has on all ranks, and how many of them are not beside.
    size_t nodes = 0;
    size_t own_nodes = 0;
  };

  // Adds the graph of a rank, or of all.
  void Add(const RunGraph& graph);

  // The first start and the last end of work of devices; the start is the greatest number when there
  // is none.
  int64_t begin_ns = std::numeric_limits<int64_t>::max();
  int64_t end_ns = std::numeric_limits<int64_t>::min();
  // By instance.
  absl::flat_hash_map<uint32_t, Meeting> meetings;
};

// Adds a node of that time, and returns it; one that stands for time which nothing in the trace
// explains.
NodeIndex AddTimedNode(absl::string_view name, Resource resource, int64_t start_ns, int64_t end_ns,
                       RunGraph* graph);
NodeIndex AddGapNode(Resource resource, int64_t start_ns, int64_t end_ns, RunGraph* graph);

// Has the node wait for a kernel's work: for all nodes that the kernel ran as, if it is several.
void AddWaitForKernel(NodeIndex node, NodeIndex work, RunGraph* graph);

// Ends the making, and takes the edges out of the run's graph. `order` holds nodes once each; the
// others, which no edge leads to from one of these, are left out. Ids count up in that order, from 1
// on each rank. Node i of the result is order[i].
ExecutionGraph ToExecutionGraph(absl::Span<const NodeIndex> order, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_RUN_GRAPH_H_
