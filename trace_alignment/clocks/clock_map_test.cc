#include "trace_alignment/clocks/clock_map.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kSecondPs = 1000000000000;

absl::StatusOr<ClockMap> Repaired(std::vector<ClockKnot> knots) {
  return ClockMap::Create(std::move(knots), ClockMap::OnDisorder::kRepair);
}

// The definition, in 128-bit arithmetic: floor(exact + 1/2) on the line through a and b.
int64_t OnLine(const ClockKnot& a, const ClockKnot& b, int64_t from_ps) {
  const __int128 run = b.from_ps - a.from_ps;
  const __int128 twice = 2 * (static_cast<__int128>(from_ps) - a.from_ps) * (b.to_ps - a.to_ps);
  const __int128 numerator = twice + run;
  __int128 quotient = numerator / (2 * run);
  if (numerator % (2 * run) < 0) --quotient;
  return static_cast<int64_t>(a.to_ps + quotient);
}

TEST(ClockMapTest, IdentityMapsEachTimeToItself) {
  const ClockMap map = ClockMap::Identity();
  for (int64_t t : {kMin, int64_t{-1}, int64_t{0}, int64_t{7}, kMax}) {
    EXPECT_EQ(map.Forward(t), t);
    EXPECT_EQ(map.Inverted().Forward(t), t);
  }
}

// The reference node's map, however long its trace is.
TEST(ClockMapTest, IdentityExtrapolatesNothing) {
  const ClockMap map = ClockMap::Identity();
  ClockMapCursor cursor(&map);
  for (int64_t t : {kMin, int64_t{0}, 3600 * kEndSlopeSpanPs, kMax}) {
    EXPECT_EQ(cursor.Forward(t), t);
  }
  EXPECT_EQ(cursor.extrapolations(), 0);
}

TEST(ClockMapTest, OneKnotIsAConstantShift) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create({{1000, 250}}));
  EXPECT_EQ(map.Forward(1000), 250);
  EXPECT_EQ(map.Forward(-5), -755);
  EXPECT_EQ(map.Inverted().Forward(-755), -5);
}

TEST(ClockMapTest, NoKnotIsAnError) {
  EXPECT_THAT(ClockMap::Create({}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ClockMapTest, InterpolatesAndRoundsHalvesUp) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create({{0, 0}, {4, 2}, {8, 10}}));
  // Slope 1/2: 0.5 -> 1, 1.5 -> 2; before the first knot the slope over all 8 ps, 10/8.
  EXPECT_EQ(map.Forward(0), 0);
  EXPECT_EQ(map.Forward(1), 1);
  EXPECT_EQ(map.Forward(2), 1);
  EXPECT_EQ(map.Forward(3), 2);
  EXPECT_EQ(map.Forward(4), 2);
  // Slope 2.
  EXPECT_EQ(map.Forward(5), 4);
  EXPECT_EQ(map.Inverted().Forward(4), 5);
  // -2 * 10/8 = -2.5 -> -2, and 10 + 1 * 10/8 = 11.25 -> 11.
  EXPECT_EQ(map.Forward(-2), -2);
  EXPECT_EQ(map.Forward(9), 11);
}

TEST(ClockMapTest, EndSlopesSpanASecondOfKnots) {
  // The first and last segments, 0.1 s long, are bent by a read-out error of 10 us; over a second
  // and more the slopes are 1 + 10e-6 and 1.
  constexpr int64_t kBentPs = kSecondPs / 10;
  constexpr int64_t kErrorPs = 10000000;
  ASSERT_OK_AND_ASSIGN(
      const ClockMap map,
      ClockMap::Create({{0, 0},
                        {kBentPs, kBentPs - kErrorPs},
                        {kSecondPs, kSecondPs + kErrorPs},
                        {2 * kSecondPs, 2 * kSecondPs},
                        {3 * kSecondPs - kBentPs, 3 * kSecondPs - kBentPs + kErrorPs},
                        {3 * kSecondPs, 3 * kSecondPs}}));
  EXPECT_EQ(map.Forward(-kSecondPs), -kSecondPs - kErrorPs);
  EXPECT_EQ(map.Forward(4 * kSecondPs), 4 * kSecondPs);
  // Both directions use the same chords.
  EXPECT_EQ(map.Inverted().Forward(-kSecondPs - kErrorPs), -kSecondPs);
}

TEST(ClockMapTest, SortsAndDropsIdenticalKnots) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       ClockMap::Create({{20, 30}, {0, 0}, {10, 10}, {0, 0}, {0, 0}}));
  ASSERT_EQ(map.num_knots(), 3);
  EXPECT_EQ(map.knot(0).from_ps, 0);
  EXPECT_EQ(map.knot(2).to_ps, 30);
  EXPECT_EQ(map.knots_repaired(), 0);
  EXPECT_EQ(map.Forward(15), 20);
}

TEST(ClockMapTest, RefusesContradictionsAndNamesBoth) {
  EXPECT_THAT(
      ClockMap::Create({{5, 1}, {5, 2}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("(5 ps -> 1 ps) and (5 ps -> 2 ps)"), HasSubstr("contradict"))));
  EXPECT_THAT(
      ClockMap::Create({{7, 1}, {5, 2}, {0, 0}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("(5 ps -> 2 ps) and (7 ps -> 1 ps)"), HasSubstr("backwards"))));
  EXPECT_THAT(ClockMap::Create({{5, 2}, {7, 2}}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ClockMapTest, RepairLeavesOutliersOut) {
  // One reading far too high and one far too low; neither spoils its neighbours.
  ASSERT_OK_AND_ASSIGN(
      const ClockMap map,
      Repaired({{100, 100}, {200, 200}, {300, 900}, {400, 400}, {500, 10}, {600, 600}}));
  EXPECT_EQ(map.num_knots(), 4);
  EXPECT_EQ(map.knots_repaired(), 2);
  for (int64_t t = 0; t < 700; ++t) EXPECT_EQ(map.Forward(t), t);
  ASSERT_EQ(map.repaired_intervals().size(), 2);
  EXPECT_EQ(map.repaired_intervals()[0].begin_ps, 200);
  EXPECT_EQ(map.repaired_intervals()[0].end_ps, 400);
  EXPECT_FALSE(map.IsRepaired(199));
  EXPECT_TRUE(map.IsRepaired(200));
  EXPECT_TRUE(map.IsRepaired(399));
  EXPECT_TRUE(map.IsRepaired(400));
  EXPECT_TRUE(map.IsRepaired(600));
  EXPECT_FALSE(map.IsRepaired(601));
}

TEST(ClockMapTest, RepairPrefersASteadyShift) {
  // (-300 -> 600) is at odds with the first knot only: either could go.
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       Repaired({{200, 200}, {-300, 600}, {1000, 1000}, {1400, 1400}}));
  EXPECT_EQ(map.num_knots(), 3);
  EXPECT_EQ(map.Forward(600), 600);
}

TEST(ClockMapTest, RepairRemovesImpossibleSlopes) {
  // Increasing, but 100,000 ps come after 1 ps: no clock does that, and its inverse could not tell
  // those times apart.
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       Repaired({{0, 0}, {100000, 1}, {200000, 200000}, {300000, 300000}}));
  EXPECT_EQ(map.knots_repaired(), 1);
  EXPECT_EQ(map.Forward(100000), 100000);
}

TEST(ClockMapTest, RepairsManyKnotsInReverse) {
  std::vector<ClockKnot> knots;
  for (int64_t i = 0; i < 200000; ++i) knots.push_back({i, -i});
  for (int64_t i = 0; i < 200000; ++i) knots.push_back({1000000 + i, 1000000 - i});
  ASSERT_OK_AND_ASSIGN(const ClockMap map, Repaired(std::move(knots)));
  EXPECT_EQ(map.num_knots(), 2);
}

TEST(ClockMapTest, RepairAtTheEndsReportsWhereTheKnotsWere) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       Repaired({{0, 500}, {100, 100}, {200, 200}, {300, 300}, {400, 50}}));
  EXPECT_EQ(map.num_knots(), 3);
  EXPECT_TRUE(map.IsRepaired(0));
  EXPECT_TRUE(map.IsRepaired(100));
  EXPECT_FALSE(map.IsRepaired(150));
  EXPECT_TRUE(map.IsRepaired(400));
  EXPECT_FALSE(map.IsRepaired(401));
}

TEST(ClockMapTest, RepairMakesOneOfContradictoryDuplicates) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map, Repaired({{0, 0}, {10, 10}, {10, 11}, {20, 20}}));
  EXPECT_EQ(map.num_knots(), 3);
  EXPECT_EQ(map.knots_repaired(), 1);
}

TEST(ClockMapTest, InvertedExchangesTheClocks) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map, Repaired({{0, 100}, {50, 120}, {40, 0}, {100, 300}}));
  ASSERT_EQ(map.knots_repaired(), 1);
  const ClockMap inverse = map.Inverted();
  ASSERT_EQ(inverse.num_knots(), 3);
  EXPECT_EQ(inverse.Forward(100), 0);
  EXPECT_EQ(inverse.Forward(120), 50);
  // A tenth of the way from 120 to 300 is a tenth of the way from 50 to 100.
  EXPECT_EQ(inverse.Forward(138), 55);
  EXPECT_TRUE(inverse.IsRepaired(map.Forward(40)));
  EXPECT_FALSE(inverse.IsRepaired(map.Forward(51)));
}

TEST(ClockMapTest, SaturatesNearTheLimits) {
  ASSERT_OK_AND_ASSIGN(const ClockMap whole, ClockMap::Create({{kMin, kMin}, {kMax, kMax}}));
  for (int64_t t : {kMin, kMin + 1, int64_t{0}, kMax - 1, kMax}) EXPECT_EQ(whole.Forward(t), t);
  ASSERT_OK_AND_ASSIGN(const ClockMap steep, ClockMap::Create({{-1, kMin}, {0, kMax}}));
  EXPECT_EQ(steep.Forward(kMin), kMin);
  EXPECT_EQ(steep.Forward(-1), kMin);
  EXPECT_EQ(steep.Forward(0), kMax);
  EXPECT_EQ(steep.Forward(kMax), kMax);
  EXPECT_EQ(steep.Inverted().Forward(kMax), 0);
  ASSERT_OK_AND_ASSIGN(const ClockMap shift, ClockMap::Create({{0, kMax}}));
  EXPECT_EQ(shift.Forward(1), kMax);
  EXPECT_EQ(shift.Forward(-1), kMax - 1);
  EXPECT_EQ(shift.Inverted().Forward(kMin), kMin);
}

// Readings 10 ms to 4 s apart of a clock that is off by up to 1,000 ppm, as a cheap quartz is.
std::vector<ClockKnot> PlausibleKnots(std::mt19937_64& random, int count) {
  std::uniform_int_distribution<int64_t> gap_ps(kSecondPs / 100, 4 * kSecondPs);
  std::uniform_int_distribution<int64_t> ppm(-1000, 1000);
  std::vector<ClockKnot> knots = {{-20 * kSecondPs, 3 * kSecondPs}};
  while (static_cast<int>(knots.size()) < count) {
    const int64_t gap = gap_ps(random);
    knots.push_back(
        {knots.back().from_ps + gap, knots.back().to_ps + gap + gap / 1000000 * ppm(random)});
  }
  return knots;
}

TEST(ClockMapTest, IsExactAgainstTheDefinition) {
  std::mt19937_64 random(1);
  const std::vector<ClockKnot> knots = PlausibleKnots(random, 40);
  ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create(knots));
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    std::uniform_int_distribution<int64_t> inside(knots[i].from_ps, knots[i + 1].from_ps);
    for (int repeat = 0; repeat < 200; ++repeat) {
      const int64_t t = inside(random);
      ASSERT_EQ(map.Forward(t), OnLine(knots[i], knots[i + 1], t)) << t;
    }
  }
}

TEST(ClockMapTest, IsMonotoneAndInvertible) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create(PlausibleKnots(random, 1 + trial)));
    const ClockMap inverse = map.Inverted();
    std::uniform_int_distribution<int64_t> anywhere(-100 * kSecondPs, 100 * kSecondPs);
    for (int repeat = 0; repeat < 1000; ++repeat) {
      const int64_t t = anywhere(random);
      ASSERT_LE(map.Forward(t), map.Forward(t + 1));
      ASSERT_LT(map.Forward(t), map.Forward(t + 1000));
      // 0.5 ps of rounding, each way, and slopes within 1 +- 0.001.
      ASSERT_LE(std::abs(inverse.Forward(map.Forward(t)) - t), 1);
      ASSERT_LE(std::abs(map.Forward(inverse.Forward(t)) - t), 1);
    }
  }
}

TEST(ClockMapTest, ARepairedMapIsMonotoneAndInvertible) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int64_t> anything(-100000, 100000);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<ClockKnot> knots;
    for (int i = 0; i < 2 + trial % 30; ++i) knots.push_back({anything(random), anything(random)});
    ASSERT_OK_AND_ASSIGN(const ClockMap map, Repaired(knots));
    for (int repeat = 0; repeat < 100; ++repeat) {
      const int64_t t = anything(random);
      ASSERT_LE(map.Forward(t), map.Forward(t + 1));
      ASSERT_LE(std::abs(map.Inverted().Forward(map.Forward(t)) - t), 1000);
    }
  }
}

TEST(ClockMapCursorTest, AgreesWithTheMapInAnyOrder) {
  std::mt19937_64 random(5);
  ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create(PlausibleKnots(random, 30)));
  std::uniform_int_distribution<int64_t> anywhere(-40 * kSecondPs, 60 * kSecondPs);
  std::vector<int64_t> times_ps = {kMin, kMax};
  for (size_t i = 0; i < map.num_knots(); ++i) times_ps.push_back(map.knot(i).from_ps);
  for (int i = 0; i < 2000; ++i) times_ps.push_back(anywhere(random));
  ClockMapCursor cursor(&map);
  for (int64_t t : times_ps) ASSERT_EQ(cursor.Forward(t), map.Forward(t)) << t;
  std::sort(times_ps.begin(), times_ps.end());
  for (int64_t t : times_ps) ASSERT_EQ(cursor.Forward(t), map.Forward(t)) << t;
}

TEST(ClockMapCursorTest, CountsExtrapolations) {
  ASSERT_OK_AND_ASSIGN(const ClockMap map, ClockMap::Create({{10, 0}, {20, 10}}));
  ClockMapCursor cursor(&map);
  for (int64_t t : {3, 10, 15, 20, 21, 10}) cursor.Forward(t);
  EXPECT_EQ(cursor.extrapolations(), 2);
  EXPECT_EQ(cursor.farthest_extrapolation_ps(), 7);
  cursor.Forward(28);
  EXPECT_EQ(cursor.extrapolations(), 3);
  EXPECT_EQ(cursor.farthest_extrapolation_ps(), 8);
  cursor.Forward(kMin);
  EXPECT_EQ(cursor.farthest_extrapolation_ps(), kMax);
}

}  // namespace
}  // namespace meridian
