// SPDX-License-Identifier: Apache-2.0
// From what was measured of a node's clocks to the map that aligns its profile, as a user of the
// library does it.
#ifndef TRACE_ALIGNMENT_TESTING_NODE_INPUTS_H_
#define TRACE_ALIGNMENT_TESTING_NODE_INPUTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "trace_alignment/clocks/node_clock.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/collectives/probe_free_alignment.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

enum class ClockTarget { kTracer, kReference, kHost };

// What was measured of a node's clocks; absent is what was not.
struct NodeInputs {
  int64_t node_id = 0;
  std::optional<SnapshotPairs> snapshots;
  std::optional<SnapshotPairs> reference_snapshots;
  std::optional<OffsetSamples> offsets;
  OffsetSamples::Slope slope = OffsetSamples::Slope::kInterpolate;
};

absl::StatusOr<NodeClock> MakeNodeClock(const NodeInputs& inputs, ClockTarget target,
                                        const RunClock& session);

// What the target clock shows at a true time, from the cluster's start.
int64_t TargetPs(const SyntheticCluster& cluster, int64_t node, ClockTarget target,
                 int64_t true_ps);

// The clock of a node whose offset was found by the collectives of a run with that base.
absl::StatusOr<NodeClock> MakeNodeClock(const NodeOffset& offset, const RunClock& run);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_NODE_INPUTS_H_
