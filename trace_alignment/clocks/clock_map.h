// SPDX-License-Identifier: Apache-2.0
// How the time of one clock is told from another's: a polyline through knots at which both were
// read. Knots and results are picoseconds from a run base (epoch picoseconds do not fit int64).
//
//      to_ps                                  . end slope
//        ^                               . '
//        |                         ___o'            o  knots
//        |                 ___o---'                 .  beyond them: the slope of the chord over
//        |          o-----'                            the outermost second of knots
//        |     . '
//        | . '      |<- inside ------>|
//        +----------+---------+-------+------> from_ps
//
// Between knots (f0 -> t0) and (f1 -> t1):  Forward(f) = t0 + (f - f0) * (t1 - t0) / (f1 - f0),
// in integers, rounded to the nearest picosecond (halves up). A map is increasing, by construction.
#ifndef TRACE_ALIGNMENT_CLOCKS_CLOCK_MAP_H_
#define TRACE_ALIGNMENT_CLOCKS_CLOCK_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace meridian {

// End slopes are taken over this long where the knots span it.
inline constexpr int64_t kEndSlopeSpanPs = 1000000000000;

// Between its knots a repaired map is nowhere steeper than this, nor flatter than its inverse. That
// bounds the round trip: |Inverted().Forward(Forward(t)) - t| <= (1 + kMaxRepairedSlope) / 2 ps,
// which is within 1 ns. (For real clocks, which differ by parts in a million, it is 1 ps.)
inline constexpr int64_t kMaxRepairedSlope = 1000;

// One instant on both clocks, in ps from the run base.
struct ClockKnot {
  int64_t from_ps = 0;
  int64_t to_ps = 0;
};

// A stretch of time, in ps from the run base. Both ends belong to it.
struct ClockInterval {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
};

class ClockMap {
 public:
  // What to do with knots that no increasing map goes through.
  enum class OnDisorder {
    // InvalidArgument that names two of them.
    kRefuse,
    // Keep knots that one map of slopes up to kMaxRepairedSlope goes through, and report where the
    // others were: those whose shift is farthest from the median.
    kRepair,
  };

  // Maps each time to itself, and is certain of it: no time lies beyond its knots.
  static ClockMap Identity();

  // Sorts the knots and drops repeated ones. A single knot makes a constant shift; none at all is
  // InvalidArgument.
  static absl::StatusOr<ClockMap> Create(std::vector<ClockKnot> knots,
                                         OnDisorder on_disorder = OnDisorder::kRefuse);

  // Results beyond int64 are its smallest or largest value. Logarithmic in the knots; for
  // times in order see ClockMapCursor.
  int64_t Forward(int64_t from_ps) const;

  // The map with the roles of the clocks exchanged.
  ClockMap Inverted() const;

  size_t num_knots() const { return segments_.size() - 1; }
  // Knots are in the order of their times.
  ClockKnot knot(size_t i) const { return segments_[i + 1].anchor; }

  // How many knots the repair removed, and the times of the from-clock that they had a say in:
  // in ascending order, disjoint or touching.
  int64_t knots_repaired() const { return knots_repaired_; }
  const std::vector<ClockInterval>& repaired_intervals() const { return repaired_intervals_; }
  bool IsRepaired(int64_t from_ps) const;

 private:
  friend class ClockMapCursor;

  // A line through the anchor, of slope rise_ps / run_ps.
  struct Segment {
    ClockKnot anchor;
    uint64_t run_ps = 1;
    uint64_t rise_ps = 1;

    int64_t Forward(int64_t from_ps) const;
    Segment Inverted() const { return {{anchor.to_ps, anchor.from_ps}, rise_ps, run_ps}; }
  };

  // `knots` are increasing in both clocks, and at least one.
  explicit ClockMap(const std::vector<ClockKnot>& knots);

  // The segment that rules from_ps: the number of knots at or before it.
  size_t SegmentIndex(int64_t from_ps) const;

  // One before the first knot, then one from each knot on; the anchors of the latter are the knots.
  std::vector<Segment> segments_;
  int64_t knots_repaired_ = 0;
  std::vector<ClockInterval> repaired_intervals_;
};

// Forward for times that come about in order: each costs O(1) then, and is right in any order.
// Counts the times it was asked beyond the knots.
class ClockMapCursor {
 public:
  // The map must outlive the cursor.
  explicit ClockMapCursor(const ClockMap* map) : map_(map) {}

  int64_t Forward(int64_t from_ps);

  int64_t extrapolations() const { return extrapolations_; }
  int64_t farthest_extrapolation_ps() const { return farthest_extrapolation_ps_; }

 private:
  bool Rules(size_t segment, int64_t from_ps) const;
  void CountExtrapolation(int64_t from_ps);

  const ClockMap* map_;
  size_t segment_ = 0;
  int64_t extrapolations_ = 0;
  int64_t farthest_extrapolation_ps_ = 0;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_CLOCK_MAP_H_
