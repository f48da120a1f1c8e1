// Writes the profiles of several nodes as one, on one clock:
//
//   Task Environment   from the earliest start to the latest stop
//   /host:metadata     the programs of all (program_table.h)
//   /host:CPU          the threads of all: "Node 3: python3" (not with names by node)
//   /device:GPU:0 ...  the planes of each node, one after the other (plane_naming.h)
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
#include "trace_alignment/aligner/alignment_record.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/line_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "trace_alignment/combine/plane_naming.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// A node's profile and the way of its times to the common clock; all must outlive the call.
struct CombineInput {
  const XSpaceReader* reader = nullptr;
  const SessionClock* clock = nullptr;
  // Maps times that count from the session's start.
  const NodeClock* node = nullptr;
  // Its node_id is the node's.
  AlignmentRecord record;
};

struct CombineOptions {
  PlaneNaming naming = PlaneNaming::kViewer;
  // node_id is set for each node.
  LineAlignerOptions lines;
  // Called with the number of bytes of the profiles dealt with so far; may be null.
  std::function<void(uint64_t bytes)> progress;
};

// Returns what was done to each node, in their order. InvalidArgument for damaged profiles and for
// two nodes of one id; ResourceExhausted for more devices than viewers show.
absl::StatusOr<std::vector<AlignmentStats>> CombineXSpaces(absl::Span<const CombineInput> nodes,
                                                           const CombineOptions& options,
                                                           ByteSink& sink);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COMBINE_COMBINER_H_
