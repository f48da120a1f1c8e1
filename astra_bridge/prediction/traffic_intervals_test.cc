#include "astra_bridge/prediction/traffic_intervals.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Text(const TrafficInterval& interval) {
  return absl::StrCat(interval.start_ns, "-", interval.end_ns, " ",
                      absl::StrJoin(interval.members, ","));
}

std::vector<std::string> Texts(const std::vector<TrafficInterval>& traffic) {
  std::vector<std::string> texts;
  for (const TrafficInterval& interval : traffic) texts.push_back(Text(interval));
  return texts;
}

std::vector<std::string> Collect(const std::vector<EdgeInterval>& intervals) {
  const absl::StatusOr<std::vector<TrafficInterval>> traffic = CollectTrafficIntervals(intervals);
  EXPECT_OK(traffic.status());
  return Texts(*traffic);
}

TEST(TrafficIntervalsTest, EveryStartAndEndIsAChange) {
  EXPECT_THAT(Collect({{0, 10}, {4, 15}}), ElementsAre("0-4 0", "4-10 0,1", "10-15 1"));
}

TEST(TrafficIntervalsTest, EndsAreNoPartOfIntervals) {
  EXPECT_THAT(Collect({{0, 10}, {10, 15}}), ElementsAre("0-10 0", "10-15 1"));
}

TEST(TrafficIntervalsTest, GapsHaveNone) {
  EXPECT_THAT(Collect({{0, 10}, {20, 25}, {3, 3}}), ElementsAre("0-10 0", "20-25 1"));
  EXPECT_THAT(Collect({}), IsEmpty());
  EXPECT_THAT(Collect({{5, 5}}), IsEmpty());
}

TEST(TrafficIntervalsTest, ChangesOfOneInstantAreOneChange) {
  EXPECT_THAT(Collect({{0, 10}, {0, 20}, {10, 20}}), ElementsAre("0-10 0,1", "10-20 1,2"));
}

// At any instant the edges of the intervals are those whose intervals hold it.
TEST(TrafficIntervalsTest, SnapshotsSayWhatIsActiveWhen) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<EdgeInterval> intervals;
    for (int i = 0; i < 6; ++i) {
      const int64_t start = random() % 12;
      intervals.push_back({start, start + static_cast<int64_t>(random() % 6)});
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<TrafficInterval> traffic,
                         CollectTrafficIntervals(intervals));
    for (int64_t t = 0; t < 20; ++t) {
      std::vector<CommEdgeIndex> active;
      for (CommEdgeIndex i = 0; i < 6; ++i) {
        if (intervals[i].start_ns <= t && t < intervals[i].end_ns) active.push_back(i);
      }
      std::vector<CommEdgeIndex> members;
      for (const TrafficInterval& interval : traffic) {
        if (interval.start_ns <= t && t < interval.end_ns) members = interval.members;
      }
      EXPECT_EQ(members, active) << "at " << t << " in round " << round;
    }
  }
}

TEST(TrafficIntervalsTest, RefusesMoreMembersThanMemoryHolds) {
  // All begin in turn and end together: 16,000 * 16,001 / 2 members.
  std::vector<EdgeInterval> intervals;
  for (int64_t i = 0; i < 16'000; ++i) intervals.push_back({i, 20'000});
  EXPECT_THAT(CollectTrafficIntervals(intervals),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("--mode=isolated")));
}

std::vector<uint64_t> Fingerprints(const std::vector<EdgeInterval>& intervals) {
  return ConcurrencyFingerprints(intervals);
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
  EXPECT_DOUBLE_EQ(ChangedShare(before, met), 2.0 / 3);
}

TEST(ConcurrencySetsTest, EmptyIntervalsMeetNobody) {
  EXPECT_EQ(Fingerprints({{0, 10}, {5, 5}})[0], Fingerprints({{0, 10}, {20, 30}})[0]);
  EXPECT_EQ(Fingerprints({{0, 10}, {5, 5}})[1], 0);
}

TEST(ConcurrencySetsTest, SharesAreOfThoseThatMoveSomething) {
  EXPECT_EQ(ChangedShare({1, 2, 0}, {1, 9, 0}), 0.5);
  EXPECT_EQ(ChangedShare({0}, {0}), 0);
  EXPECT_EQ(ChangedShare({}, {}), 0);
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
