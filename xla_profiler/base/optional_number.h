// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_OPTIONAL_NUMBER_H_
#define XLA_PROFILER_BASE_OPTIONAL_NUMBER_H_

#include <cstdint>
#include <limits>
#include <optional>

namespace meridian {

// As std::optional<int64_t>, in half the space, for what there are millions of: the least number
// stands for absence, and is before all others as std::nullopt is.
class OptionalNumber {
 public:
  constexpr OptionalNumber() = default;
  constexpr OptionalNumber(int64_t value) : value_(value) {}  // NOLINT: as std::optional
  constexpr OptionalNumber(std::optional<int64_t> value)      // NOLINT
      : value_(value.value_or(kAbsent)) {}
  constexpr operator std::optional<int64_t>() const {  // NOLINT
    return has_value() ? std::make_optional(value_) : std::nullopt;
  }

  constexpr bool has_value() const { return value_ != kAbsent; }
  constexpr int64_t operator*() const { return value_; }

  friend constexpr bool operator==(OptionalNumber a, OptionalNumber b) {
    return a.value_ == b.value_;
  }
  friend constexpr bool operator!=(OptionalNumber a, OptionalNumber b) { return !(a == b); }
  friend constexpr bool operator<(OptionalNumber a, OptionalNumber b) {
    return a.value_ < b.value_;
  }

 private:
  static constexpr int64_t kAbsent = std::numeric_limits<int64_t>::min();

  int64_t value_ = kAbsent;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_OPTIONAL_NUMBER_H_
