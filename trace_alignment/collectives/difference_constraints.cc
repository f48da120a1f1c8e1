#include "trace_alignment/collectives/difference_constraints.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// The label of a point that nothing bounds. Drift added to it changes nothing.
constexpr int64_t kUnbounded = int64_t{1} << 62;
// The instant of a hub that has no cause yet: what it says of its effects is above kUnbounded.
constexpr int64_t kLongAgo = -3 * (int64_t{1} << 61);

// A point keeps its hub in 31 bits.
constexpr size_t kMaxHubs = size_t{1} << 31;

constexpr uint32_t kNoPoint = std::numeric_limits<uint32_t>::max();

// Without a contradiction few rounds do. With more than these, look for one.
constexpr int kUntracedRounds = 16;

}  // namespace

DriftBound::DriftBound(double max_drift_ppm) {
  MERIDIAN_CHECK(max_drift_ppm >= 0 && max_drift_ppm <= 1e6);
  rate_ = static_cast<uint64_t>(std::ceil(std::ldexp(max_drift_ppm * 1e-6, kRateBits)));
}

// Lowers labels until they satisfy all constraints. A label is kSign * x, and times count kSign
// fold, so that one procedure finds both bounds: upper bounds pass from causes through hubs to
// effects, lower ones from effects to causes. With kTrace it remembers where labels came from.
template <int kSign, bool kTrace>
class Relaxation {
 public:
  // Starts from the labels, which it lowers in place. kUnbounded, for all points of a clock or
  // none, is where nothing is known yet.
  Relaxation(const DifferenceConstraints& constraints, PointOffsets* labels)
      : constraints_(constraints),
        labels_(*labels),
        reference_drift_(0),
        hubs_(constraints.hub_count_, kLongAgo) {
    if constexpr (kTrace) {
      emitters_.resize(hubs_.size());
      for (const std::vector<int64_t>& clock : labels_)
        origins_.emplace_back(clock.size(), kNoPoint);
    }
    for (uint32_t clock = 0; clock < labels_.size(); ++clock) {
      if (!labels_[clock].empty() && labels_[clock][0] != kUnbounded) Settle(clock);
    }
  }

  // Visits all clocks, in turns from the first to the last and from the last to the first. Returns
  // whether anything improved.
  bool DoRound() {
    const uint32_t clocks = static_cast<uint32_t>(labels_.size());
    bool improved = false;
    for (uint32_t i = 0; i < clocks; ++i) {
      improved |= Visit(ascending_ ? i : clocks - 1 - i);
    }
    ascending_ = !ascending_;
    return improved;
  }

  // True when the reference would have to differ from itself.
  bool ReferenceIsMoved() const {
    const std::vector<int64_t>& reference = labels_[constraints_.options_.reference_clock];
    return !reference.empty() && reference[0] < 0;
  }

  // Returns the circle in which labels lower each other without end, once there is one. Needs
  // kTrace.
  std::optional<Contradiction> FindCircle() const {
    std::vector<uint32_t> walk_of(hubs_.size(), 0);
    for (uint32_t first = 0; first < hubs_.size(); ++first) {
      uint32_t hub = first;
      while (hub != kNoPoint && walk_of[hub] == 0) {
        walk_of[hub] = first + 1;
        hub = Predecessor(hub);
      }
      if (hub != kNoPoint && walk_of[hub] == first + 1) return CircleThrough(hub);
    }
    return std::nullopt;
  }

 private:
  using Point = DifferenceConstraints::Point;

  // Where a hub's bound came from.
  struct Emitter {
    uint32_t clock = 0;
    uint32_t point = kNoPoint;
  };

  // What a walk along a clock carries from point to point: a label, and the point that received it.
  struct Carry {
    int64_t label = kUnbounded;
    uint32_t origin = kNoPoint;
  };

  DriftBound DriftOf(uint32_t clock) const {
    return clock == constraints_.options_.reference_clock ? reference_drift_ : constraints_.drift_;
  }

  static bool Receives(const Point& point) { return point.is_effect() == (kSign > 0); }

  // By how much the clock may gain, or else lose, from the point before to this one, which takes so
  // long; nullopt for any amount. A clock that is set forward shows what comes later later.
  std::optional<int64_t> AllowancePs(uint32_t clock, uint32_t point, bool is_gain,
                                     int64_t elapsed_ps) const {
    const std::vector<ClockChange>& loose = constraints_.loose_[clock];
    const ClockChange change = loose.empty() ? ClockChange::kNone : loose[point];
    const int64_t drift_ps = DriftOf(clock).AllowancePs(elapsed_ps);
    if (change == ClockChange::kSetBack) return std::nullopt;
    if (change == ClockChange::kSet) {
      return is_gain ? std::optional(std::max(drift_ps, elapsed_ps - 1)) : std::nullopt;
    }
    if (change != (is_gain ? ClockChange::kHurried : ClockChange::kSlowed)) return drift_ps;
    return std::max(drift_ps, constraints_.slew_.AllowancePs(elapsed_ps));
  }
  // Passes a carry on to the point from the one before, or back.
  void Pass(uint32_t clock, uint32_t point, bool forth, int64_t elapsed_ps, Carry* carry) const {
    const std::optional<int64_t> allowance_ps =
        AllowancePs(clock, point, forth == (kSign > 0), elapsed_ps);
    if (allowance_ps.has_value()) {
      carry->label += *allowance_ps;
    } else {
      *carry = Carry();
    }
  }

  // Lowers the label of a point to the carry's, or the carry to it, whichever is higher. Returns
  // whether it was the label. Which it is cannot be foretold, so there are no branches unless
  // traced.
  static bool Exchange(uint32_t point, int64_t* labels, uint32_t* origins, Carry* carry) {
    const bool improved = carry->label < labels[point];
    if constexpr (kTrace) {
      uint32_t& source = improved ? carry->origin : origins[point];
      uint32_t& destination = improved ? origins[point] : carry->origin;
      destination = source;
    }
    carry->label = std::min(carry->label, labels[point]);
    labels[point] = carry->label;
    return improved;
  }

  // Lowers the carry to what a hub lets the point know.
  void Receive(uint32_t index, const Point& point, Carry* carry) const {
    const int64_t received =
        kSign * point.time_ps - hubs_[point.hub()] - constraints_.options_.min_transfer_ps;
    if constexpr (kTrace) {
      if (received < carry->label) carry->origin = index;
    }
    carry->label = std::min(carry->label, received);
  }

  // Raises the hub's instant to what the point lets it know.
  void Emit(uint32_t clock, uint32_t index, const Point& point, int64_t label) {
    // Nothing is known of it, though of other points of its clock.
    if (label == kUnbounded) return;
    int64_t& instant = hubs_[point.hub()];
    const int64_t emitted = kSign * point.time_ps - label;
    if constexpr (kTrace) {
      if (emitted > instant) emitters_[point.hub()] = {clock, index};
    }
    instant = std::max(instant, emitted);
  }

  // Takes over what hubs say and passes it on to later points. Returns whether anything improved.
  bool WalkForth(uint32_t clock) {
    const std::vector<Point>& points = constraints_.clocks_[clock];
    const DriftBound drift = DriftOf(clock);
    int64_t* const labels = labels_[clock].data();
    uint32_t* const origins = kTrace ? origins_[clock].data() : nullptr;
    const bool is_loose = !constraints_.loose_[clock].empty();
    bool improved = false;
    Carry carry;
    int64_t previous_ps = points.empty() ? 0 : points[0].time_ps;
    for (uint32_t p = 0; p < points.size(); ++p) {
      const Point& point = points[p];
      if (is_loose) {
        Pass(clock, p, /*forth=*/true, point.time_ps - previous_ps, &carry);
      } else {
        carry.label += drift.AllowancePs(point.time_ps - previous_ps);
      }
      previous_ps = point.time_ps;
      if (Receives(point)) Receive(p, point, &carry);
      improved |= Exchange(p, labels, origins, &carry);
    }
    return improved;
  }

  // Passes labels on to earlier points, and tells hubs.
  void WalkBack(uint32_t clock) {
    const std::vector<Point>& points = constraints_.clocks_[clock];
    const DriftBound drift = DriftOf(clock);
    int64_t* const labels = labels_[clock].data();
    uint32_t* const origins = kTrace ? origins_[clock].data() : nullptr;
    const bool is_loose = !constraints_.loose_[clock].empty();
    Carry carry;
    int64_t next_ps = points.empty() ? 0 : points.back().time_ps;
    for (uint32_t p = static_cast<uint32_t>(points.size()); p-- > 0;) {
      const Point& point = points[p];
      if (is_loose && p + 1 < points.size()) {
        Pass(clock, p + 1, /*forth=*/false, next_ps - point.time_ps, &carry);
      } else {
        carry.label += drift.AllowancePs(next_ps - point.time_ps);
      }
      next_ps = point.time_ps;
      Exchange(p, labels, origins, &carry);
      if (!Receives(point)) Emit(clock, p, point, carry.label);
    }
  }

  bool Visit(uint32_t clock) {
    if (!WalkForth(clock)) return false;
    WalkBack(clock);
    return true;
  }

  void Settle(uint32_t clock) {
    WalkForth(clock);
    WalkBack(clock);
  }

  // Returns the point that received the label which now bounds the hub, or kNoPoint.
  uint32_t OriginOf(const Emitter& emitter) const {
    return emitter.point == kNoPoint ? kNoPoint : origins_[emitter.clock][emitter.point];
  }

  // Returns the hub which that point heard it from, or kNoPoint.
  uint32_t Predecessor(uint32_t hub) const {
    const uint32_t origin = OriginOf(emitters_[hub]);
    return origin == kNoPoint ? kNoPoint : constraints_.clocks_[emitters_[hub].clock][origin].hub();
  }

  Contradiction CircleThrough(uint32_t first) const {
    Contradiction circle;
    uint32_t hub = first;
    do {
      const Emitter& emitter = emitters_[hub];
      const uint32_t origin = OriginOf(emitter);
      const uint32_t effect = kSign > 0 ? origin : emitter.point;
      const uint32_t cause = kSign > 0 ? emitter.point : origin;
      const std::vector<Point>& points = constraints_.clocks_[emitter.clock];
      circle.steps.push_back(
          {points[effect].hub(), emitter.clock, points[effect].time_ps, points[cause].time_ps});
      circle.excess_ps += points[cause].time_ps - points[effect].time_ps -
                          GainPs(emitter.clock, effect, cause) +
                          constraints_.options_.min_transfer_ps;
      hub = Predecessor(hub);
    } while (hub != first);
    // Upper bounds are traced back from effects to causes.
    if (kSign > 0) std::reverse(circle.steps.begin(), circle.steps.end());
    return circle;
  }

  // Returns by how much a clock may gain from one of its points to another.
  int64_t GainPs(uint32_t clock, uint32_t from, uint32_t to) const {
    const std::vector<Point>& points = constraints_.clocks_[clock];
    int64_t gain_ps = 0;
    for (uint32_t p = std::min(from, to); p < std::max(from, to); ++p) {
      const int64_t elapsed_ps = points[p + 1].time_ps - points[p].time_ps;
      gain_ps += AllowancePs(clock, p + 1, from < to, elapsed_ps).value_or(0);
    }
    return gain_ps;
  }

  const DifferenceConstraints& constraints_;
  PointOffsets& labels_;
  const DriftBound reference_drift_;
  // The latest known bound of each hub's instant.
  std::vector<int64_t> hubs_;
  bool ascending_ = true;
  // With kTrace: who set a hub's bound, and which point received a point's label.
  std::vector<Emitter> emitters_;
  std::vector<std::vector<uint32_t>> origins_;
};

DifferenceConstraints::DifferenceConstraints(size_t clocks, size_t hubs,
                                             const ConstraintOptions& options)
    : options_(options),
      drift_(options.max_drift_ppm),
      slew_(kFastestSlewPpm),
      hub_count_(hubs),
      clocks_(clocks),
      loose_(clocks) {
  MERIDIAN_CHECK(options.reference_clock < clocks && hubs < kMaxHubs);
}

void DifferenceConstraints::Sort() {
  const auto earlier = [](const Point& a, const Point& b) { return a.time_ps < b.time_ps; };
  for (std::vector<Point>& points : clocks_) {
    if (std::is_sorted(points.begin(), points.end(), earlier)) continue;
    std::stable_sort(points.begin(), points.end(), earlier);
  }
}

void DifferenceConstraints::Loosen(const std::vector<LooseStretch>& stretches) {
  loose_.assign(clocks_.size(), {});
  for (const LooseStretch& stretch : stretches) {
    const std::vector<Point>& points = clocks_[stretch.clock];
    std::vector<ClockChange>& loose = loose_[stretch.clock];
    loose.resize(points.size());
    for (size_t p = 1; p < points.size(); ++p) {
      const int64_t before_ps = points[p - 1].time_ps, time_ps = points[p].time_ps;
      // A clock has one offset at a time.
      if (before_ps < stretch.from_ps || time_ps > stretch.to_ps || before_ps == time_ps) continue;
      loose[p] = std::max(loose[p], stretch.change);
    }
  }
}

double DifferenceConstraints::MaxDriftPpm(uint32_t clock) const {
  const double drift_ppm = clock == options_.reference_clock ? 0 : options_.max_drift_ppm;
  const bool is_slewed = absl::c_any_of(loose_[clock], [](ClockChange change) {
    return change == ClockChange::kHurried || change == ClockChange::kSlowed;
  });
  return is_slewed ? std::max(drift_ppm, kFastestSlewPpm) : drift_ppm;
}

template <int kSign>
std::optional<Contradiction> DifferenceConstraints::FindBound(PointOffsets* bounds) const {
  const auto start = [&] {
    bounds->clear();
    for (uint32_t clock = 0; clock < clocks_.size(); ++clock) {
      std::vector<int64_t>& labels = bounds->emplace_back(
          clocks_[clock].size(), clock == options_.reference_clock ? 0 : kUnbounded);
      // The reference is what it was before it may have been changed.
      const std::vector<ClockChange>& loose = loose_[clock];
      const auto changed =
          absl::c_find_if(loose, [](ClockChange change) { return change != ClockChange::kNone; });
      if (changed != loose.end()) {
        std::fill(labels.begin() + (changed - loose.begin()), labels.end(), kUnbounded);
      }
    }
  };
  start();
  Relaxation<kSign, false> untraced(*this, bounds);
  for (int round = 0; round < kUntracedRounds && !untraced.ReferenceIsMoved(); ++round) {
    if (!untraced.DoRound()) return std::nullopt;
  }
  start();
  Relaxation<kSign, true> traced(*this, bounds);
  while (traced.DoRound()) {
    std::optional<Contradiction> circle = traced.FindCircle();
    if (circle.has_value()) return circle;
  }
  return std::nullopt;
}

std::optional<Contradiction> DifferenceConstraints::FindBounds(OffsetBounds* bounds) const {
  std::optional<Contradiction> contradiction = FindBound<1>(&bounds->upper_ps);
  if (contradiction.has_value()) return contradiction;
  contradiction = FindBound<-1>(&bounds->lower_ps);
  if (contradiction.has_value()) return contradiction;
  for (uint32_t clock = 0; clock < clocks_.size(); ++clock) {
    std::vector<int64_t>& lower = bounds->lower_ps[clock];
    std::vector<int64_t>& upper = bounds->upper_ps[clock];
    const auto is_bound = [](int64_t label) { return label < kUnbounded; };
    const bool reachable = loose_[clock].empty()
                               ? clock == options_.reference_clock ||
                                     (!lower.empty() && is_bound(lower[0]) && is_bound(upper[0]))
                               : std::all_of(lower.begin(), lower.end(), is_bound) &&
                                     std::all_of(upper.begin(), upper.end(), is_bound);
    bounds->reachable.push_back(reachable);
    if (!reachable) {
      lower.clear();
      upper.clear();
    }
    for (int64_t& bound_ps : lower) bound_ps = -bound_ps;
  }
  return std::nullopt;
}

template <int kSign>
PointOffsets DifferenceConstraints::ClosestSolution(const OffsetBounds& bounds,
                                                    const PointOffsets& offsets_ps) const {
  PointOffsets labels(clocks_.size());
  for (size_t clock = 0; clock < clocks_.size(); ++clock) {
    labels[clock].resize(clocks_[clock].size(), kUnbounded);
    if (!bounds.reachable[clock]) continue;
    for (size_t p = 0; p < labels[clock].size(); ++p) {
      labels[clock][p] = kSign * offsets_ps[clock][p];
    }
  }
  Relaxation<kSign, false> relaxation(*this, &labels);
  while (relaxation.DoRound()) {
  }
  return labels;
}

PointOffsets DifferenceConstraints::NearestSolution(const OffsetBounds& bounds,
                                                    const PointOffsets& offsets_ps) const {
  PointOffsets below = ClosestSolution<1>(bounds, offsets_ps);
  const PointOffsets negated_above = ClosestSolution<-1>(bounds, offsets_ps);
  for (size_t clock = 0; clock < below.size(); ++clock) {
    if (!bounds.reachable[clock]) below[clock].clear();
    for (size_t p = 0; p < below[clock].size(); ++p) {
      below[clock][p] = FloorMean(below[clock][p], -negated_above[clock][p]);
    }
  }
  return below;
}

}  // namespace meridian
