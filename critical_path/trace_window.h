// The stretch of a trace that its critical path is to explain.
#ifndef CRITICAL_PATH_TRACE_WINDOW_H_
#define CRITICAL_PATH_TRACE_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/window_choice.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

struct TraceWindow {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Of the event that ends the window.
  TrackId end_track = 0;
  // The host's thread whose range it is, if it is one.
  std::optional<TrackId> thread;
};

// True for rows that make up the graph: operators and calls, and device work.
bool IsHostWork(EventCategory category);
bool IsDeviceWork(EventCategory category);

// Returns for each track whether it is a thread that runs operators or launches work. Others only
// watch, as those that ask again and again whether a collective is over.
std::vector<bool> FindWorkers(const EventTable& table, const DeviceDependencies& dependencies);

// Returns the span of all that the workers did and of all device work, or of the annotation's
// chosen occurrences: ranges of the host whose name contains the text, in order of their starts; if
// there are none, the host's other events, else the device's.
//
// FailedPrecondition when the trace has no device work or the window is empty; NotFound when the
// annotation does not occur, naming those there are; OutOfRange when it occurs too seldom.
absl::StatusOr<TraceWindow> ChooseTraceWindow(const EventTable& table,
                                              const DeviceDependencies& dependencies,
                                              const WindowChoice& choice);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_WINDOW_H_
