// SPDX-License-Identifier: Apache-2.0
// The critical path drawn into its trace, for Perfetto and chrome://tracing: events on the path
// have the argument `critical`, and arrows (flow events of category critical_path) show what waited
// for what:
//
//   {"ph":"s","id":17,"pid":0,"tid":7,"ts":1.5,"cat":"critical_path","name":"critical_path",
//    "args":{"weight":0,"critical":true,"type":"critical_path_sync_dependency"}}
//
// Everything else of the file is copied as it stands, the events first. Of arrows of the trace those
// go whose slices are left out.
#ifndef CRITICAL_PATH_REPORT_PATH_OVERLAY_H_
#define CRITICAL_PATH_REPORT_PATH_OVERLAY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

struct OverlayOptions {
  // Leaves out the complete events that are not on the path, except for annotations and Python
  // functions.
  bool only_critical = true;
  // Draws all edges of the graph, not only those of the path that are dependencies, launches or
  // waits; then all events are kept, too. Launch edges without time, and edges from or to the
  // window's ends, are never drawn.
  bool all_edges = false;
};

// Returns the name of a trace's overlay: "overlaid_critical_path_" before the file's name.
std::string OverlayFileName(absl::string_view trace_path);

// Writes the trace, which the graph must be of, as a stream. Ids of arrows follow the largest that
// the trace has, in the order of the path. InvalidArgument when the text is no trace, or not the
// graph's (an event of the graph is not in it).
absl::Status WriteOverlay(absl::string_view trace_text, const PathGraph& graph,
                          const CriticalPath& path, const OverlayOptions& options, ByteSink* sink);

// Writes the path as a trace of its own, for graphs that no single trace JSON is of: those of
// XSpaces, of Chakra traces and of several ranks. There is a process for each rank and a thread for
// each of its lanes, with the graph's events or only those on the path. Ids of arrows count from 1
// in the order of the path.
absl::Status WriteTimelineOverlay(const PathGraph& graph, const CriticalPath& path,
                                  const OverlayOptions& options, ByteSink* sink);

}  // namespace meridian

#endif  // CRITICAL_PATH_REPORT_PATH_OVERLAY_H_
