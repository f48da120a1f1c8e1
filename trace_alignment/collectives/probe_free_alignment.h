// SPDX-License-Identifier: Apache-2.0
// Clock offsets of the nodes of a run from its collectives alone. Every instance says that some
// starts come before some ends on other nodes; with a bound on drift this leaves an interval for
// every node's offset at every start and end (difference_constraints.h):
//
//   offset of      upper bound   \___/\______/\.
//   a node         solution      ----..--------'    no violation, bounded drift
//                  lower bound   _/""\___/"""\_.
//                                time of the node's clock ->
//
// The truth is inside, if the collectives are matched rightly and no clock drifts faster. Where in
// it the truth likely is, and within how much, follows from how the members of collectives end
// (likely_clocks.h).
#ifndef TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_
#define TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/clock_jumps.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"

namespace meridian {

// From when to when a profile goes, in ps of its node's clock from the run base.
struct ProfileSpan {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
};

struct ProbeFreeOptions {
  // Position of the node whose clock is the reference.
  uint32_t reference_node = 0;
  // How fast two clocks may drift apart: to be on the safe side, more than they do.
  double max_drift_ppm = 100;
  // The first end of an instance comes at least this long after its last start.
  int64_t min_transfer_ps = 0;
  // Take the likely clocks and state the ranges that hold them with 90 %; else the middles of the
  // certified intervals, and these.
  bool end_agreement = true;
  // Whether contradictions may be jumps of clocks: executions are surely matched rightly.
  bool clocks_may_jump = true;
  // Within how much of the reference each node's clock is with 90 %, by what its host knows; 0 where
  // nothing is known. Or empty.
  std::vector<int64_t> prior_ps;
  // The profile's span of each node, over which its largest uncertainty is stated. Empty: over the
  // matched collectives of the node.
  std::vector<ProfileSpan> spans;
  // What nodes are called in messages. Empty: their positions.
  std::vector<int64_t> node_ids;
};

struct OffsetKnot {
  // Time of the node's clock, in ps from the run base.
  int64_t time_ps = 0;
  // The node's clock minus the reference at that time.
  int64_t offset_ps = 0;
};

struct NodeOffset {
  // Whether collectives bind the node's clock to the reference from both sides, directly or through
  // other nodes. A node that is not reachable keeps its clock, and nothing below is known of it.
  bool reachable = false;
  // The corners of the offset as a polyline, in the order of time. Without any the offset is 0.
  std::vector<OffsetKnot> knots;
  // The start or end next to the middle of its matched collectives, on the reference clock in ps
  // from the run base, and the offset then.
  int64_t offset_at_ps = 0;
  int64_t offset_ps = 0;
  // The larger distance from the offset to either end of the range that holds it: at offset_at_ps,
  // and at the worst time of the profile, between and beyond the collectives too.
  int64_t uncertainty_ps = 0;
  int64_t uncertainty_max_ps = 0;
  // From offset_ps to the farther end of the certified interval.
  int64_t certified_uncertainty_ps = 0;
  // How much faster the node's clock runs than the reference, from its first start to its last end,
  // and how far that can be off; absent when the two coincide.
  std::optional<double> drift_ppm;
  std::optional<double> drift_uncertainty_ppm;
};

struct ClockAlignment {
  // One per node of the table, in their order.
  std::vector<NodeOffset> nodes;
  // Whether some range is narrower than the certified interval.
  bool is_estimated = false;
  // Changes of clocks without which the collectives contradict each other; the knots have them. The
  // reference may have some: then all is on its clock as it would be without them.
  std::vector<ClockJump> jumps;
};

// Each returns FailedPrecondition when the collectives contradict each other; the message names
// them and their nodes.

// Takes the likely clocks, or the solution nearest to them. Reachable nodes have no violations among
// each other then. Where clocks jump, or are slewed, the parts before and after are mapped apart.
absl::StatusOr<ClockAlignment> AlignByCollectives(const CollectiveTable& table,
                                                  const ProbeFreeOptions& options);

// Takes what is between the greatest solution below the estimate and the least above it; where the
// estimate is outside the interval, its end stands for it.
absl::StatusOr<ClockAlignment> AlignNearEstimate(const CollectiveTable& table,
                                                 const ProbeFreeOptions& options,
                                                 OffsetFunction estimate_ps);

// Leaves all clocks as they are and says how far off they may be.
absl::StatusOr<ClockAlignment> KeepClocks(const CollectiveTable& table,
                                          const ProbeFreeOptions& options);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_
