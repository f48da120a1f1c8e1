// SPDX-License-Identifier: Apache-2.0
// Parts of HLO that profiles hold as text: in the annotations of kernels and in the attributes of
// instructions. Anything that is not of the form named is InvalidArgument.
#ifndef XLA_PROFILER_HLO_HLO_TEXT_H_
#define XLA_PROFILER_HLO_HLO_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// Parses "{{0;1};{2;3}}", with commas or semicolons, and the iota forms "[2,2]<=[4]" and
// "[2,2]<=[2,2]T(1,0)".
absl::StatusOr<IdGroups> ParseReplicaGroups(absl::string_view text);

// Parses "{{0,1},{1,0}}", the form in which attributes of send and recv name their pairs.
absl::StatusOr<std::vector<SourceTargetPair>> ParseSourceTargetPairs(absl::string_view text);

// Parses "f32[4,8]" or "(f32[4], bf16[2,2])", with commas or semicolons, layouts ignored, into its
// size in bytes.
absl::StatusOr<int64_t> ParseShapeBytes(absl::string_view text);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_TEXT_H_
