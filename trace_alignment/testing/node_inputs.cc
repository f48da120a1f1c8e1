#include "trace_alignment/testing/node_inputs.h"

#include <utility>
#include <vector>

#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<NodeClock> MakeNodeClock(const NodeInputs& inputs, ClockTarget target,
                                        const RunClock& session) {
  NodeClock clock(session);
  if (inputs.snapshots.has_value()) {
    ASSIGN_OR_RETURN(ClockMap map, TracerToHostMap(*inputs.snapshots, session));
    if (target == ClockTarget::kTracer) clock.reference_to_target = map.Inverted();
    clock.tracer_to_host = std::move(map);
  }
  if (inputs.offsets.has_value()) {
    ASSIGN_OR_RETURN(ClockMap map,
                     inputs.offsets->OffsetMap(inputs.node_id, session, inputs.slope));
    clock.host_to_reference = std::move(map);
  }
  if (target == ClockTarget::kReference && inputs.reference_snapshots.has_value()) {
    ASSIGN_OR_RETURN(const ClockMap map, TracerToHostMap(*inputs.reference_snapshots, session));
    clock.reference_to_target = map.Inverted();
  }
  return clock;
}

int64_t TargetPs(const SyntheticCluster& cluster, int64_t node, ClockTarget target,
                 int64_t true_ps) {
  switch (target) {
    case ClockTarget::kTracer:
      // The node's own tracer when the node's host shows what the reference's does now.
      return cluster.FilePs(node, cluster.node(node).host.TruePs(true_ps));
    case ClockTarget::kReference:
      return cluster.FilePs(0, true_ps);
    case ClockTarget::kHost:
      return true_ps;
  }
  return 0;
}

absl::StatusOr<NodeClock> MakeNodeClock(const NodeOffset& offset, const RunClock& run) {
  NodeClock clock(run);
  std::vector<ClockKnot> knots;
  for (const OffsetKnot& knot : offset.knots) {
    knots.push_back({knot.time_ps, knot.time_ps - knot.offset_ps});
  }
  if (knots.empty()) return clock;
  ASSIGN_OR_RETURN(clock.host_to_reference, ClockMap::Create(std::move(knots)));
  return clock;
}

}  // namespace meridian
