// SPDX-License-Identifier: Apache-2.0
// Within what the members of a collective end together.
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
#ifndef TRACE_ALIGNMENT_COLLECTIVES_END_AGREEMENT_H_
#define TRACE_ALIGNMENT_COLLECTIVES_END_AGREEMENT_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

// Stands for an instance of which it is not known how its members end.
inline constexpr int64_t kNoTolerance = std::numeric_limits<int64_t>::max();

// Returns, for every instance of the table, within how much of each other its members end. It is
// known for synchronising kinds that the same group executed at least four times with all members:
// four times the largest change, from one execution to the next, of how far a member ends after the
// first, but not less than 1/32 of the shortest duration. Clock offsets do not matter, and drift
// only from execution to execution.
std::vector<int64_t> EndTolerances(const CollectiveTable& table);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_END_AGREEMENT_H_
