#include "trace_alignment/testing/true_clock.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace meridian {
namespace {

constexpr int64_t kSecondPs = 1'000'000'000'000;

TEST(TrueClockTest, IsAheadByOffsetAndWhatItGains) {
  // 1 ms ahead at first, gains 50 us a second.
  const TrueClock clock = {1'000'000'000, 50'000, {}};
  EXPECT_EQ(clock.ShowsPs(0), 1'000'000'000);
  EXPECT_EQ(clock.ShowsPs(2 * kSecondPs), 2 * kSecondPs + 1'100'000'000);
  EXPECT_EQ(clock.ShowsPs(-2 * kSecondPs), -2 * kSecondPs + 900'000'000);
  EXPECT_EQ(clock.OffsetPs(2 * kSecondPs + 1'100'000'000), 1'100'000'000);
}

TEST(TrueClockTest, WandersOnStraightLines) {
  const TrueClock clock = {0, 0, {0, 4'000'000, 2'000'000}};
  EXPECT_EQ(clock.ShowsPs(-5), -5);
  EXPECT_EQ(clock.ShowsPs(kWanderStepPs / 4), kWanderStepPs / 4 + 1'000'000);
  EXPECT_EQ(clock.ShowsPs(kWanderStepPs * 3 / 2), kWanderStepPs * 3 / 2 + 3'000'000);
  EXPECT_EQ(clock.ShowsPs(kWanderStepPs * 9), kWanderStepPs * 9 + 2'000'000);
}

TEST(TrueClockTest, TruePsIsTheInverse) {
  std::mt19937_64 random(3);
  for (TrueClock clock : RandomClocks(50, &random)) {
    clock.wander_ps = RandomWander(20'000, 5 * kSecondPs, &random);
    for (int i = 0; i < 200; ++i) {
      const int64_t true_ps = Draw(-kSecondPs, 6 * kSecondPs, &random);
      EXPECT_LE(std::abs(clock.TruePs(clock.ShowsPs(true_ps)) - true_ps), 1);
    }
  }
}

TEST(TrueClockTest, AWanderStaysWithinItsRate) {
  std::mt19937_64 random(4);
  const std::vector<int64_t> wander_ps = RandomWander(1'000, 3 * kSecondPs, &random);
  ASSERT_EQ(wander_ps.size(), 31u);
  for (size_t i = 1; i < wander_ps.size(); ++i) {
    EXPECT_LE(std::abs(wander_ps[i] - wander_ps[i - 1]), kWanderStepPs / 1'000'000);
  }
}

}  // namespace
}  // namespace meridian
