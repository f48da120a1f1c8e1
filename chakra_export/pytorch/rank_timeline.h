// SPDX-License-Identifier: Apache-2.0
// What one process did and what each piece of it waited for, from its profile: the host's calls and
// the gaps between them, and the work of its device.
//
//   thread 1   [op a [op b]]--(gap)--[op c]            chain: a, b, gap, c
//                      |launch         ^ sync
//   stream 7         [kernel]----------+--[kernel]
//
// Host nodes. A call's duration is exclusive: what passed in the call itself, not in the calls it
// made. The calls of a thread are a chain in depth-first order, each after the one that began
// before it; so the caller's own time comes first and then that of what it called. Time between
// outermost calls is a gap, a node too. Step marks (ProfilerStep) are looked through.
//
// Waiting is no work, so it is taken out of the durations and becomes an edge:
//   - In a call that waits for the device (cudaStreamSynchronize, a copy that blocks), until the
//     work ended; the thread's next node waits for the work, and so does what the call's operator
//     launches later.
//   - A thread outside of all operators and calls waits for the thread whose turn it is
//     (thread_turns.h). Only what passed after that turn counts as the waiting thread's own.
#ifndef CHAKRA_EXPORT_PYTORCH_RANK_TIMELINE_H_
#define CHAKRA_EXPORT_PYTORCH_RANK_TIMELINE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/pytorch/host_device_link.h"
#include "chakra_export/pytorch/host_trace.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Position of a node in RankTimeline::nodes.
using TimelineIndex = NodeIndex;
inline constexpr TimelineIndex kNoTimelineNode = std::numeric_limits<TimelineIndex>::max();

struct TimelineNode {
  // The event; kNoRow for a gap.
  EventRow row = kNoRow;
  TrackId track = 0;
  // Time from the table's base. A node on the host may end later than start + duration: what it
  // called takes its time, too.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  // Of device work: when the host's call that launched it began (its own start when that is not
  // known), and the innermost linked operator around that call.
  int64_t launched_ps = 0;
  HostOpIndex launching_op = kNoHostOp;
  // The nearest of that operator and its callers that has tensors on the device
  // (tensor_dependencies.h).
  HostOpIndex tensor_op = kNoHostOp;
  bool on_host = false;

  int64_t end_ps() const { return start_ps + duration_ps; }
};

struct RankTimeline {
  // Every node comes after what it waits for, and those of a thread in the order of their chain.
  std::vector<TimelineNode> nodes;
  // Edges between positions in `nodes`.
  std::vector<DependencyEdge> edges;
  // The node of each row of the table; kNoTimelineNode for events that are no node.
  std::vector<TimelineIndex> node_of_row;
  // How many edges were left out since they would run backwards in time.
  int64_t edges_against_time = 0;

  // Adds the edge unless it would run backwards.
  void AddEdge(TimelineIndex node, TimelineIndex source, EdgeKinds kinds);
};

// The table must have been loaded from the text.
RankTimeline BuildRankTimeline(const EventTable& table, absl::string_view text,
                               const HostDeviceLink& link);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_RANK_TIMELINE_H_
