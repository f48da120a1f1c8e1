// SPDX-License-Identifier: Apache-2.0
// From an execution graph (chakra_export/graph) with times to the path graphs of its ranks and the
// meetings between them. A node becomes an event, and the graph is that of trace/trace_graph.h, as
// for PyTorch's traces; gaps between the calls of a thread are what is between events there.
//
//   host thread  [call]  [gap]  [call]           the call begins when the kernel has ended
//                   \ launch       ^
//   stream           [kernel]------+
#ifndef CRITICAL_PATH_JOB_EXECUTION_JOB_H_
#define CRITICAL_PATH_JOB_EXECUTION_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/graph/execution_graph.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/job/rank_join.h"
#include "xla_profiler/base/optional_number.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {

// What is known of a node of the execution graph beside that graph.
struct TimedNode {
  // Unix times, or times from the start of a replay.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // The step of the work; absent when it belongs to none.
  OptionalNumber step;
  BoundBy bound_by = BoundBy::kGpuCompute;
  EventCategory category = EventCategory::kUnknown;
  // False for a node that is left out.
  bool is_chosen = true;
  // The node whose kernel it ran as, since a send and a receive may be one kernel; kNoNodeIndex for
  // a node that ran as its own.
  NodeIndex same_kernel_as = kNoNodeIndex;
  // What the node waited for beside its dependencies; kNoNodeIndex when nothing is known.
  NodeIndex cause = kNoNodeIndex;
};

// A Meeting (rank_join.h) of nodes: the arrivals' starts and the departures' ends take part in it.
struct ExecutionMeeting {
  std::string name;
  std::optional<int64_t> step;
  std::vector<NodeIndex> arrivals;
  std::vector<NodeIndex> departures;
  std::optional<GraphTransfer> transfer = std::nullopt;
};

struct TimedExecution {
  ExecutionGraph graph;
  // Times of the graph's nodes, indexed by node.
  std::vector<TimedNode> nodes;
  std::vector<ExecutionMeeting> meetings;
  // Whether device work without a launch may have waited for any work of its rank that had ended,
  // as that of hosts which the profile does not show (XLA:CPU, TPU).
  bool hosts_are_hidden = false;
};

struct RankWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Adds a meeting of nodes that the execution has by now, called as the first that arrives, in the
// first step that one of the arrivals has.
void AddMeeting(std::vector<NodeIndex> arrivals, std::vector<NodeIndex> departures,
                std::optional<GraphTransfer> transfer, TimedExecution* execution);

// Returns what the time of a node is spent on, by what its exporter said of it: one rule for the
// work of profiles and for the nodes of Chakra traces that were exported from them. `op_kind` is
// one of chakra_export/et/et_attributes.h, or empty. Collectives without a counterpart count as
// communication though they are exported as computation.
BoundBy BoundByOf(absl::string_view op_kind, bool on_host, bool communicates);

// Builds the graphs of the ranks that have nodes, each of the window given for the rank (its chosen
// steps), or from its first start to its last end; nodes are cut at the window's ends.
// FailedPrecondition when no rank has nodes; OutOfRange for times that are over 106 days apart.
absl::StatusOr<JobGraph> BuildExecutionJob(const TimedExecution& execution,
                                           const std::map<int64_t, RankWindow>& windows);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_EXECUTION_JOB_H_
