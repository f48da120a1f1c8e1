// The critical path as a trace of its own, for graphs that no single trace JSON is of: those of
// XSpaces, of Chakra traces and of several ranks. There is a process for each rank and a thread for
// each of its lanes; events on the path and arrows are as in path_overlay.h.
#ifndef CRITICAL_PATH_TIMELINE_OVERLAY_H_
#define CRITICAL_PATH_TIMELINE_OVERLAY_H_

#include "absl/status/statusor.h"
#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"
#include "critical_path/path_overlay.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Writes the graph's events, or those on the path; ids of arrows count from 1 in the order of the
// path.
absl::StatusOr<OverlayStats> WriteTimelineOverlay(const PathGraph& graph, const CriticalPath& path,
                                                  const OverlayOptions& options, ByteSink* sink);

}  // namespace meridian

#endif  // CRITICAL_PATH_TIMELINE_OVERLAY_H_
