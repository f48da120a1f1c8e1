// SPDX-License-Identifier: Apache-2.0
// Nothing ends before what it waits for has begun.
//
//   all-reduce, all-gather, reduce-scatter, all-to-all   no member before every member
//   permute, send and receive                            no target before its source
//   broadcast                                            nobody before the root
//   reduce                                               the root not before anybody
//
// Clocks that show otherwise are wrong, or the events are not of one execution. Times are compared
// exactly; an end that equals the start is no violation. An instance has at most one: its worst.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_HAPPENS_BEFORE_H_
#define TRACE_ALIGNMENT_COLLECTIVES_HAPPENS_BEFORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "trace_alignment/collectives/collective_table.h"

namespace meridian {

struct Violation {
  // Position in the table's instances.
  uint32_t instance = 0;
  // Positions in the table's members: the one that ended and the one that started after that.
  uint32_t ended = 0;
  uint32_t started = 0;
  // How long after the end the start came.
  int64_t gap_ps = 0;
};

struct HappensBefore {
  int64_t instances = 0;
  // Instances with at least two members.
  int64_t checked = 0;
  // Events without an instance, and members of instances that lack others.
  int64_t unmatched = 0;
  // In the order of the table's instances.
  std::vector<Violation> violations;
};

HappensBefore CheckHappensBefore(const CollectiveTable& table);

// A node's clock minus the reference clock when the node's clock shows time_ps.
using OffsetFunction = absl::FunctionRef<int64_t(uint32_t node, int64_t time_ps)>;

// As if every time t of every node were t - offset(node, t).
HappensBefore CheckHappensBefore(const CollectiveTable& table, OffsetFunction offset_ps);

// Returns e.g. "all-reduce psum.7 of jit_step {0,1}: rank 0 ended 12.500 us before rank 1 started
// (correlation ids 17 and 23)".
std::string DescribeViolation(const CollectiveTable& table, const Violation& violation);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_HAPPENS_BEFORE_H_
