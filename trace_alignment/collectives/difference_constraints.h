// SPDX-License-Identifier: Apache-2.0
// What is known of clocks whose rates nearly agree, from events of which one is known to have
// happened before another.
//
//   clock 1    a ---- b ---------- c       x(t) = the clock minus the reference when it shows t
//               \    ^              \      |x(b) - x(a)| <= rho * (b - a)
//                v  /                v
//   hubs         h1      ...         h2    a - x(a) + lambda <= h1 <= b' - x(b')
//                  \                ^
//                   v              /       a hub is an instant of the reference clock by which its
//   clock 2          b' --------- c'       causes have happened, and none of its effects has
//
// The reference clock has x = 0. All are difference constraints between integers (picoseconds), so
// shortest paths say all there is to know: x(t) lies between -dist(t -> 0) and dist(0 -> t), and
// both bounds, taken over all t at once, are solutions themselves. So is the floored mean of any
// two solutions. rho * (b - a) is rounded up, for neighbouring points of a clock.
//
// A round visits clock after clock. Along a clock one walk forth and one back settle its points for
// given hubs, so a round takes linear time in the order of memory. Rounds go on until none improves
// anything: no more than the longest shortest path has hubs, and one; usually three to eight.
#ifndef TRACE_ALIGNMENT_COLLECTIVES_DIFFERENCE_CONSTRAINTS_H_
#define TRACE_ALIGNMENT_COLLECTIVES_DIFFERENCE_CONSTRAINTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"

namespace meridian {

struct ConstraintOptions {
  uint32_t reference_clock = 0;
  // rho: how fast a clock may drift against the reference, from 0 to a million.
  double max_drift_ppm = 100;
  // lambda: how long before the instant of its hub a cause has happened at least.
  int64_t min_transfer_ps = 0;
};

// How far clocks may drift apart.
class DriftBound {
 public:
  explicit DriftBound(double max_drift_ppm);

  // Returns how far they may drift apart in so long a time, rounded up. The time is not negative.
  int64_t AllowancePs(int64_t elapsed_ps) const {
    constexpr uint64_t kRoundUp = (uint64_t{1} << kRateBits) - 1;
    const absl::uint128 allowance = absl::uint128(elapsed_ps) * rate_ + kRoundUp;
    return static_cast<int64_t>(absl::Uint128Low64(allowance >> kRateBits));
  }

 private:
  static constexpr int kRateBits = 40;

  // The largest rate in units of 2^-kRateBits, rounded up.
  uint64_t rate_;
};

// Hubs that cannot all be, in a circle: from a hub on to its effect, along that event's clock to a
// cause of the next hub.
struct Contradiction {
  struct Step {
    uint32_t hub = 0;
    uint32_t clock = 0;
    int64_t effect_ps = 0;
    int64_t cause_ps = 0;
  };
  std::vector<Step> steps;
  // By how many picoseconds the constraints contradict each other.
  int64_t excess_ps = 0;
};

// No host slews its clock faster: a kernel's tick changes by a tenth at most, its frequency by 500 ppm.
// That is of the true time; of what a clock shows that runs slow, 1 / (1 - 0.1005) times as much.
inline constexpr double kFastestSlewPpm = 112'000;

// What may have happened to a clock: it ran faster or slower, by up to kFastestSlewPpm; was set, of which
// no more is known than that its times are in order; or was set back over times that it had shown, so
// that not even that is known.
enum class ClockChange : uint8_t { kNone, kHurried, kSlowed, kSet, kSetBack };

// From when to when it may have.
struct LooseStretch {
  uint32_t clock = 0;
  int64_t from_ps = 0;
  int64_t to_ps = 0;
  ClockChange change = ClockChange::kSet;
};

// A value for each point: by clock, then by the point's position on it.
using PointOffsets = std::vector<std::vector<int64_t>>;

// What is certain. A clock that no path leads to, or from, has no bounds: it is not reachable. A loose
// clock is only if each of its points has both bounds, the reference, too.
struct OffsetBounds {
  std::vector<bool> reachable;
  PointOffsets lower_ps;
  PointOffsets upper_ps;
};

// Returns the mean of two solutions' values of a point, rounded down: a solution again.
inline int64_t FloorMean(int64_t a, int64_t b) {
  const int64_t sum = a + b;
  return sum / 2 - (sum % 2 < 0 ? 1 : 0);
}

class DifferenceConstraints {
 public:
  // At most 2^31 hubs.
  DifferenceConstraints(size_t clocks, size_t hubs, const ConstraintOptions& options);

  void Reserve(uint32_t clock, size_t points) { clocks_[clock].reserve(points); }

  // Adds a point to a clock. Times lie within 2^57 of 0.
  void AddCause(uint32_t clock, int64_t time_ps, uint32_t hub) {
    clocks_[clock].push_back({time_ps, hub << 1});
  }
  void AddEffect(uint32_t clock, int64_t time_ps, uint32_t hub) {
    clocks_[clock].push_back({time_ps, hub << 1 | 1});
  }

  // Puts the points of each clock into the order of their times; call it before what follows.
  void Sort();

  // Lets clocks change between neighbouring points that lie in these stretches, and nowhere else.
  void Loosen(const std::vector<LooseStretch>& stretches);

  size_t clock_count() const { return clocks_.size(); }
  size_t point_count(uint32_t clock) const { return clocks_[clock].size(); }
  uint32_t hub(uint32_t clock, size_t point) const { return clocks_[clock][point].hub(); }
  int64_t time_ps(uint32_t clock, size_t point) const { return clocks_[clock][point].time_ps; }
  // Returns how fast the clock may drift between any two neighbouring points, unless it was set there.
  double MaxDriftPpm(uint32_t clock) const;

  // Returns a contradiction when there is no solution.
  std::optional<Contradiction> FindBounds(OffsetBounds* bounds) const;

  // Returns the mean, rounded down, of the greatest solution below the offsets and the least above.
  // The offsets lie within the bounds; clocks that are not reachable have no values.
  PointOffsets NearestSolution(const OffsetBounds& bounds, const PointOffsets& offsets_ps) const;

 private:
  template <int kSign, bool kTrace>
  friend class Relaxation;

  // Where a clock touches a hub: one of the hub's causes or effects.
  struct Point {
    int64_t time_ps = 0;
    // Twice the hub, plus 1 for an effect.
    uint32_t link = 0;

    uint32_t hub() const { return link >> 1; }
    bool is_effect() const { return (link & 1) != 0; }
  };

  // Finds one bound of every point: the upper for kSign 1, the negative of the lower for -1.
  template <int kSign>
  std::optional<Contradiction> FindBound(PointOffsets* bounds) const;

  // Returns kSign times the greatest solution below (1) or the least above (-1) the offsets.
  template <int kSign>
  PointOffsets ClosestSolution(const OffsetBounds& bounds, const PointOffsets& offsets_ps) const;

  const ConstraintOptions options_;
  const DriftBound drift_;
  const DriftBound slew_;
  const size_t hub_count_;
  std::vector<std::vector<Point>> clocks_;
  // By clock, and there by point: what may have happened since the point before. Empty for most clocks.
  std::vector<std::vector<ClockChange>> loose_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_DIFFERENCE_CONSTRAINTS_H_
