// SPDX-License-Identifier: Apache-2.0
// The rule by which an earlier prototype judged collectives, kept to show what it gets wrong:
// whatever is called "reduce", "gather" or "nccl" is a collective, its i-th occurrence on one node
// is the i-th on all, and the last start must be before the first end over all nodes.
#ifndef TRACE_ALIGNMENT_TESTING_PROTOTYPE_VALIDATOR_H_
#define TRACE_ALIGNMENT_TESTING_PROTOTYPE_VALIDATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct PrototypeVerdict {
  int64_t compared = 0;
  int64_t violations = 0;
};

// Judges the profiles of a run, one per node.
absl::StatusOr<PrototypeVerdict> JudgeAsPrototype(const std::vector<XSpaceReader>& profiles);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_PROTOTYPE_VALIDATOR_H_
