#include "trace_alignment/collectives/difference_constraints.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DriftBoundTest, RoundsUp) {
  const DriftBound bound(100);
  EXPECT_EQ(bound.AllowancePs(0), 0);
  EXPECT_EQ(bound.AllowancePs(1), 1);
  EXPECT_EQ(bound.AllowancePs(9999), 1);
  EXPECT_EQ(bound.AllowancePs(10001), 2);
  EXPECT_EQ(DriftBound(0).AllowancePs(int64_t{1} << 57), 0);
  EXPECT_EQ(DriftBound(1e6).AllowancePs(int64_t{1} << 57), int64_t{1} << 57);
}

ConstraintOptions WithoutDrift() {
  ConstraintOptions options;
  options.max_drift_ppm = 0;
  return options;
}

// One hub that clocks 0 and 1 both must start before either ends: 0 from 100 to 200, 1 from 1120 to
// 1190. So x <= 1190 - 100 and x >= 1120 - 200.
DifferenceConstraints OneMeeting(const ConstraintOptions& options) {
  DifferenceConstraints constraints(2, 1, options);
  constraints.AddCause(0, 100, 0);
  constraints.AddEffect(0, 200, 0);
  constraints.AddCause(1, 1120, 0);
  constraints.AddEffect(1, 1190, 0);
  constraints.Sort();
  return constraints;
}

TEST(DifferenceConstraintsTest, AMeetingBoundsTheOffsetFromBothSides) {
  OffsetBounds bounds;
  ASSERT_EQ(OneMeeting(WithoutDrift()).FindBounds(&bounds), std::nullopt);
  EXPECT_THAT(bounds.lower_ps, ElementsAre(ElementsAre(0, 0), ElementsAre(920, 920)));
  EXPECT_THAT(bounds.upper_ps, ElementsAre(ElementsAre(0, 0), ElementsAre(1090, 1090)));
}

TEST(DifferenceConstraintsTest, AMinimalTransferTightensBothSides) {
  ConstraintOptions options = WithoutDrift();
  options.min_transfer_ps = 30;
  OffsetBounds bounds;
  ASSERT_EQ(OneMeeting(options).FindBounds(&bounds), std::nullopt);
  EXPECT_THAT(bounds.lower_ps[1], ElementsAre(950, 950));
  EXPECT_THAT(bounds.upper_ps[1], ElementsAre(1060, 1060));
}

TEST(DifferenceConstraintsTest, DriftLoosensBoundsWithTime) {
  // The clocks meet at 0 exactly, and loosely around 1,000,000.
  DifferenceConstraints constraints(2, 2, {});
  for (uint32_t clock = 0; clock < 2; ++clock) {
    constraints.AddCause(clock, 0, 0);
    constraints.AddEffect(clock, 0, 0);
    constraints.AddCause(clock, 999000, 1);
    constraints.AddEffect(clock, 1001000, 1);
  }
  constraints.Sort();
  OffsetBounds bounds;
  ASSERT_EQ(constraints.FindBounds(&bounds), std::nullopt);
  // 100 ppm of 999000 is 99.9, of 2000 it is 0.2.
  EXPECT_THAT(bounds.lower_ps[1], ElementsAre(0, 0, -100, -101));
  EXPECT_THAT(bounds.upper_ps[1], ElementsAre(0, 0, 100, 101));
}

// As OneMeeting, and once more when clock 1 is 4000 further ahead: by then 5320 - 400 <= x <= 5390 - 300.
DifferenceConstraints TwoMeetingsApart(uint32_t reference) {
  ConstraintOptions options = WithoutDrift();
  options.reference_clock = reference;
  DifferenceConstraints constraints(2, 2, options);
  constraints.AddCause(0, 100, 0);
  constraints.AddEffect(0, 200, 0);
  constraints.AddCause(1, 1120, 0);
  constraints.AddEffect(1, 1190, 0);
  constraints.AddCause(0, 300, 1);
  constraints.AddEffect(0, 400, 1);
  constraints.AddCause(1, 5320, 1);
  constraints.AddEffect(1, 5390, 1);
  constraints.Sort();
  return constraints;
}

TEST(DifferenceConstraintsTest, AClockThatMayBeSetIsBoundByItsMeetingsAndItsOrder) {
  DifferenceConstraints constraints = TwoMeetingsApart(0);
  OffsetBounds bounds;
  EXPECT_TRUE(constraints.FindBounds(&bounds).has_value());
  constraints.Loosen({{1, 1120, 1190}});
  bounds = OffsetBounds();
  EXPECT_TRUE(constraints.FindBounds(&bounds).has_value());
  constraints.Loosen({{1, 1190, 5320}});
  bounds = OffsetBounds();
  ASSERT_FALSE(constraints.FindBounds(&bounds).has_value());
  EXPECT_THAT(bounds.lower_ps[1], ElementsAre(920, 920, 4920, 4920));
  EXPECT_THAT(bounds.upper_ps[1], ElementsAre(1090, 1090, 5090, 5090));
  // Of the two either may have been set: clock 0 back by as much.
  constraints.Loosen({{0, 200, 300}});
  bounds = OffsetBounds();
  ASSERT_FALSE(constraints.FindBounds(&bounds).has_value());
  EXPECT_THAT(bounds.upper_ps[0], ElementsAre(0, 0, 1090 - 4920, 1090 - 4920));
}

// From 1190 to 5320 clock 1 gains 4000, which no slew does: 112,000 ppm of that time are 463. From a
// meeting to another one 50 us later it may: 5.6 us.
TEST(DifferenceConstraintsTest, AClockIsSlewedOnlySoFast) {
  DifferenceConstraints constraints = TwoMeetingsApart(0);
  OffsetBounds bounds;
  constraints.Loosen({{1, 1190, 5320, ClockChange::kHurried}});
  EXPECT_TRUE(constraints.FindBounds(&bounds).has_value());
  DifferenceConstraints far(2, 2, WithoutDrift());
  for (const int64_t later : {0, 50'000'000}) {
    const uint32_t hub = later > 0 ? 1 : 0;
    far.AddCause(0, 100 + later, hub);
    far.AddEffect(0, 200 + later, hub);
    far.AddCause(1, 1120 + later + later / 10, hub);
    far.AddEffect(1, 1190 + later + later / 10, hub);
  }
  far.Sort();
  bounds = OffsetBounds();
  EXPECT_TRUE(far.FindBounds(&bounds).has_value());
  far.Loosen({{1, 1190, 55'001'120, ClockChange::kSlowed}});
  bounds = OffsetBounds();
  EXPECT_TRUE(far.FindBounds(&bounds).has_value());
  EXPECT_EQ(far.MaxDriftPpm(0), 0);
  far.Loosen({{1, 1190, 55'001'120, ClockChange::kHurried}});
  EXPECT_EQ(far.MaxDriftPpm(1), kFastestSlewPpm);
  bounds = OffsetBounds();
  ASSERT_FALSE(far.FindBounds(&bounds).has_value());
  EXPECT_THAT(bounds.lower_ps[1], ElementsAre(920, 920, 5'000'920, 5'000'920));
  EXPECT_THAT(bounds.upper_ps[1], ElementsAre(1090, 1090, 5'001'090, 5'001'090));
}

TEST(DifferenceConstraintsTest, TheReferenceIsWhatItWasBeforeItWasSet) {
  DifferenceConstraints constraints = TwoMeetingsApart(1);
  constraints.Loosen({{1, 1190, 5320}});
  OffsetBounds bounds;
  ASSERT_FALSE(constraints.FindBounds(&bounds).has_value());
  EXPECT_THAT(bounds.reachable, ElementsAre(true, true));
  EXPECT_THAT(bounds.lower_ps[0], ElementsAre(-1090, -1090, -1090, -1090));
  EXPECT_THAT(bounds.upper_ps[0], ElementsAre(-920, -920, -920, -920));
  // 4920 to 5090 ahead of clock 0, which is 920 to 1090 behind; but by less than it shows from 1190 to
  // 5320.
  EXPECT_THAT(bounds.lower_ps[1], ElementsAre(0, 0, 4920 - 1090, 4920 - 1090));
  EXPECT_THAT(bounds.upper_ps[1], ElementsAre(0, 0, 4129, 4129));
}

TEST(DifferenceConstraintsTest, OneDirectionIsNotEnough) {
  DifferenceConstraints constraints(2, 1, {});
  constraints.AddCause(0, 100, 0);
  constraints.AddEffect(1, 1190, 0);
  constraints.Sort();
  OffsetBounds bounds;
  ASSERT_EQ(constraints.FindBounds(&bounds), std::nullopt);
  EXPECT_THAT(bounds.reachable, ElementsAre(true, false));
  EXPECT_THAT(bounds.upper_ps[1], IsEmpty());
}

// Clocks 0 and 1 meet as above, 1 and 2 so that x2 - x1 is in [2930, 3060].
DifferenceConstraints Chain() {
  DifferenceConstraints constraints(3, 2, WithoutDrift());
  constraints.AddCause(0, 100, 0);
  constraints.AddEffect(0, 200, 0);
  constraints.AddCause(1, 1120, 0);
  constraints.AddEffect(1, 1190, 0);
  constraints.AddCause(1, 2000, 1);
  constraints.AddEffect(1, 2100, 1);
  constraints.AddCause(2, 5030, 1);
  constraints.AddEffect(2, 5060, 1);
  constraints.Sort();
  return constraints;
}

TEST(DifferenceConstraintsTest, BoundsAddUpAlongAChain) {
  OffsetBounds bounds;
  ASSERT_EQ(Chain().FindBounds(&bounds), std::nullopt);
  EXPECT_THAT(bounds.lower_ps[2], ElementsAre(920 + 2930, 920 + 2930));
  EXPECT_THAT(bounds.upper_ps[2], ElementsAre(1090 + 3060, 1090 + 3060));
}

TEST(DifferenceConstraintsTest, NearestSolutionKeepsASolution) {
  const DifferenceConstraints constraints = Chain();
  OffsetBounds bounds;
  ASSERT_EQ(constraints.FindBounds(&bounds), std::nullopt);
  const PointOffsets solution = {{0, 0}, {1000, 1000, 1000, 1000}, {4001, 4001}};
  EXPECT_EQ(constraints.NearestSolution(bounds, solution), solution);
}

TEST(DifferenceConstraintsTest, NearestSolutionMovesBothSidesOfAConflict) {
  const DifferenceConstraints constraints = Chain();
  OffsetBounds bounds;
  ASSERT_EQ(constraints.FindBounds(&bounds), std::nullopt);
  // Each within its bounds, but 3230 apart instead of at most 3060. Below: 920 and 3980; above:
  // 1090 and 4150.
  const PointOffsets estimate = {{0, 0}, {920, 920, 920, 920}, {4150, 4150}};
  EXPECT_THAT(
      constraints.NearestSolution(bounds, estimate),
      ElementsAre(ElementsAre(0, 0), ElementsAre(1005, 1005, 1005, 1005), ElementsAre(4065, 4065)));
}

TEST(DifferenceConstraintsTest, AContradictionIsACircle) {
  DifferenceConstraints constraints(2, 2, WithoutDrift());
  // x <= 1100 by the first meeting and x >= 2900 by the second.
  for (uint32_t hub = 0; hub < 2; ++hub) {
    const int64_t ahead_ps = 1000 + 2000 * hub;
    constraints.AddCause(0, 100 + 200 * hub, hub);
    constraints.AddEffect(0, 200 + 200 * hub, hub);
    constraints.AddCause(1, 100 + 200 * hub + ahead_ps, hub);
    constraints.AddEffect(1, 200 + 200 * hub + ahead_ps, hub);
  }
  constraints.Sort();
  OffsetBounds bounds;
  const std::optional<Contradiction> contradiction = constraints.FindBounds(&bounds);
  ASSERT_TRUE(contradiction.has_value());
  EXPECT_EQ(contradiction->excess_ps, 1800);
  ASSERT_EQ(contradiction->steps.size(), 2u);
  std::set<std::pair<uint32_t, uint32_t>> hub_and_clock;
  for (const Contradiction::Step& step : contradiction->steps) {
    hub_and_clock.emplace(step.hub, step.clock);
  }
  // Clock 0 passes from the second meeting to the first, clock 1 from the first to the second.
  EXPECT_THAT(hub_and_clock, ElementsAre(std::make_pair(0, 1), std::make_pair(1, 0)));
}

TEST(DifferenceConstraintsTest, AContradictionOfOneTickFarFromTheReferenceIsFound) {
  DifferenceConstraints constraints(3, 3, WithoutDrift());
  // Clocks 1 and 2 must agree exactly twice, but differ by 1; both are loosely bound to clock 0.
  for (uint32_t clock = 0; clock < 3; ++clock) {
    constraints.AddCause(clock, 0, 0);
    constraints.AddEffect(clock, 1000000000, 0);
  }
  for (uint32_t hub = 1; hub < 3; ++hub) {
    for (uint32_t clock = 1; clock < 3; ++clock) {
      const int64_t time_ps = 2000000000 + 1000 * hub + (hub == 2 && clock == 2 ? 1 : 0);
      constraints.AddCause(clock, time_ps, hub);
      constraints.AddEffect(clock, time_ps, hub);
    }
  }
  constraints.Sort();
  OffsetBounds bounds;
  const std::optional<Contradiction> contradiction = constraints.FindBounds(&bounds);
  ASSERT_TRUE(contradiction.has_value());
  EXPECT_EQ(contradiction->excess_ps, 1);
  ASSERT_EQ(contradiction->steps.size(), 2u);
  for (const Contradiction::Step& step : contradiction->steps) {
    EXPECT_NE(step.clock, 0u);
    EXPECT_NE(step.hub, 0u);
  }
}

// The same constraints as a plain graph, solved by Floyd and Warshall.
class BruteForce {
 public:
  static constexpr int64_t kFar = int64_t{1} << 50;

  struct Point {
    uint32_t clock;
    int64_t time_ps;
    uint32_t hub;
    bool is_effect;
  };

  // Points of a clock in the order of their times. Vertex 0 is the reference. A clock is loose between
  // different times of a stretch.
  BruteForce(const std::vector<Point>& points, uint32_t hubs, const ConstraintOptions& options,
             const LooseStretch& stretch)
      : size_(1 + hubs + points.size()), distance_(size_ * size_, kFar) {
    for (size_t v = 0; v < size_; ++v) At(v, v) = 0;
    bool is_free = false;
    for (size_t p = 0; p < points.size(); ++p) {
      const bool follows = p > 0 && points[p - 1].clock == points[p].clock;
      const bool is_loose = follows && IsLoose(points[p - 1], points[p], stretch);
      if (!follows) is_free = points[p].clock != 0;
      const bool was_free = is_free;
      is_free |= is_loose;
      vertices_.push_back(is_free ? 1 + hubs + p : 0);
      const size_t vertex = vertices_[p];
      const size_t hub = 1 + points[p].hub;
      if (points[p].is_effect) {
        Connect(hub, vertex, points[p].time_ps);
      } else {
        Connect(vertex, hub, -points[p].time_ps - options.min_transfer_ps);
      }
      if (!follows || (!is_loose && !was_free)) continue;
      Connect(vertices_[p - 1], vertex,
              AllowancePs(points[p - 1], points[p], options, stretch, /*is_gain=*/true));
      Connect(vertex, vertices_[p - 1],
              AllowancePs(points[p - 1], points[p], options, stretch, /*is_gain=*/false));
    }
    for (size_t k = 0; k < size_; ++k) {
      for (size_t i = 0; i < size_; ++i) {
        for (size_t j = 0; j < size_; ++j) {
          if (At(i, k) >= kFar || At(k, j) >= kFar) continue;
          // Kept from running away once there is a negative cycle.
          At(i, j) = std::max(-kFar, std::min(At(i, j), At(i, k) + At(k, j)));
        }
      }
    }
  }

  static bool IsLoose(const Point& a, const Point& b, const LooseStretch& stretch) {
    return a.clock == stretch.clock && a.time_ps >= stretch.from_ps && b.time_ps <= stretch.to_ps &&
           a.time_ps < b.time_ps;
  }
  // How much further ahead, or else behind, a clock may be at b than at a; kFar for any amount.
  static int64_t AllowancePs(const Point& a, const Point& b, const ConstraintOptions& options,
                             const LooseStretch& stretch, bool is_gain) {
    const int64_t elapsed_ps = b.time_ps - a.time_ps;
    const int64_t drift_ps =
        DriftBound(a.clock == 0 ? 0 : options.max_drift_ppm).AllowancePs(elapsed_ps);
    const ClockChange change = IsLoose(a, b, stretch) ? stretch.change : ClockChange::kNone;
    if (change == (is_gain ? ClockChange::kHurried : ClockChange::kSlowed)) {
      return std::max(drift_ps, DriftBound(kFastestSlewPpm).AllowancePs(elapsed_ps));
    }
    if (change == ClockChange::kSet && is_gain) return std::max(drift_ps, elapsed_ps - 1);
    return change == ClockChange::kSet || change == ClockChange::kSetBack ? kFar : drift_ps;
  }

  size_t VertexOf(size_t p) const { return vertices_[p]; }

  int64_t& At(size_t from, size_t to) { return distance_[from * size_ + to]; }

  // Whether a negative cycle can be reached from the reference, or reaches it.
  bool Contradicts() {
    for (size_t v = 0; v < size_; ++v) {
      if (At(v, v) < 0 && (At(0, v) < kFar || At(v, 0) < kFar)) return true;
    }
    return false;
  }

 private:
  void Connect(size_t from, size_t to, int64_t weight) {
    At(from, to) = std::min(At(from, to), weight);
  }

  const size_t size_;
  std::vector<int64_t> distance_;
  // By point.
  std::vector<size_t> vertices_;
};

// Random clocks, each ahead by a random offset, with random hubs among them.
std::vector<BruteForce::Point> RandomPoints(uint32_t clocks, uint32_t hubs, int64_t looseness_ps,
                                            std::mt19937* random) {
  const auto draw = [random](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  std::vector<int64_t> ahead_ps;
  for (uint32_t clock = 0; clock < clocks; ++clock) ahead_ps.push_back(draw(-5000, 5000));
  std::vector<BruteForce::Point> points;
  for (uint32_t hub = 0; hub < hubs; ++hub) {
    const int64_t instant_ps = draw(0, 100000);
    for (uint32_t clock = 0; clock < clocks; ++clock) {
      if (draw(0, 2) > 0) {
        points.push_back({clock, instant_ps - draw(0, 500) + ahead_ps[clock], hub, false});
      }
      if (draw(0, 2) > 0) {
        points.push_back(
            {clock, instant_ps + looseness_ps - draw(0, 500) + ahead_ps[clock], hub, true});
      }
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const BruteForce::Point& a, const BruteForce::Point& b) {
                     return std::tie(a.clock, a.time_ps) < std::tie(b.clock, b.time_ps);
                   });
  return points;
}

// Checks that a contradiction is one: a closed walk over constraints that are there.
void ExpectGenuine(const Contradiction& contradiction,
                   const std::vector<BruteForce::Point>& points) {
  const auto has = [&](uint32_t clock, int64_t time_ps, uint32_t hub, bool is_effect) {
    return std::any_of(points.begin(), points.end(), [&](const BruteForce::Point& point) {
      return point.clock == clock && point.time_ps == time_ps && point.hub == hub &&
             point.is_effect == is_effect;
    });
  };
  EXPECT_GT(contradiction.excess_ps, 0);
  for (size_t i = 0; i < contradiction.steps.size(); ++i) {
    const Contradiction::Step& step = contradiction.steps[i];
    const Contradiction::Step& next = contradiction.steps[(i + 1) % contradiction.steps.size()];
    EXPECT_TRUE(has(step.clock, step.effect_ps, step.hub, true));
    EXPECT_TRUE(has(step.clock, step.cause_ps, next.hub, false));
  }
}

// Checks each pair of points that bound each other.
bool Satisfies(const std::vector<BruteForce::Point>& points, const ConstraintOptions& options,
               const LooseStretch& loose, const OffsetBounds& bounds,
               const PointOffsets& offsets_ps) {
  std::vector<int64_t> value_ps(points.size());
  std::vector<size_t> next(offsets_ps.size());
  for (size_t p = 0; p < points.size(); ++p) {
    const uint32_t clock = points[p].clock;
    if (bounds.reachable[clock]) value_ps[p] = offsets_ps[clock][next[clock]++];
  }
  for (size_t a = 0; a < points.size(); ++a) {
    for (size_t b = 0; b < points.size(); ++b) {
      if (!bounds.reachable[points[a].clock] || !bounds.reachable[points[b].clock]) continue;
      const bool same_clock = points[a].clock == points[b].clock && b == a + 1;
      if (same_clock) {
        const auto allowance_ps = [&](bool is_gain) {
          return BruteForce::AllowancePs(points[a], points[b], options, loose, is_gain);
        };
        const int64_t gained_ps = value_ps[b] - value_ps[a];
        if (gained_ps > allowance_ps(true) || -gained_ps > allowance_ps(false)) return false;
      }
      const bool meet = points[a].hub == points[b].hub && !points[a].is_effect;
      if (meet && points[b].is_effect &&
          points[a].time_ps - value_ps[a] + options.min_transfer_ps >
              points[b].time_ps - value_ps[b]) {
        return false;
      }
    }
  }
  return true;
}

TEST(DifferenceConstraintsTest, AgreesWithBruteForce) {
  std::mt19937 random(1);
  int contradictions = 0;
  int bounded = 0;
  int kept = 0, moved = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const uint32_t clocks = 2 + trial % 4;
    const uint32_t hubs = 1 + trial % 7;
    ConstraintOptions options;
    options.max_drift_ppm = 1000;
    options.min_transfer_ps = trial % 3 * 20;
    const std::vector<BruteForce::Point> points =
        RandomPoints(clocks, hubs, trial % 2 == 0 ? 600 : 400, &random);
    DifferenceConstraints constraints(clocks, hubs, options);
    for (const BruteForce::Point& point : points) {
      if (point.is_effect) {
        constraints.AddEffect(point.clock, point.time_ps, point.hub);
      } else {
        constraints.AddCause(point.clock, point.time_ps, point.hub);
      }
    }
    constraints.Sort();
    // In half of the trials a clock is loose for a while.
    LooseStretch loose = {clocks, 0, 0};
    if (trial % 8 >= 4) {
      loose = {static_cast<uint32_t>(random() % clocks), static_cast<int64_t>(random() % 60000),
               110000};
      loose.to_ps = loose.from_ps + static_cast<int64_t>(random() % 60000);
      loose.change =
          std::vector<ClockChange>{ClockChange::kSet, ClockChange::kHurried, ClockChange::kSlowed,
                                   ClockChange::kSetBack}[trial / 8 % 4];
      constraints.Loosen({loose});
    }
    BruteForce brute_force(points, hubs, options, loose);

    OffsetBounds bounds;
    const std::optional<Contradiction> contradiction = constraints.FindBounds(&bounds);
    ASSERT_EQ(contradiction.has_value(), brute_force.Contradicts()) << trial;
    if (contradiction.has_value()) {
      ++contradictions;
      ExpectGenuine(*contradiction, points);
      continue;
    }
    std::vector<size_t> next(clocks);
    std::vector<bool> reachable(clocks, true);
    for (size_t p = 0; p < points.size(); ++p) {
      const size_t vertex = brute_force.VertexOf(p);
      if (brute_force.At(0, vertex) >= BruteForce::kFar ||
          brute_force.At(vertex, 0) >= BruteForce::kFar) {
        reachable[points[p].clock] = false;
      }
    }
    for (size_t p = 0; p < points.size(); ++p) {
      const uint32_t clock = points[p].clock;
      const size_t vertex = brute_force.VertexOf(p);
      const int64_t upper_ps = brute_force.At(0, vertex);
      const int64_t lower_ps = -brute_force.At(vertex, 0);
      ASSERT_EQ(bounds.reachable[clock], reachable[clock]) << trial;
      if (!reachable[clock]) continue;
      ++bounded;
      ASSERT_EQ(bounds.upper_ps[clock][next[clock]], upper_ps) << trial;
      ASSERT_EQ(bounds.lower_ps[clock][next[clock]], lower_ps) << trial;
      ++next[clock];
    }
    // Solutions stay as they are, and all else becomes one. In every second trial the estimate is
    // the bounds' middle, but for a point of some clocks.
    PointOffsets estimate = bounds.lower_ps;
    for (uint32_t clock = 0; clock < clocks; ++clock) {
      for (size_t p = 0; p < estimate[clock].size(); ++p) {
        const int64_t low_ps = bounds.lower_ps[clock][p], high_ps = bounds.upper_ps[clock][p];
        const bool is_random = trial % 4 < 2 && p == 0;
        estimate[clock][p] = is_random
                                 ? std::uniform_int_distribution<int64_t>(low_ps, high_ps)(random)
                                 : FloorMean(low_ps, high_ps);
      }
    }
    const PointOffsets nearest = constraints.NearestSolution(bounds, estimate);
    ASSERT_TRUE(Satisfies(points, options, loose, bounds, nearest)) << trial;
    const bool is_solution = Satisfies(points, options, loose, bounds, estimate);
    ASSERT_EQ(nearest == estimate, is_solution) << trial;
    ++(is_solution ? kept : moved);
  }
  // The trials are neither all feasible nor all infeasible.
  EXPECT_GT(kept, 100);
  EXPECT_GT(moved, 100);
  EXPECT_GT(contradictions, 100);
  EXPECT_GT(bounded, 1000);
}

}  // namespace
}  // namespace meridian
