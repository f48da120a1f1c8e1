// SPDX-License-Identifier: Apache-2.0
// What waited for what in a trace, as a graph of instants:
//
//   host    op start ---> launch start ---> launch end --------> op end
//                              \                                   ^
//                               \ kernel_launch_delay             / sync_dependency
//   stream                       +--> kernel start --> kernel end +
//
// An instant is the start or the end of an event. An edge says that its head could not happen
// before its tail, and how much time of the trace it stands for. These make such graphs:
// trace/trace_graph.h (ours) and hta/hta_graph.h (equal to Holistic Trace Analysis) of Kineto
// traces, and job/execution_job.h of profiles and Chakra traces; job/rank_join.h joins the graphs
// of several ranks. Everything after them, the longest path, its breakdown, overlay and file, knows
// only the graph.
#ifndef CRITICAL_PATH_GRAPH_PATH_GRAPH_H_
#define CRITICAL_PATH_GRAPH_PATH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/buckets.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/hlo/collective_kind.h"

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
  kNotInTrace,  // the device was busy, or waited, with something that the trace does not show
  kBeforeStep,  // a rank had not begun the steps yet, or work launched before them ran
  kLast = kBeforeStep,
};
inline constexpr int kNumBoundBy = static_cast<int>(BoundBy::kLast) + 1;

// Returns a name as reports have it, such as "gpu_compute_bound", or without "gpu_" where the
// devices are none; empty for kNothing.
absl::string_view BoundByName(BoundBy bound_by);
absl::string_view BoundByName(BoundBy bound_by, bool without_gpus);

// Returns what device work spent the time on from when it could start until it did: on the overhead
// given, unless that took longer than devices do (inferred_waits.h).
BoundBy StartDelayBoundBy(BoundBy overhead, int64_t delay_ps);

using LaneId = uint32_t;
using GraphEventId = uint32_t;
using InstantId = uint32_t;
using EdgeId = uint32_t;

inline constexpr GraphEventId kNoEvent = std::numeric_limits<GraphEventId>::max();
inline constexpr InstantId kNoInstant = std::numeric_limits<InstantId>::max();
inline constexpr EdgeId kNoEdge = std::numeric_limits<EdgeId>::max();

// Step of an event that belongs to none.
inline constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

// A thread of a process or a stream of a device, of one rank.
struct Lane {
  int64_t rank = 0;
  TrackKind kind = TrackKind::kHost;
  // The trace's pid and tid, as it writes them.
  std::string process;
  std::string thread;
};

struct GraphEvent {
  NameId name = 0;
  LaneId lane = 0;
  // Times in ps from the graph's base_ns, as the builder of the graph sees the event: cut at the
  // window's ends, started when the stream's work before had ended, or rounded as HTA does.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  EventCategory category = EventCategory::kUnknown;
  // The event's place among those of its trace file, from 0.
  uint32_t position = 0;
  // The step in which the host ran or launched it.
  int64_t step = kNoStep;
  // Whether all that it needs is in PathGraph::needs.
  bool needs_are_known = false;
};

struct Instant {
  // Time in ps from the graph's base_ns.
  int64_t time_ps = 0;
  // kNoEvent for an end of the window. A meeting of ranks names the event of the last to come.
  GraphEventId event = kNoEvent;
  bool is_start = false;
};

struct GraphEdge {
  InstantId from = 0;
  InstantId to = 0;
  // The time that the edge stands for; never negative.
  int64_t weight_ps = 0;
  // The event that the time is booked on; kNoEvent when there is none.
  GraphEventId event = kNoEvent;
  EdgeType type = EdgeType::kOperator;
  BoundBy bound_by = BoundBy::kNothing;
};

// What ranks move when they meet.
struct GraphTransfer {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // What one rank puts in.
  int64_t bytes = 0;
  // In the order of the group; of a message source and target.
  std::vector<int32_t> ranks;
};

// Where ranks wait for each other: an instant that is passed when the last of them has come. The
// edges into it tell when each came.
struct GraphMeeting {
  InstantId instant = 0;
  // What they do together, e.g. "all-reduce psum.7".
  NameId name = 0;
  // The step in which they meet; absent when the trace has no steps.
  std::optional<int64_t> step;
  // Absent when it is not known, and in graphs that were saved.
  std::optional<GraphTransfer> transfer = std::nullopt;
};

// The order of instants and edges decides between equally long paths. No two edges join the same
// instants; ids are in range.
// The first step that a rank's host marks, and when that began, in ps from the graph's base_ns.
struct StepMark {
  int64_t rank = 0;
  int64_t step = 0;
  int64_t start_ps = 0;
};

struct PathGraph {
  // Unix time that all times count from.
  int64_t base_ns = 0;
  // The part of the trace that the graph explains.
  int64_t window_start_ps = 0;
  int64_t window_end_ps = 0;

  std::vector<Lane> lanes;
  StringPool names;
  // May hold events without instants, on which time is booked.
  std::vector<GraphEvent> events;
  std::vector<Instant> instants;
  std::vector<GraphEdge> edges;
  // Where ranks meet; empty for the graph of one rank.
  std::vector<GraphMeeting> meetings;
  // Device work and what it needs the data of; empty without execution traces.
  std::vector<std::pair<GraphEventId, GraphEventId>> needs;

  // At most one of each rank; none where only events tell their steps.
  std::vector<StepMark> marks;

  // Where the path must end; without it, wherever the longest path ends.
  std::optional<InstantId> end_instant;

  // The first step begins when all ranks have begun (step_times.h).
  bool first_step_waits_for_all = false;

  absl::string_view EventName(GraphEventId event) const { return names.Get(events[event].name); }
  const Lane& LaneOf(GraphEventId event) const { return lanes[events[event].lane]; }
  int64_t Time(InstantId instant) const { return instants[instant].time_ps; }

  // Adds an edge that stands for all the time between its ends.
  void AddTimed(InstantId from, InstantId to, EdgeType type, BoundBy bound_by, GraphEventId event) {
    edges.push_back({from, to, Time(to) - Time(from), event, type, bound_by});
  }
  // Adds an edge that stands for no time.
  void AddUntimed(InstantId from, InstantId to, EdgeType type) {
    edges.push_back({from, to, 0, kNoEvent, type, BoundBy::kNothing});
  }
};

// Returns by event the instant where its rank met the others: of work that takes part in a
// collective when the last member had come; kNoInstant for all other events.
std::vector<InstantId> MeetingsByEvent(const PathGraph& graph);

// Sums of a few times below this do not overflow.
inline constexpr int64_t kTimeLimitPs = int64_t{1} << 60;

// Returns whether all times of a graph are below that. Traces and saved graphs may hold any number.
bool TimesFit(const PathGraph& graph);

// Returns how many instants have edges.
int64_t CountJoinedInstants(const PathGraph& graph);

// The edges that leave (&GraphEdge::from) or enter (&GraphEdge::to) each instant, in the graph's
// order, of the graph as it was when this was made.
class EdgesByInstant : public Buckets<EdgeId> {
 public:
  EdgesByInstant(const PathGraph& graph, InstantId GraphEdge::*end)
      : Buckets(graph.instants.size(), [&](const auto& visit) {
          for (EdgeId id = 0; id < graph.edges.size(); ++id) visit(graph.edges[id].*end, id);
        }) {}
};

// Graphs that explain the whole time of a window number their instants alike:
//
//   instant   0              1 + 2 e        2 + 2 e        last
//             window start   start of e     end of e       window end
//
// and of the edges into an instant one stands for all the time before it.
inline constexpr InstantId kWindowStart = 0;
inline InstantId StartInstant(GraphEventId event) { return 1 + 2 * event; }
inline InstantId EndInstant(GraphEventId event) { return 2 + 2 * event; }

// Adds the instants of the window and of all events, which the graph must have by now.
void AddInstants(PathGraph* graph);

// Something that an instant had to wait for, and what the time since then would be spent on.
struct Cause {
  InstantId instant = 0;
  EdgeType type = EdgeType::kDependency;
  BoundBy bound_by = BoundBy::kNothing;
  // The event that the time would be booked on, or kNoEvent.
  GraphEventId event = kNoEvent;
};
using Causes = absl::InlinedVector<Cause, 8>;

// Adds an edge to `to` from each of the causes, of which one may be named more than once. With
// `has_time` the last of them stands for the time until `to`; of several at one time the better
// explanation: a stream's work before, then a wait, then a launch. The others stand for none.
void AddCauses(InstantId to, bool has_time, Causes* causes, PathGraph* graph);

// A step of WalkThread.
struct ThreadStep {
  GraphEventId event = kNoEvent;
  bool is_start = false;
  // Of the events that were open between the step before and this one, the one that started last;
  // kNoEvent when none was open.
  GraphEventId open = kNoEvent;
};

// Visits the starts and ends of a thread's events in order of time, and what was open in between:
//
//   A   |-----------------|            steps   A start, B start, B end, A end, C start, ...
//   B        |----|                    open    -        A        B      A      -
//   C                         |---|
//
// The events are given in the order in which they nest: by start, of equal
// starts the longer first. At equal times ends come before starts, except that an event's own start
// comes before its end; of ends that of the event that started last comes first.
//
// Events need not nest: one may begin within another and end after it.
void WalkThread(absl::Span<const GraphEvent> all_events, absl::Span<const GraphEventId> thread,
                absl::FunctionRef<void(const ThreadStep&)> visit);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_PATH_GRAPH_H_
