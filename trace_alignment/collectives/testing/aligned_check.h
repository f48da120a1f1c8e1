// SPDX-License-Identifier: Apache-2.0
// Happens-before on the clocks that an alignment found.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_TESTING_ALIGNED_CHECK_H_
#define TRACE_ALIGNMENT_COLLECTIVES_TESTING_ALIGNED_CHECK_H_

#include <cstdint>

#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/collectives/probe_free_alignment.h"

namespace meridian {

// Returns the node's offset when its clock shows time_ps: between knots on the straight line,
// rounded down; outside them that of the nearest.
int64_t OffsetPs(const NodeOffset& node, int64_t time_ps);

// Checks the table with every node's clock corrected by its offset.
HappensBefore CheckAligned(const CollectiveTable& table, const ClockAlignment& alignment);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_TESTING_ALIGNED_CHECK_H_
