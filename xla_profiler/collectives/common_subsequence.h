// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_COLLECTIVES_COMMON_SUBSEQUENCE_H_
#define XLA_PROFILER_COLLECTIVES_COMMON_SUBSEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace meridian {

inline constexpr int64_t kMaxSubsequenceEdits = 5000;

// Returns a longest common subsequence of a and b as pairs of positions, ascending in both. Takes
// time and memory in proportion to (size of a and b) x (how many elements are not common), as diff
// does (E. Myers, 1986): profiles of one run differ at their ends only. Nullopt for sequences that
// differ in more than max_edits elements.
// Elements are uint64_t or absl::uint128.
template <typename T>
std::optional<std::vector<std::pair<size_t, size_t>>> CommonSubsequence(
    const std::vector<T>& a, const std::vector<T>& b, int64_t max_edits = kMaxSubsequenceEdits);

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COMMON_SUBSEQUENCE_H_
