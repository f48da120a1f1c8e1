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
// The truth is inside, if the collectives are matched rightly and no clock drifts faster; and, of
// intervals narrower than the certified ones, if members end together.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_
#define TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
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
  // Also assume that members end together (EndTolerances), where that narrows an interval to less
  // than an eighth. Given up when it contradicts what is certain.
  bool end_agreement = true;
  // The profile's span of each node, over which its largest uncertainty is stated. Empty: over the
  // matched collectives of the node.
  std::vector<ProfileSpan> spans;
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
  // The larger distance from the offset to either end of the interval that holds it: at
  // offset_at_ps, and at the worst time of the profile, between and beyond the collectives too.
  int64_t uncertainty_ps = 0;
  int64_t uncertainty_max_ps = 0;
  // From offset_ps to the farther end of the interval that does not assume that members end
  // together.
  int64_t certified_uncertainty_ps = 0;
  // How much faster the node's clock runs than the reference, from its first start to its last end,
  // and how far that can be off; absent when the two coincide.
  std::optional<double> drift_ppm;
  std::optional<double> drift_uncertainty_ppm;
};

struct ClockAlignment {
  // One per node of the table, in their order.
  std::vector<NodeOffset> nodes;
  // Whether some interval rests on the assumption that members end together.
  bool assumes_end_agreement = false;
};

// Each returns FailedPrecondition when the collectives contradict each other; the message names
// them and their nodes.

// Takes the middle of every interval. Reachable nodes have no violations among each other then.
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

// Stands for an instance of which it is not known how its members end.
inline constexpr int64_t kNoTolerance = std::numeric_limits<int64_t>::max();

// Returns, for every instance of the table, within how much of each other its members end. It is
// known for synchronising kinds that the same group executed at least four times with all members
// (an op's own executions; of ops with fewer, those of the kind together):
// four times the largest change, from one execution to the next, of how far a member ends after the
// first, but not less than 1/32 of the shortest duration. Clock offsets do not matter, and drift
// only from execution to execution.
//
// Happens-before alone ties two clocks no better than the shortest collective between them takes: a
// pair of nodes that only ever share gradients of 25 MB is left with milliseconds. But whoever
// moves data in a ring or tree ends with the others, give or take a few steps of its pipeline, and
// how much that is shows in how it varies from execution to execution:
//
//   end of 1 - end of 0    +12  -5  +31  +8 us     varies by up to 36 us -> within 4 x 36 us
//
// This is an assumption, not a proof. It has held with a factor of two to spare in all runs that
// were recorded on one clock; it says nothing where it would have to say much (on a GPU that is
// shared by time slices, ends vary by the slice).
std::vector<int64_t> EndTolerances(const CollectiveTable& table);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_
