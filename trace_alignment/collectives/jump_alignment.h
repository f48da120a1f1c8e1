// SPDX-License-Identifier: Apache-2.0
// The clocks of a run in which some were set, or slewed, on the way, so that its collectives contradict
// each other:
//
//   each clock of the contradiction   when must it have been set, if it was set once and no other was?
//                                     (bisection, with the clock loose in between)
//   the ends of collectives           whose clock was it of several, and by how much (clock_jumps.h)
//   the clocks without the change     aligned as others are; then it is put back
#ifndef TRACE_ALIGNMENT_COLLECTIVES_JUMP_ALIGNMENT_H_
#define TRACE_ALIGNMENT_COLLECTIVES_JUMP_ALIGNMENT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace_alignment/collectives/clock_bounds.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/difference_constraints.h"
#include "trace_alignment/collectives/probe_free_alignment.h"

namespace meridian {

// Chooses the clocks of a run that does not contradict itself.
using AlignFunction = absl::FunctionRef<ClockAlignment(
    const CollectiveTable& table, const ProbeFreeOptions& options, const Solved& solved)>;

// Takes back changes of clocks until the collectives no longer contradict each other. Where one change
// explains all, it is where nothing else can be why; else the largest that ends of collectives show is
// taken back first. Returns the refusal, with whose clock it may be, when they still contradict each
// other then, and when clocks may not jump.
absl::StatusOr<ClockAlignment> AlignAcrossJumps(const CollectiveTable& table,
                                                const ProbeFreeOptions& options,
                                                const absl::Status& refused,
                                                const Contradiction& contradiction,
                                                AlignFunction align);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_JUMP_ALIGNMENT_H_
