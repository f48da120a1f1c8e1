// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_TIMESPAN_H_
#define XLA_PROFILER_BASE_TIMESPAN_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "xla_profiler/base/errors.h"

namespace meridian {

// A stretch of time with a begin and a duration, in picoseconds from a base that the owner names.
// The duration is never negative; an instant has duration 0. End points belong to the span, so that
// an instant on a border is inside.
class Timespan {
 public:
  constexpr Timespan() = default;

  // The duration must not be negative: an event's, which may be anything, is to be looked at first.
  // An end beyond the range of int64 is cut to it.
  Timespan(int64_t begin_ps, int64_t duration_ps)
      : begin_ps_(begin_ps), duration_ps_(CutToRange(begin_ps, duration_ps)) {}

  // end_ps must not lie before begin_ps.
  static Timespan FromEndPoints(int64_t begin_ps, int64_t end_ps) {
    MERIDIAN_CHECK(begin_ps <= end_ps);
    // A span of more than half the range has no int64 duration; it is cut.
    const uint64_t duration = static_cast<uint64_t>(end_ps) - static_cast<uint64_t>(begin_ps);
    return Timespan(begin_ps, static_cast<int64_t>(std::min(
                                  duration, uint64_t{std::numeric_limits<int64_t>::max()})));
  }

  int64_t begin_ps() const { return begin_ps_; }
  int64_t end_ps() const { return begin_ps_ + duration_ps_; }
  int64_t duration_ps() const { return duration_ps_; }

  bool Includes(int64_t time_ps) const { return begin_ps() <= time_ps && time_ps <= end_ps(); }
  bool Includes(const Timespan& other) const {
    return begin_ps() <= other.begin_ps() && other.end_ps() <= end_ps();
  }

  // Sorts a parent before its children: earlier begin first, of equal begins the longer first.
  friend bool operator<(const Timespan& a, const Timespan& b) {
    if (a.begin_ps_ != b.begin_ps_) return a.begin_ps_ < b.begin_ps_;
    return a.duration_ps_ > b.duration_ps_;
  }
  friend bool operator==(const Timespan& a, const Timespan& b) {
    return a.begin_ps_ == b.begin_ps_ && a.duration_ps_ == b.duration_ps_;
  }

 private:
  static int64_t CutToRange(int64_t begin_ps, int64_t duration_ps) {
    MERIDIAN_CHECK(duration_ps >= 0);
    if (begin_ps <= 0) return duration_ps;
    return std::min(duration_ps, std::numeric_limits<int64_t>::max() - begin_ps);
  }

  int64_t begin_ps_ = 0;
  int64_t duration_ps_ = 0;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TIMESPAN_H_
