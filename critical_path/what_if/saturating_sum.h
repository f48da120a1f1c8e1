#ifndef CRITICAL_PATH_WHAT_IF_SATURATING_SUM_H_
#define CRITICAL_PATH_WHAT_IF_SATURATING_SUM_H_

#include <cstdint>
#include <limits>

namespace meridian {

// Returns the sum of two times, of which at most one is negative, or the greatest time there is:
// edits can make times that do not add up, and a schedule with such a time is refused when it is
// run.
inline int64_t SaturatingSum(int64_t a_ps, int64_t b_ps) {
  int64_t sum_ps = 0;
  return __builtin_add_overflow(a_ps, b_ps, &sum_ps) ? std::numeric_limits<int64_t>::max() : sum_ps;
}

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_SATURATING_SUM_H_
