// Times as text for people: so many decimals, rounded to the nearest (halves away from zero).
#ifndef XLA_PROFILER_BASE_TABLES_TIME_TEXT_H_
#define XLA_PROFILER_BASE_TABLES_TIME_TEXT_H_

#include <cstdint>
#include <string>

namespace meridian {

// Returns the picoseconds as milliseconds, e.g. "-12.346". From 0 to 9 decimals.
std::string FormatMillis(int64_t ps, int decimals = 3);

// Returns the picoseconds as microseconds. From 0 to 6 decimals.
std::string FormatMicros(int64_t ps, int decimals = 3);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TABLES_TIME_TEXT_H_
