// From an execution graph (chakra_export/graph) with times to the path graphs of its ranks and the
// meetings between them.
//
//   host thread  [call]--[gap]--[call]
//                   \ launch delay  \ .
//   stream           [kernel]--------[kernel]     kernel-kernel delay
//
// Of what a node waits for, the last that ended stands for the time until it starts; work that
// began before the end of what it waits for was begun from within that. Device work of which nobody
// knows the launch (XLA:CPU, TPU) may have waited for any earlier work of its rank, and the rest is
// the host's time.
#ifndef CRITICAL_PATH_EXECUTION_JOB_H_
#define CRITICAL_PATH_EXECUTION_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "critical_path/path_graph.h"
#include "critical_path/rank_join.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {

// What is known of a node beside the graph.
struct TimedNode {
  // Unix time, or from the start of a replay.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  BoundBy bound_by = BoundBy::kGpuCompute;
  EventCategory category = EventCategory::kUnknown;
  std::optional<int64_t> step;
  // False to leave it out.
  bool is_chosen = true;
  // The node whose kernel it ran as, as a send and a receive may be one; kNoNodeIndex for its own.
  NodeIndex same_kernel_as = kNoNodeIndex;
  // What let it start beside its dependencies; kNoNodeIndex when nothing is known.
  NodeIndex cause = kNoNodeIndex;
};

// As Meeting.
struct ExecutionMeeting {
  std::string name;
  std::optional<int64_t> step;
  std::vector<NodeIndex> arrivals;
  std::vector<NodeIndex> departures;
};

struct TimedExecution {
  ExecutionGraph graph;
  // By node.
  std::vector<TimedNode> nodes;
  std::vector<ExecutionMeeting> meetings;
  // Whether work may have waited for what no edge says; see above.
  bool infer_waits = false;
};

struct RankWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Lets all windows begin with the earliest. What a rank that begins its step late did until then is
// part of the story.
void StartTogether(std::map<int64_t, RankWindow>* windows);

// A rank without a window is taken from its first start to its last end. Nodes are cut at the
// window's ends; ranks without nodes are left out. FailedPrecondition when all are; OutOfRange for
// times that are over 106 days apart.
absl::StatusOr<JobGraph> BuildExecutionJob(const TimedExecution& execution,
                                           const std::map<int64_t, RankWindow>& windows);

}  // namespace meridian

#endif  // CRITICAL_PATH_EXECUTION_JOB_H_
