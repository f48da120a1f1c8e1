// The way back from 128-bit sums and products of times into 64 bits.
#ifndef XLA_PROFILER_BASE_INT64_RANGE_H_
#define XLA_PROFILER_BASE_INT64_RANGE_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"

namespace meridian {

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

#endif  // XLA_PROFILER_BASE_INT64_RANGE_H_
