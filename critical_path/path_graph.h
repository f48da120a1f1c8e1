// What waited for what in a trace, as a graph of instants:
//
//   host    op start ---> launch start ---> launch end --------> op end
//                              \                                   ^
//                               \ kernel_launch_delay             / sync_dependency
//   stream                       +--> kernel start --> kernel end +
//
// A node is the start or the end of an event, an edge says that its head could not happen before
// its tail and how much time of the trace it stands for. These make such graphs:
// trace_graph.h (ours) and hta/hta_graph.h (equal to Holistic Trace Analysis) of Kineto traces, and
// execution_job.h of profiles and Chakra traces; rank_join.h joins the graphs of several ranks.
// Everything after them, the longest path, its breakdown, overlay and file, knows only the graph.
#ifndef CRITICAL_PATH_PATH_GRAPH_H_
#define CRITICAL_PATH_PATH_GRAPH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

enum class EdgeType : uint8_t {
  kOperator,           // within a host's operator or call, or a device's work
  kDependency,         // program order without an operator around it
  kKernelLaunchDelay,  // from the host's call to the work it launched
  kKernelKernelDelay,  // from work to the stream's next
  kSyncDependency,     // from device work to what waited for it
  kLast = kSyncDependency,
};
inline constexpr int kNumEdgeTypes = static_cast<int>(EdgeType::kLast) + 1;

// Returns a name as reports have it, such as "kernel_launch_delay".
absl::string_view EdgeTypeName(EdgeType type);

// What the time of an edge is spent on.
enum class BoundBy : uint8_t {
  kNothing,  // an edge without time
  kCpu,
  kDataLoading,
  kGpuCompute,
  kGpuCommunication,
  kKernelKernelOverhead,
  kKernelLaunchOverhead,
  kHostGap,     // the host did something that the trace does not show
  kOtherRanks,  // waiting in a collective that others have not entered yet
  kLast = kOtherRanks,
};
inline constexpr int kNumBoundBy = static_cast<int>(BoundBy::kLast) + 1;

// Returns a name as reports have it, such as "gpu_compute_bound"; empty for kNothing.
absl::string_view BoundByName(BoundBy bound_by);

using LaneId = uint32_t;
using GraphEventId = uint32_t;
using NodeId = uint32_t;
using EdgeId = uint32_t;

inline constexpr GraphEventId kNoEvent = std::numeric_limits<GraphEventId>::max();
inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();

// A thread of a process or a stream of a device, of one rank.
struct Lane {
  int64_t rank = 0;
  TrackKind kind = TrackKind::kHost;
  // As the trace calls them (pid and tid).
  std::string process;
  std::string thread;
};

struct GraphEvent {
  NameId name = 0;
  LaneId lane = 0;
  // From the graph's base_ns, as the builder sees the event: cut or rounded.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  EventCategory category = EventCategory::kUnknown;
  // The event's place among those of its trace file, from 0.
  uint32_t position = 0;
};

struct GraphNode {
  int64_t time_ps = 0;
  // kNoEvent: a bound of the window.
  GraphEventId event = kNoEvent;
  bool is_start = false;
};

struct GraphEdge {
  NodeId from = 0;
  NodeId to = 0;
  // Never negative.
  int64_t weight_ps = 0;
  // The event that the time is booked on, if any.
  GraphEventId event = kNoEvent;
  EdgeType type = EdgeType::kOperator;
  BoundBy bound_by = BoundBy::kNothing;
};

// Where ranks wait for each other: a node that is passed when the last of them has come. Its
// incoming edges tell when each came.
struct GraphMeeting {
  NodeId node = 0;
  // What they do together, e.g. "all-reduce psum.7".
  NameId name = 0;
  std::optional<int64_t> step;
};

// The order of nodes and edges decides between equally long paths. No two edges join the same
// nodes; ids are in range.
struct PathGraph {
  // Unix time that all times count from.
  int64_t base_ns = 0;
  // What part of the trace this is.
  int64_t window_start_ps = 0;
  int64_t window_end_ps = 0;

  std::vector<Lane> lanes;
  StringPool names;
  // May hold events without nodes, on which time is booked.
  std::vector<GraphEvent> events;
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  // Of graphs of several ranks.
  std::vector<GraphMeeting> meetings;

  // Where the path must end; without it, wherever the longest path ends.
  std::optional<NodeId> end_node;

  absl::string_view EventName(GraphEventId event) const { return names.Get(events[event].name); }
};

PathGraph CopyGraph(const PathGraph& graph);

// Returns how many nodes have edges.
int64_t CountJoinedNodes(const PathGraph& graph);

}  // namespace meridian

#endif  // CRITICAL_PATH_PATH_GRAPH_H_
