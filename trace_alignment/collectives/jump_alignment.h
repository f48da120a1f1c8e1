// SPDX-License-Identifier: Apache-2.0
// The clocks of a run in which some were set, or slewed, on the way, so that its collectives contradict
// each other:
//
//   each clock of the contradiction   when must it have been set, or have run at another rate, if it was
//                                     so once and no other was? (bisection, with the clock loose there)
//   the ends of collectives           which of these is likely, and by how much (clock_jumps.h)
//   the clocks without that change    aligned as others are; then it is put back
//   the other explanations            the uncertainty holds what they say, too
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

// Aligns clocks by a change of one of them that explains why the collectives contradict each other; what
// is stated holds for all such changes. Where none explains it, those that ends of collectives show are
// taken back one by one, each of another clock, until nothing contradicts itself. Returns the refusal,
// with whose clock it may be, when that fails, and when clocks may not jump.
absl::StatusOr<ClockAlignment> AlignAcrossJumps(const CollectiveTable& table,
                                                const ProbeFreeOptions& options,
                                                const absl::Status& refused,
                                                const Contradiction& contradiction,
                                                AlignFunction align);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_JUMP_ALIGNMENT_H_
