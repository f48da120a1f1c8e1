// SPDX-License-Identifier: Apache-2.0
// Clocks that were set, or hurried or slowed down for a while, in the middle of a run.
//
//   end of node 2           .  : . . .      a jump goes from one end to the next, a slew over
//   minus those of       .                  several
//   the others   . : . .
//                      |<->|
#ifndef TRACE_ALIGNMENT_COLLECTIVES_CLOCK_JUMPS_H_
#define TRACE_ALIGNMENT_COLLECTIVES_CLOCK_JUMPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

// A change of a node's clock.
struct ClockJump {
  struct Knot {
    // Time of the node's clock as it is, and without the change, in ps from the run base.
    int64_t shown_ps = 0;
    int64_t undone_ps = 0;
  };

  uint32_t node = 0;
  // At least two; from the last time of a collective before the change to the first one after it, as far
  // as is known. The first has equal times.
  std::vector<Knot> knots;
  // The nodes whose clocks may have been changed in place of this one: where two only have collectives
  // of pairs, say, nothing tells which.
  std::vector<uint32_t> or_nodes;

  // The rest is known once clocks are aligned (jump_alignment.h). From when to when, by the node's clock,
  // it was set, or at some time ran at another rate; and how far by_ps() may be off.
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  int64_t uncertainty_ps = 0;
  // Whether the clock may have been set at once, and whether it may have run at another rate for a while.
  bool may_be_set = true;
  bool may_be_slewed = true;
  // Whether this rests on how the ends of collectives move, which is likely, and not on what they prove.
  bool is_by_ends = false;

  // Returns by how much the clock is ahead since then.
  int64_t by_ps() const { return knots.back().shown_ps - knots.back().undone_ps; }

  // Whether the times of the knots increase, on both clocks, as maps need it. A clock that was set back
  // shows times again that it had shown, which cannot be undone.
  bool GoesUp() const;

  // Makes a step of a clock that was set forward no more than the time that it passed over, where it is
  // nearly that: how much it is rests on how ends scatter.
  void FitInGap();

  // Returns what the clock would show without the change, and the inverse.
  int64_t Undo(int64_t shown_ps) const;
  int64_t Redo(int64_t undone_ps) const;
};

// Returns the largest change of a clock that stands out of how ends scatter, by the ends of
// synchronising collectives, those of the largest groups first, since these tell whose clock it is;
// nullopt when there is none. Of the two nodes of a pair it is the one that shows it in more of its
// groups, else not the reference. It may not go up.
std::optional<ClockJump> FindClockJump(const CollectiveTable& table, uint32_t reference_node);

// Returns by how much the node's clock is ahead after a time compared with before another, by the ends
// of the largest group that tells; nullopt when none does.
std::optional<int64_t> ChangeOfClock(const CollectiveTable& table, uint32_t node, int64_t before_ps,
                                     int64_t after_ps);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_CLOCK_JUMPS_H_
