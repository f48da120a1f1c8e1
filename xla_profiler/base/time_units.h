// SPDX-License-Identifier: Apache-2.0
// Factors between units of time, for results that are told or modelled in floating point.
#ifndef XLA_PROFILER_BASE_TIME_UNITS_H_
#define XLA_PROFILER_BASE_TIME_UNITS_H_

namespace meridian {

inline constexpr double kUsPerPs = 1e-6;
inline constexpr double kMsPerPs = 1e-9;
inline constexpr double kUsPerNs = 1e-3;
inline constexpr double kMsPerNs = 1e-6;
inline constexpr double kNsPerUs = 1e3;
inline constexpr double kNsPerMs = 1e6;
inline constexpr double kNsPerSecond = 1e9;

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TIME_UNITS_H_
