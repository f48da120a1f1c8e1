// SPDX-License-Identifier: Apache-2.0
// Which thread of one recording is which of another, told by what they called.
#ifndef CHAKRA_EXPORT_PYTORCH_THREAD_MATCH_H_
#define CHAKRA_EXPORT_PYTORCH_THREAD_MATCH_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// The names that a thread called, as numbers, in order.
using CalledNames = std::vector<uint64_t>;

struct ThreadMatch {
  // Positions of the two threads among those of their recording.
  size_t a = 0;
  size_t b = 0;
  // Positions of the calls that are the same, ascending in both threads.
  std::vector<std::pair<size_t, size_t>> calls;
};

// Comparing each with each takes this many pairs of threads at most.
inline constexpr size_t kMaxThreadPairs = 1'000'000;

// Two threads share the whole of the one that called less where that stands in the other as it is,
// else their longest common subsequence. The pair that shares most is matched first, of equal ones
// the first; then what is left. Threads that share nothing are in no match.
//
// Threads whose calls differ much are costly to compare. All that is compared is limited to 1,000
// steps for each call, of which *steps, where given, is told how many it took; threads for which
// too few are left are not matched. There may be kMaxThreadPairs at most.
std::vector<ThreadMatch> MatchThreads(absl::Span<const CalledNames> a,
                                      absl::Span<const CalledNames> b, int64_t* steps = nullptr);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_THREAD_MATCH_H_
