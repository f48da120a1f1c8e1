// SPDX-License-Identifier: Apache-2.0
// How much work was launched to a stream and had not started yet, over time.
#ifndef CRITICAL_PATH_TRACE_QUEUE_LENGTH_H_
#define CRITICAL_PATH_TRACE_QUEUE_LENGTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// The queue's length from this moment on, in ps of the trace's own times.
struct QueuePoint {
  int64_t time_ps = 0;
  int64_t length = 0;
};

struct StreamQueue {
  // The trace's pid and tid, as it writes them.
  std::string device;
  std::string stream;
  // The lengths in order of time; one for each launch and one for each start.
  std::vector<QueuePoint> points;
};

// Returns the queues of all streams with launched work, in the table's order of tracks. Counts from
// the start of the call that launched the work to the work's start; work without a call in the
// profile does not count. Of equal times starts come before launches.
std::vector<StreamQueue> FindQueueLengths(const EventTable& table,
                                          const DeviceDependencies& dependencies);

// Returns "device,stream,time_us,queue_length" and a line for each point.
std::string QueueLengthCsv(absl::Span<const StreamQueue> queues);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_QUEUE_LENGTH_H_
