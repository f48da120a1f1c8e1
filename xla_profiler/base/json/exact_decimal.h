// SPDX-License-Identifier: Apache-2.0
// Times in trace JSON are decimal microseconds, e.g. "ts": 1694039968933321.125. A double would
// round today's times to 1/4 us, so the digits are read and written as digits:
//
//   "1694039968933321.125" us  <->  1694039968933321125000 ps
#ifndef XLA_PROFILER_BASE_JSON_EXACT_DECIMAL_H_
#define XLA_PROFILER_BASE_JSON_EXACT_DECIMAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {

// Returns the picoseconds in a JSON number of microseconds (sign, fraction and exponent allowed),
// rounded to the nearest with halves away from zero. Nullopt when the text is no JSON number, or
// when the result has more than 30 digits. Wider than int64 since picoseconds of the Unix epoch do
// not fit there (see NarrowToInt64); sums of a few results do not overflow.
std::optional<absl::int128> ParseMicrosAsPicos(absl::string_view number);

// Appends the picoseconds as microseconds: every digit that matters and no trailing zeros, e.g.
// -1500000 as "-1.5". Takes whatever ParseMicrosAsPicos returns.
void AppendPicosAsMicros(absl::int128 ps, std::string* out);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_EXACT_DECIMAL_H_
