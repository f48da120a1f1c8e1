// SPDX-License-Identifier: Apache-2.0
// What happens-before alone says of the clocks of a run: its collectives as difference constraints
// (difference_constraints.h).
#ifndef TRACE_ALIGNMENT_COLLECTIVES_CLOCK_BOUNDS_H_
#define TRACE_ALIGNMENT_COLLECTIVES_CLOCK_BOUNDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/collective_table.h"
#include "trace_alignment/collectives/difference_constraints.h"
#include "trace_alignment/collectives/probe_free_alignment.h"

namespace meridian {

// The constraints of a table's instances, which instance each hub is of, and what follows.
struct Solved {
  DifferenceConstraints constraints;
  std::vector<uint32_t> instance_of_hub;
  OffsetBounds bounds;
};

// Makes the constraints; the bounds are not found yet. A group, with or without root, is one hub; of a
// permute, each pair is one.
Solved MakeConstraints(const CollectiveTable& table, const ProbeFreeOptions& options);

// Finds what follows from happens-before alone, where clocks may have been set in those stretches.
// Sets why there is no solution where there is none.
absl::StatusOr<Solved> Solve(const CollectiveTable& table, const ProbeFreeOptions& options,
                             const std::vector<LooseStretch>& loose = {},
                             std::optional<Contradiction>* why = nullptr);

// Returns what the node is called in messages.
int64_t NodeId(const ProbeFreeOptions& options, uint32_t node);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_CLOCK_BOUNDS_H_
