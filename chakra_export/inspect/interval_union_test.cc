#include "chakra_export/inspect/interval_union.h"

#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kEnd = 30;

// Which nanoseconds the intervals cover.
std::vector<bool> Covered(const std::vector<TimeInterval>& intervals) {
  std::vector<bool> covered(kEnd, false);
  for (const TimeInterval& interval : intervals) {
    for (int64_t t = interval.start_ns; t < interval.end_ns; ++t) covered[t] = true;
  }
  return covered;
}

std::vector<TimeInterval> RandomIntervals(std::mt19937_64& random) {
  std::vector<TimeInterval> intervals;
  for (uint64_t n = random() % 8; n > 0; --n) {
    const int64_t start_ns = static_cast<int64_t>(random() % kEnd);
    const int64_t length_ns = static_cast<int64_t>(random() % (kEnd - start_ns));
    intervals.push_back({start_ns, start_ns + length_ns});
  }
  return intervals;
}

TEST(IntervalUnionTest, TouchingIntervalsBecomeOne) {
  const std::vector<TimeInterval> united = UnionOf({{5, 7}, {1, 3}, {3, 4}, {6, 9}, {2, 2}});
  ASSERT_EQ(united.size(), 2);
  EXPECT_EQ(united[0].start_ns, 1);
  EXPECT_EQ(united[0].end_ns, 4);
  EXPECT_EQ(united[1].end_ns, 9);
  EXPECT_EQ(TotalNs(united), 3 + 4);
  EXPECT_THAT(UnionOf({{4, 4}}), IsEmpty());
}

TEST(IntervalUnionTest, AgreesWithCountingNanoseconds) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::vector<TimeInterval> a = RandomIntervals(random);
    const std::vector<TimeInterval> b = RandomIntervals(random);
    const std::vector<bool> in_a = Covered(a);
    const std::vector<bool> in_b = Covered(b);
    int64_t total = 0;
    int64_t both = 0;
    for (int64_t t = 0; t < kEnd; ++t) {
      total += in_a[t];
      both += in_a[t] && in_b[t];
    }
    EXPECT_EQ(TotalNs(UnionOf(a)), total);
    EXPECT_EQ(OverlapNs(UnionOf(a), UnionOf(b)), both);
  }
}

}  // namespace
}  // namespace meridian
