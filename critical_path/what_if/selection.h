// SPDX-License-Identifier: Apache-2.0
// Which events and delays of a what-if graph an edit's conditions mean.
//
// Categories are those of events (cpu_op, runtime_api, kernel, memcpy, ...: event_category.h) and
//
//   groups   host, device, communication (device work that moves data between ranks), compute
//            (device work that does not)
//   delays   launch         from the call to the work it launched
//            kernel_gap     from work to the work that had to wait for it
//            host_gap       on a thread, outside of all that the trace shows
//
// Other conditions beside a delay are about the event that comes after it.
#ifndef CRITICAL_PATH_WHAT_IF_SELECTION_H_
#define CRITICAL_PATH_WHAT_IF_SELECTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/what_if/what_if_edits.h"
#include "critical_path/what_if/what_if_graph.h"

namespace meridian {

enum class Delay : uint8_t { kLaunch, kKernelGap, kHostGap };

// Returns which delay an edge is; nullopt when it stands for no time, or for an event's own.
std::optional<Delay> DelayOf(const WhatIfGraph& edited, const GraphEdge& edge);

// Returns for each event whether it moves data between ranks.
std::vector<bool> FindCommunication(const WhatIfGraph& edited);

// What conditions mean: events, or the delays before them.
struct Selection {
  // Whether each event, or the delay before it, is meant; indexed by event.
  std::vector<bool> events;
  // How many events are meant or, with a delay, how many edges.
  int64_t count = 0;
  // The delay that is meant; absent when the events are.
  std::optional<Delay> delay;
  // With a delay: whether the delay before the window's end, which is no event, is meant, too.
  bool includes_window_end = false;
};

// True for an edge whose delay is meant by a selection of delays.
bool IsSelectedDelay(const WhatIfGraph& edited, const Selection& selection, const GraphEdge& edge);

// Selects at least one event or delay. InvalidArgument for a category that does not exist, and when
// nothing is meant: the message says what there is.
absl::StatusOr<Selection> Select(const WhatIfGraph& edited, const Selector& selector);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_SELECTION_H_
