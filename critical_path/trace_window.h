// The stretch of a trace that its critical path is to explain.
#ifndef CRITICAL_PATH_TRACE_WINDOW_H_
#define CRITICAL_PATH_TRACE_WINDOW_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "critical_path/window_choice.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

struct TraceWindow {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // The host's thread whose range it is, if it is one.
  std::optional<TrackId> track;
};

// True for rows that make up the graph: operators, calls, and device work.
bool IsHostWork(EventCategory category);
bool IsDeviceWork(EventCategory category);

// Returns the span of all operators, calls and device work, or of the annotation's chosen
// occurrences: ranges of the host whose name contains the text, in order of their starts; if there
// are none, the host's other events, else the device's.
//
// FailedPrecondition when the trace has no device work or the window is empty; NotFound when the
// annotation does not occur, naming those there are; OutOfRange when it occurs too seldom.
absl::StatusOr<TraceWindow> ChooseTraceWindow(const EventTable& table, const WindowChoice& choice);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_WINDOW_H_
