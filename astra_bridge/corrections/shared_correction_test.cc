#include "astra_bridge/corrections/shared_correction.h"

#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

// Small all-reduces run at a fifth of the speed and need 2 us more, large ones at four fifths.
Corrections SmallAndLarge() {
  Corrections corrections;
  corrections.segments[static_cast<size_t>(CollectiveKind::kAllReduce)] = {
      {1024, 2000, 0.2}, {std::numeric_limits<int64_t>::max(), 0, 0.8}};
  return corrections;
}

SharedTransfer AllReduce(int64_t bytes, double alone_ns, double shared_ns, double stretch) {
  return {CollectiveKind::kAllReduce, bytes, alone_ns, shared_ns, stretch};
}

TEST(SharedCorrectionTest, AloneItIsTheCorrection) {
  // 2000 + 1000 / 0.2; 8000 / 0.8.
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1024, 1000, 1000, 1)), 7000);
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1 << 20, 8000, 8000, 1)), 10000);
}

TEST(SharedCorrectionTest, OthersOnLinksOfTheirOwnChangeNothing) {
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1024, 1000, 1000, 9)), 7000);
}

TEST(SharedCorrectionTest, TwoAlikeOneBehindTheOther) {
  // Alone 8000 -> 10000, so the other stretches by 1.25: 10000 + 8000 * 1.25.
  const double stretch = StretchOf({8000, 10000});
  EXPECT_EQ(stretch, 1.25);
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1 << 20, 8000, 16000, stretch)), 20000);
}

TEST(SharedCorrectionTest, ASmallOneBehindAHugeOneWaitsAsLongAsThatTakes) {
  // The huge one: 8 ms -> 10 ms. The small one: 7 us + 10 ms, not (8.001 ms / 0.2) = 40 ms.
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(),
                              AllReduce(1024, 1000, 8'001'000, StretchOf({8'000'000, 10'000'000}))),
            10'007'000);
}

TEST(SharedCorrectionTest, AHugeOneBehindASmallOneWaitsForItsOverheadToo) {
  // 10 ms + the small one's 7 us.
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(),
                              AllReduce(1 << 20, 8'000'000, 8'001'000, StretchOf({1000, 7000}))),
            10'007'000);
}

TEST(SharedCorrectionTest, AHeadStartIsNoWaiting) {
  // Members that came early had sent before the last one did: 2000 + 900 / 0.2.
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1024, 1000, 900, 5)), 6500);
}

TEST(SharedCorrectionTest, AKindWithoutCorrectionsWaitsForCorrectedOnes) {
  SharedTransfer message{CollectiveKind::kPointToPoint, 1024, 1000.5, 9000.5, 1.25};
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), message), 11000.5);
  message.stretch = StretchOf({});
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), message), 9000.5);
}

TEST(SharedCorrectionTest, TimesAloneAreWholeNanosecondsWithinBounds) {
  // 2000 + 1000.6 / 0.2 = 7003.
  const AloneTimes small = AloneTimesOf(SmallAndLarge(), CollectiveKind::kAllReduce, 1024, 1000.6);
  EXPECT_EQ(small.engine_ns, 1001);
  EXPECT_EQ(small.corrected_ns, 7003);
  const AloneTimes message =
      AloneTimesOf(SmallAndLarge(), CollectiveKind::kPointToPoint, 1024, 1e30);
  EXPECT_EQ(message.engine_ns, int64_t{1} << 62);
  EXPECT_EQ(message.corrected_ns, int64_t{1} << 62);
}

TEST(SharedCorrectionTest, SumsLoseNothingBesideHugeTimes) {
  const AloneTimes huge = {int64_t{1} << 62, int64_t{1} << 62};
  AloneTimes sum = huge;
  sum += {3, 7};
  sum += huge;
  sum -= huge;
  sum -= huge;
  EXPECT_EQ(StretchOf(sum), 7.0 / 3);
}

TEST(SharedCorrectionTest, StaysWithinBounds) {
  EXPECT_EQ(CorrectedSharedNs(SmallAndLarge(), AllReduce(1 << 20, 1e18, 4e18, 1e6)),
            kMaxCorrectedNs);
}

}  // namespace
}  // namespace meridian
