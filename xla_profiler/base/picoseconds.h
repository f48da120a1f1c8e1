// SPDX-License-Identifier: Apache-2.0
// Times inside a run are 64-bit picoseconds. Here is the way to the nanoseconds that Unix times
// are, and the way back from the 128 bits that sums and products of times may need.
#ifndef XLA_PROFILER_BASE_PICOSECONDS_H_
#define XLA_PROFILER_BASE_PICOSECONDS_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"

namespace meridian {

inline constexpr int64_t kPsPerNs = 1000;
inline constexpr int64_t kPsPerUs = 1'000'000;

// Rounds down, also below zero: time goes on through zero.
constexpr int64_t FloorToNs(int64_t ps) { return ps / kPsPerNs - (ps % kPsPerNs < 0 ? 1 : 0); }

constexpr int64_t CeilToNs(int64_t ps) { return ps / kPsPerNs + (ps % kPsPerNs > 0 ? 1 : 0); }

// Returns the value if an int64 holds it.
inline std::optional<int64_t> NarrowToInt64(absl::int128 value) {
  if (value < std::numeric_limits<int64_t>::min() || value > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

// Returns the nearest value that an int64 holds.
inline int64_t SaturateToInt64(absl::int128 value) {
  if (value < std::numeric_limits<int64_t>::min()) return std::numeric_limits<int64_t>::min();
  if (value > std::numeric_limits<int64_t>::max()) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PICOSECONDS_H_
