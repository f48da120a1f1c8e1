// Which of a trace's events belong to a window:
//
//                    window start            window end
//   host    |-- op, cut --|  |-- op --|  |-- op, cut -- - -   |-- next op, not in it --|
//   stream     |-- launched before, cut --| |-- launched in the window ------|
//                                                                            end
#ifndef CRITICAL_PATH_WINDOW_ROWS_H_
#define CRITICAL_PATH_WINDOW_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/trace_window.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

struct WindowRows {
  // When the window is over: at its own end, or when the last work launched in it has ended.
  int64_t end_ps = 0;
  // In order. Each has some time between the window's start and end_ps, or starts there.
  std::vector<EventRow> rows;
  // Device work among them whose launch is not in the trace.
  int64_t without_launch = 0;
};

// Chooses
//
// - operators, calls, whatever launches device work or waits for it, and the host's events whose
//   name (by its id) loads data, that are in the window or begin before and end in it;
// - device work that was launched in the window, whenever it runs;
// - device work launched earlier that runs in the window. Work whose launch is unknown counts by
// its
//   own start.
//
// FailedPrecondition when there is none; OutOfRange when times or events are too many to count.
absl::StatusOr<WindowRows> ChooseWindowRows(const EventTable& table,
                                            const DeviceDependencies& dependencies,
                                            const TraceWindow& window,
                                            const std::vector<bool>& loads_data);

}  // namespace meridian

#endif  // CRITICAL_PATH_WINDOW_ROWS_H_
