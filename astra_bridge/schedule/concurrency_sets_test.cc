#include "astra_bridge/schedule/concurrency_sets.h"

#include <map>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

std::vector<uint64_t> Fingerprints(const std::vector<EdgeInterval>& intervals) {
  return ConcurrencyFingerprints(intervals, std::vector<bool>(intervals.size(), true));
}

TEST(ConcurrencySetsTest, SetsCountNotHowLongTheyLast) {
  const std::vector<uint64_t> before = Fingerprints({{0, 10}, {5, 15}, {15, 20}});
  const std::vector<uint64_t> after = Fingerprints({{0, 10}, {9, 30}, {30, 31}});
  EXPECT_EQ(before, after);
  // Now edges 1 and 2 meet.
  const std::vector<uint64_t> met = Fingerprints({{0, 10}, {9, 31}, {30, 32}});
  EXPECT_EQ(met[0], before[0]);
  EXPECT_NE(met[1], before[1]);
  EXPECT_NE(met[2], before[2]);
  EXPECT_DOUBLE_EQ(ChangedShare(before, met, {true, true, true}), 2.0 / 3);
}

TEST(ConcurrencySetsTest, EmptyIntervalsAndThoseLeftOutMeetNobody) {
  EXPECT_EQ(Fingerprints({{0, 10}, {5, 5}})[0], Fingerprints({{0, 10}, {20, 30}})[0]);
  EXPECT_EQ(Fingerprints({{0, 10}, {5, 5}})[1], 0);
  const std::vector<uint64_t> without = ConcurrencyFingerprints({{0, 10}, {5, 8}}, {true, false});
  EXPECT_EQ(without[0], Fingerprints({{0, 10}, {20, 30}})[0]);
  EXPECT_EQ(without[1], 0);
}

TEST(ConcurrencySetsTest, SharesAreOfThoseThatTakePart) {
  EXPECT_EQ(ChangedShare({1, 2, 3}, {1, 9, 9}, {true, true, false}), 0.5);
  EXPECT_EQ(ChangedShare({1}, {2}, {false}), 0);
  EXPECT_EQ(ChangedShare({}, {}, {}), 0);
}

// Equal numbers if and only if equal sets.
TEST(ConcurrencySetsTest, FingerprintsTellSetsApart) {
  std::mt19937 random(3);
  std::map<std::set<size_t>, uint64_t> known;
  std::map<uint64_t, std::set<size_t>> sets;
  for (int round = 0; round < 500; ++round) {
    std::vector<EdgeInterval> intervals;
    for (int i = 0; i < 6; ++i) {
      const int64_t start = random() % 12;
      intervals.push_back({start, start + 1 + static_cast<int64_t>(random() % 5)});
    }
    const std::vector<uint64_t> fingerprints = Fingerprints(intervals);
    for (size_t i = 0; i < 6; ++i) {
      std::set<size_t> set;
      for (size_t j = 0; j < 6; ++j) {
        const bool overlap = intervals[i].start_ns < intervals[j].end_ns &&
                             intervals[j].start_ns < intervals[i].end_ns;
        if (overlap) set.insert(j);
      }
      EXPECT_EQ(known.emplace(set, fingerprints[i]).first->second, fingerprints[i]);
      EXPECT_EQ(sets.emplace(fingerprints[i], set).first->second, set);
    }
  }
  EXPECT_GT(known.size(), 30);
}

}  // namespace
}  // namespace meridian
