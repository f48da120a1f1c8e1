// SPDX-License-Identifier: Apache-2.0
// Edits of what a what-if graph consists of and in which order: new or fewer events and edges,
// another order of a lane. The graph must keep its lanes' order (WhatIfGraph::keeps_order); events
// are those that have instants. Afterwards an EventIndex of the graph is out of date.
#ifndef CRITICAL_PATH_WHAT_IF_STRUCTURE_EDITS_H_
#define CRITICAL_PATH_WHAT_IF_STRUCTURE_EDITS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/what_if/event_index.h"
#include "critical_path/what_if/what_if_graph.h"

namespace meridian {

// Adds an event of that name and length after each of those given, next on the same thread or
// stream; what waited for that one waits for the new one. OutOfRange when there are too many.
absl::Status AddEvents(absl::string_view name, int64_t duration_ps, const Selection& selection,
                       WhatIfGraph* edited);

// Removes events with all that runs within them and all device work they launched. On a thread the
// gaps around them and the time of what is around them stay; what waited for removed work waits for
// the work before it on its stream. The events keep their numbers, without instants. Returns how
// many were removed. InvalidArgument when nothing would be left.
absl::StatusOr<int64_t> RemoveEvents(const EventIndex& index, const Selection& selection,
                                     WhatIfGraph* edited);

// Takes events that were removed, and meetings to which nobody comes any more, out of the tables:
// events and instants get new numbers, in the same order; edges keep theirs.
void DropRemoved(WhatIfGraph* edited);

// Lets the start of one event wait for the end of another, and that long.
void LinkEvents(GraphEventId from, GraphEventId to, int64_t delay_ps, WhatIfGraph* edited);

// Removes the edges from events to others, except for those that keep the order of a thread or
// stream. Returns how many. InvalidArgument when there is none.
absl::StatusOr<int64_t> UnlinkEvents(const Selection& from, const Selection& to,
                                     WhatIfGraph* edited);

// Moves events, each with all that runs within it, to right before or after another one of the same
// thread or stream (and within the same event), keeping their order. What they wait for on other
// lanes stays: the work of a stream changes places, its launches do not. InvalidArgument when they
// lie elsewhere, or overlap with what is not moved.
absl::Status MoveEvents(const EventIndex& index, const std::vector<GraphEventId>& events,
                        GraphEventId target, bool before, WhatIfGraph* edited);

// Lets device work run beside all other: it leaves its stream for one of its own, unless it has one
// already, and no device work waits for it but what is selected here, too. It still waits for what
// it waited for, and calls of the host wait for all they waited for. With `until`, the next event
// of that selection, on the same rank, waits for each. InvalidArgument for events of the host.
absl::Status OverlapEvents(const Selection& selection, const Selection* until, WhatIfGraph* edited);

// True when the edge joins two events' instants of one lane; on a device, of two different events.
bool IsLaneEdge(const WhatIfGraph& edited, const GraphEdge& edge);

// Gives a lane another order of its instants, or of a part of them, and joins those that now follow
// each other. The time before an instant, a gap or its parent's, stays with the instant; only the
// first and what takes its place exchange theirs, so that a thread begins when it began. Calls of
// the host that waited for work of a stream wait for the same work as before.
void ReorderLane(LaneId lane, std::vector<InstantId> order, WhatIfGraph* edited);

// Of edges that join the same instants keeps the longest; leads each lane's last instant to the
// window's end. To be called after a change of structure.
void TidyEdges(WhatIfGraph* edited);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_STRUCTURE_EDITS_H_
