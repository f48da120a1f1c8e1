#include "astra_bridge/corrections/overlap_stretch.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OverlapStretchTest, OfThoseUnderWayAtTheSameTime) {
  EXPECT_THAT(OverlapStretches({}), IsEmpty());
  // The sketch of the header: a and c never meet, so c waits for b only. Of a: 30 / 10, of b:
  // (20 + 60) / (10 + 20), of c: 30 / 10.
  EXPECT_THAT(OverlapStretches({{0, 10, {10, 20}}, {8, 16, {10, 30}}, {14, 21, {20, 60}}}),
              ElementsAre(3, 80.0 / 30, 3));
}

TEST(OverlapStretchTest, IntervalsAreHalfOpen) {
  EXPECT_THAT(OverlapStretches({{0, 10, {10, 20}}, {10, 20, {10, 30}}}), ElementsAre(1, 1));
}

TEST(OverlapStretchTest, NothingIsLostBesideHugeTimes) {
  const int64_t huge_ns = int64_t{1} << 60;
  EXPECT_THAT(OverlapStretches({{0, huge_ns, {huge_ns, huge_ns}}, {1, 4, {3, 7}}}),
              ElementsAre(7.0 / 3, 1));
}

TEST(OverlapStretchTest, IsWhatPairsOfIntervalsSay) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t below) { return static_cast<int64_t>(random() % below); };
  for (int round = 0; round < 50; ++round) {
    std::vector<TransferSpan> transfers;
    for (int i = 0; i < 40; ++i) {
      const int64_t begin_ns = pick(60);
      transfers.push_back({begin_ns, begin_ns + pick(12), {pick(9), pick(30)}});
    }
    std::sort(transfers.begin(), transfers.end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    const std::vector<double> stretches = OverlapStretches(transfers);
    for (size_t i = 0; i < transfers.size(); ++i) {
      const TransferSpan& one = transfers[i];
      if (one.begin_ns == one.end_ns) {
        EXPECT_EQ(stretches[i], 1);
        continue;
      }
      AloneTimes others;
      for (size_t j = 0; j < transfers.size(); ++j) {
        const TransferSpan& other = transfers[j];
        if (j == i || other.begin_ns >= one.end_ns || other.end_ns <= one.begin_ns) continue;
        others += other.alone;
      }
      EXPECT_EQ(stretches[i], StretchOf(others));
    }
  }
}

}  // namespace
}  // namespace meridian
