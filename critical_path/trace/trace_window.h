// SPDX-License-Identifier: Apache-2.0
// The stretch of a trace that its critical path is to explain, and the events that belong to it:
//
//                    window start            window end
//                         |                       |
//   host      |-- op, cut --|  |-- op --|  |-- op, cut - - -|  |-- next op, not in it --|
//   stream       |-- launched before, cut --| |-- launched in the window --|
//                         |                                                |
//                                                        end_ps, when its last work has ended
#ifndef CRITICAL_PATH_TRACE_TRACE_WINDOW_H_
#define CRITICAL_PATH_TRACE_TRACE_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/graph/graph_source.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

struct TraceWindow {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // The track of the event that ends the window.
  TrackId end_track = 0;
  // The host's thread whose range the window is; absent when it is the whole trace, or a range of a
  // device.
  std::optional<TrackId> thread;
};

// Returns the span of all that the workers did and of all device work, or of the annotation's
// chosen occurrences: ranges of the host whose name contains the text, in order of their starts; if
// there are none, the host's other events, else the device's.
//
// FailedPrecondition when the trace has no device work or the window is empty; NotFound when the
// annotation does not occur, naming those there are; OutOfRange when it occurs too seldom.
absl::StatusOr<TraceWindow> ChooseTraceWindow(const EventTable& table,
                                              const DeviceDependencies& dependencies,
                                              const WindowChoice& choice);

struct WindowRows {
  // When the window is over: at its own end, or when the last work launched in it has ended.
  int64_t end_ps = 0;
  // In the table's order. Each has some time between the window's start and end_ps, or starts
  // there.
  std::vector<EventRow> rows;
};

// Chooses
//
// - operators, calls and whatever launches device work or waits for it, of threads that work
//   (thread_turns.h: nobody waits for one that only watches), and the host's events whose name loads
//   data (`loads_data`, by the table's names), that begin in the window or begin before and end in
//   it;
// - device work that was launched in the window, whenever it runs;
// - device work launched earlier that runs in the window. Work whose launch is unknown counts by
//   its own start, unless it was launched before the profile began.
//
// FailedPrecondition when there is none; OutOfRange when times or events are too many to count.
absl::StatusOr<WindowRows> ChooseWindowRows(const EventTable& table,
                                            const DeviceDependencies& dependencies,
                                            const TraceWindow& window,
                                            const std::vector<bool>& loads_data);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_TRACE_WINDOW_H_
