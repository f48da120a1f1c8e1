// Picoseconds, which times inside a run are, as the nanoseconds that Unix times are.
#ifndef XLA_PROFILER_BASE_PICOSECONDS_H_
#define XLA_PROFILER_BASE_PICOSECONDS_H_

#include <cstdint>

namespace meridian {

inline constexpr int64_t kPsPerNs = 1000;
inline constexpr int64_t kPsPerUs = 1'000'000;

// Rounds down, also below zero: time goes on through zero.
constexpr int64_t FloorToNs(int64_t ps) { return ps / kPsPerNs - (ps % kPsPerNs < 0 ? 1 : 0); }

constexpr int64_t CeilToNs(int64_t ps) { return ps / kPsPerNs + (ps % kPsPerNs > 0 ? 1 : 0); }

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PICOSECONDS_H_
