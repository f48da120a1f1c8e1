// SPDX-License-Identifier: Apache-2.0
// Which processes and tracks a profile has, and in what order to show them. In a combined profile
// (combined_profile.h) a plane that several nodes share is a process for each:
//
//   Node 0: /host:CPU, Node 0: /device:GPU:0, Node 1: /host:CPU, Node 1: /device:GPU:0, ...
#ifndef XLA_PROFILER_TRACE_EXPORT_TRACK_LAYOUT_H_
#define XLA_PROFILER_TRACE_EXPORT_TRACK_LAYOUT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/trace_export/trace_sink.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// How a line of the file is shown.
struct LineLayout {
  enum class Kind { kHidden, kSlices, kCounters };

  // Lines without events are hidden.
  Kind kind = Kind::kHidden;
  bool on_device = false;
  // Position of its node among the nodes in order of id; lines that are no node's come after all.
  uint64_t node_index = 0;
  // The line's track. Lines of counters have none: only process_id and position are set.
  TraceTrack track;
};

struct TrackLayout {
  // In the order they are shown: node by node, each node's host before its devices.
  std::vector<TraceProcess> processes;
  // All lines of the file, in its order.
  std::vector<LineLayout> lines;
  // Larger than all ids above.
  int64_t next_id = 1;
  // Larger than all node indices and positions of processes above.
  uint64_t next_node_index = 0;
  int64_t next_position = 0;
  // The indices of the nodes, by their ids.
  std::map<int64_t, uint64_t> node_indices;
};

// Looks at every line's header. Costs memory in proportion to the lines. Ids and positions go on
// behind those of another profile that is shown together with this one, if there is one. Devices whose
// ranks are known have these in their names.
absl::StatusOr<TrackLayout> ReadTrackLayout(const XSpaceReader& reader,
                                            const TrackLayout& before = {},
                                            const DeviceRanks& ranks = {});

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_TRACK_LAYOUT_H_
