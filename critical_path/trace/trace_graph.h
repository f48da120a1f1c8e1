// SPDX-License-Identifier: Apache-2.0
// The graph of what one rank did, in which a window's whole time is explained: its longest path
// leads from the window's start to its end and is exactly as long as the window.
//
//   window start ................................................................. window end
//   host    |  gap  |--- op ---[launch]---|   gap   |--[synchronize.........]--|   gap   |
//                                 \ launch delay                          /  return
//   stream                         |--- kernel ---| kk |--- kernel -------|
//
// Every edge runs forward in time and weighs at most the time between its ends. Of the edges into
// an instant one weighs all of it: the last thing that had to happen, so that the time between was
// spent there. The others weigh nothing. What comes last is found so:
//
// - Device work starts after the work before it on its stream, the work that it waited for and the
//   start of the call, or the end of the operator, that launched it, whichever is last. The time
//   from there to the start is kernel-kernel or launch overhead. Work that began before the end of
//   what it waits for was begun from within that.
// - A call that synchronises, or a blocking copy, ends after the work it waits for if that ended
//   within the call's last stretch; the rest is the call's return. Otherwise it ends by itself.
// - Within operators and calls a thread's time is its own.
// - A thread that was outside of all operators and calls is continued by what its next call is
//   known to have waited for; else by the last other thread of its process that began and ended
//   operators entirely within that time: the threads take turns, as those of forward and backward
//   pass do. The rest is a host gap, time that the trace does not show: Python, most often.
//
// Streams are those of a device. All kernels of a CUDA graph are launched by the graph's launch.
// All work launched in the window belongs to it and the window lasts until the last of it has
// ended; work launched before counts as far as it runs in the window. Operators and calls are cut
// at the window's ends.
#ifndef CRITICAL_PATH_TRACE_TRACE_GRAPH_H_
#define CRITICAL_PATH_TRACE_TRACE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/trace/trace_window.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

struct TraceGraphOptions {
  int64_t rank = 0;
  // Parts of names of the host's events that load data; time within them is data_loading.
  std::vector<std::string> data_load_events;
  // Device work without a launch was launched by a host that the trace does not show (XLA:CPU,
  // TPU): the time before it is the host's. Otherwise its launch came before the trace began.
  bool hosts_are_hidden = false;
};

// What one rank did.
struct RankEvents {
  const EventTable* table = nullptr;
  // By row: the place of its event in its file.
  absl::Span<const uint32_t> positions;
  // What the table's rows waited for.
  const DeviceDependencies* dependencies = nullptr;
  // By row: what its time is spent on, and its step (kNoStep for none). Empty for PyTorch's traces,
  // whose names and annotations tell.
  absl::Span<const BoundBy> bound_by;
  absl::Span<const int64_t> steps;
};

// Returns for each name of the table whether it is that of a data loader.
std::vector<bool> FindDataLoaders(const EventTable& table, const TraceGraphOptions& options);

// Builds the graph of the chosen rows.
PathGraph BuildTraceGraph(const RankEvents& events, const TraceWindow& window,
                          const WindowRows& chosen, const TraceGraphOptions& options);

// Builds the graph of what belongs to the window. Errors are those of ChooseWindowRows.
absl::StatusOr<PathGraph> BuildTraceGraph(const RankEvents& events, const TraceWindow& window,
                                          const TraceGraphOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_TRACE_GRAPH_H_
