// SPDX-License-Identifier: Apache-2.0
// The starts and ends of a thread's events in order of time, and what was open in between:
//
//   A   |-----------------|            steps   A start, B start, B end, A end, C start, ...
//   B        |----|                    open    -        A        B      A      -
//   C                         |---|
#ifndef CRITICAL_PATH_GRAPH_THREAD_WALK_H_
#define CRITICAL_PATH_GRAPH_THREAD_WALK_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "critical_path/graph/path_graph.h"

namespace meridian {

struct ThreadStep {
  GraphEventId event = kNoEvent;
  bool is_start = false;
  // Of the events that were open between the step before and this one, the one that started last;
  // kNoEvent when none was open.
  GraphEventId open = kNoEvent;
};

// Visits the steps of events that are given in the order in which they nest: by start, of equal
// starts the longer first. At equal times ends come before starts, except that an event's own start
// comes before its end; of ends that of the event that started last comes first.
//
// Events need not nest: one may begin within another and end after it. Returns how many do not.
int64_t WalkThread(absl::Span<const GraphEvent> all_events, absl::Span<const GraphEventId> thread,
                   absl::FunctionRef<void(const ThreadStep&)> visit);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_THREAD_WALK_H_
