// SPDX-License-Identifier: Apache-2.0
// Parts of a synthetic cluster as words on a command line.
#ifndef TRACE_ALIGNMENT_TESTING_CLUSTER_SPEC_H_
#define TRACE_ALIGNMENT_TESTING_CLUSTER_SPEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/testing/synthetic_cluster.h"

namespace meridian {

// Parses e.g. "all-reduce,all-gather/4,reduce-scatter/4s": kinds, in groups of so many neighbours,
// or strided with an "s"; without a number, of all ranks. InvalidArgument for kinds that a
// synthetic cluster does not have and for sizes that do not divide the ranks.
absl::StatusOr<std::vector<CollectiveSpec>> ParseCollectives(absl::string_view text, int64_t ranks);

// Parses e.g. "3:500,7:2000:4": rank 3 comes 500 us late in every step, rank 7 2 ms in every
// fourth. Empty: nobody. InvalidArgument for what is no rank or time.
absl::StatusOr<std::vector<Straggler>> ParseStragglers(absl::string_view text, int64_t ranks);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_CLUSTER_SPEC_H_
