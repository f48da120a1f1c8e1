// SPDX-License-Identifier: Apache-2.0
// Writes the profiles of several nodes as one, on one clock:
//
//   Task Environment   from the earliest start to the latest stop
//   /host:metadata     the programs of all (program_table.h)
//   /host:CPU          the threads of all: "Node 3: python3" (not with names by node)
//   /device:GPU:0 ...  the planes of each node, one after the other
//
// combined_profile.h tells how they are told apart. First all metadata is read and the spans of the
// lines are found, then everything is streamed: memory is the metadata of all nodes and a buffer.
#ifndef TRACE_ALIGNMENT_COMBINE_COMBINER_H_
#define TRACE_ALIGNMENT_COMBINE_COMBINER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

class AlignmentStats;

// What the planes of several nodes are called in one file.
enum class PlaneNaming {
  // As viewers expect it: `/device:GPU:<n>` numbered through, one `/host:CPU`; what no viewer shows
  // as a device is `/node:<id>/...`.
  kViewer,
  // Every plane is `/node:<id>/...`.
  kNodePrefix,
  // The same, but devices are `/device:GPU:Host_Node_<n>`, n = node id x stride + device, where the
  // stride is the most devices that a node has.
  kHostNode,
};

// A node's profile and the way of its times to the common clock; all must outlive the call.
struct CombineInput {
  const XSpaceReader* reader = nullptr;
  const SessionClock* clock = nullptr;
  const NodeClock* node = nullptr;
  // What the planes will say about the alignment; its node_id is the node's.
  AlignmentRecord record;
};

struct CombineOptions {
  PlaneNaming naming = PlaneNaming::kViewer;
  // Keep the events' original times, and by how much each was moved, as stats (line_aligner.h).
  bool keep_original = false;
  // An event farther outside the snapshot pairs or offsets than this is an error.
  int64_t max_extrapolation_ns = 60000000000;
  // Called with the number of bytes of the profiles dealt with so far; may be null.
  std::function<void(uint64_t bytes)> progress;
};

// Returns what was done to each node, in their order. InvalidArgument for damaged profiles and for
// two nodes of one id; ResourceExhausted for more devices than viewers show.
absl::StatusOr<std::vector<AlignmentStats>> CombineXSpaces(absl::Span<const CombineInput> nodes,
                                                           const CombineOptions& options,
                                                           ByteSink& sink);

// The most devices that viewers show.
inline constexpr size_t kMaxViewerDevices = 499;

// Returns whether viewers can show the devices of all nodes in one file, named as kViewer does.
// InvalidArgument for damaged profiles.
absl::StatusOr<bool> FitViewers(absl::Span<const CombineInput> nodes);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_COMBINER_H_
