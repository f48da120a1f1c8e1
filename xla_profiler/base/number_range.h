// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_NUMBER_RANGE_H_
#define XLA_PROFILER_BASE_NUMBER_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace meridian {

// A range of steps, or of occurrences of something. Both ends belong to it.
struct NumberRange {
  int64_t first = 0;
  int64_t last = 0;

  bool Contains(int64_t number) const { return number >= first && number <= last; }
};

// Parses "3" or "1..4"; nullopt for other texts, and for a range that ends before it begins.
inline std::optional<NumberRange> ParseNumberRange(absl::string_view text) {
  NumberRange range;
  const size_t dots = text.find("..");
  const absl::string_view last = dots == text.npos ? text : text.substr(dots + 2);
  const bool is_range = absl::SimpleAtoi(text.substr(0, dots), &range.first) &&
                        absl::SimpleAtoi(last, &range.last) && range.first <= range.last;
  return is_range ? std::make_optional(range) : std::nullopt;
}

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_NUMBER_RANGE_H_
