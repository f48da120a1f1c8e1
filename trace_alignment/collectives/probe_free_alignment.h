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
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"

namespace meridian {

// From when to when a profile goes, on its node's clock, from the table's base.
struct ProfileSpan {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
};

struct ProbeFreeOptions {
  uint32_t reference_node = 0;
  // How fast two clocks may drift apart: to be on the safe side, more than they do.
  double max_drift_ppm = 100;
  // How long at least after the last start the first end is.
  int64_t min_transfer_ps = 0;
  // Also assume that members end together (end_agreement.h), where that narrows an interval to less
  // than an eighth. Given up when it contradicts what is certain.
  bool end_agreement = true;
  // By node. The largest uncertainty is over this span; without spans, over that of the matched
  // collectives.
  std::vector<ProfileSpan> spans;
};

struct OffsetKnot {
  // Of the node's clock, from the table's base.
  int64_t time_ps = 0;
  // The node's clock minus the reference then.
  int64_t offset_ps = 0;
};

struct NodeOffset {
  // Whether collectives bind the node's clock to the reference from both sides, directly or through
  // other nodes. A node that is not reachable keeps its clock, and nothing below is known of it.
  bool reachable = false;
  // By time. None stand for 0.
  std::vector<OffsetKnot> knots;
  // The middle of its matched collectives, or the start or end next to it, on the reference clock.
  int64_t offset_at_ps = 0;
  int64_t offset_ps = 0;
  // The larger distance to either end of the interval: there, and at the worst time of the profile,
  // between and beyond the collectives too.
  int64_t uncertainty_ps = 0;
  int64_t uncertainty_max_ps = 0;
  // From offset_ps to the farther end of the interval that does not assume that members end
  // together.
  int64_t certified_uncertainty_ps = 0;
  // From first start to last end; absent when these coincide.
  std::optional<double> drift_ppm;
  std::optional<double> drift_uncertainty_ppm;

  // Returns the offset when the node's clock shows time_ps: between knots on the straight line,
  // rounded down; outside them that of the nearest.
  int64_t OffsetPs(int64_t time_ps) const;
};

struct ClockAlignment {
  // By node of the table.
  std::vector<NodeOffset> nodes;
  // Whether some interval rests on the assumption that members end together.
  bool assumes_end_agreement = false;

  int64_t OffsetPs(uint32_t node, int64_t time_ps) const { return nodes[node].OffsetPs(time_ps); }
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

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_PROBE_FREE_ALIGNMENT_H_
