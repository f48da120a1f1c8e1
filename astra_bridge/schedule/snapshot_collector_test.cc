#include "astra_bridge/schedule/snapshot_collector.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Text(const Snapshot& snapshot) {
  return absl::StrCat(snapshot.start_ns, "-", snapshot.end_ns, " ",
                      absl::StrJoin(snapshot.members, ","));
}

std::vector<std::string> Texts(const std::vector<Snapshot>& snapshots) {
  std::vector<std::string> texts;
  for (const Snapshot& snapshot : snapshots) texts.push_back(Text(snapshot));
  return texts;
}

std::vector<std::string> Collect(const std::vector<EdgeInterval>& intervals) {
  const absl::StatusOr<std::vector<Snapshot>> snapshots =
      CollectSnapshots(intervals, std::vector<bool>(intervals.size(), true),
                       EdgeDomains::OneForAll(intervals.size()));
  EXPECT_OK(snapshots.status());
  return Texts(*snapshots);
}

TEST(SnapshotCollectorTest, EveryStartAndEndIsAChange) {
  EXPECT_THAT(Collect({{0, 10}, {4, 15}}), ElementsAre("0-4 0", "4-10 0,1", "10-15 1"));
}

TEST(SnapshotCollectorTest, EndsAreNoPartOfIntervals) {
  EXPECT_THAT(Collect({{0, 10}, {10, 15}}), ElementsAre("0-10 0", "10-15 1"));
}

TEST(SnapshotCollectorTest, GapsHaveNone) {
  EXPECT_THAT(Collect({{0, 10}, {20, 25}, {3, 3}}), ElementsAre("0-10 0", "20-25 1"));
  EXPECT_THAT(Collect({}), IsEmpty());
  EXPECT_THAT(Collect({{5, 5}}), IsEmpty());
}

TEST(SnapshotCollectorTest, ChangesOfOneInstantAreOneChange) {
  EXPECT_THAT(Collect({{0, 10}, {0, 20}, {10, 20}}), ElementsAre("0-10 0,1", "10-20 1,2"));
}

TEST(SnapshotCollectorTest, SmallEdgesAreLeftOut) {
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 4096, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 1023, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 1024, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 0, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 4096, {3})};
  EXPECT_THAT(EdgesInSnapshots(edges, 0), ElementsAre(true, true, true, false, false));
  EXPECT_THAT(EdgesInSnapshots(edges, 1024), ElementsAre(true, false, true, false, false));
  ASSERT_OK_AND_ASSIGN(const std::vector<Snapshot> snapshots,
                       CollectSnapshots({{0, 10}, {4, 6}, {8, 12}, {0, 12}, {0, 12}},
                                        EdgesInSnapshots(edges, 1024), EdgeDomains::OneForAll(5)));
  EXPECT_THAT(Texts(snapshots), ElementsAre("0-8 0", "8-10 0,2", "10-12 2"));
}

TEST(SnapshotCollectorTest, PartsHaveChangesOfTheirOwn) {
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 8, {0, 1}),
                                       Edge(CollectiveKind::kAllGather, 8, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 8, {0, 1})};
  const FabricSet fabrics = FabricSet::ForAllEdges(FabricOf({Dimension(BlockShape::kRing, 4)}));
  ASSERT_OK_AND_ASSIGN(const EdgeDomains domains,
                       EdgeDomains::Find(edges, SnapshotPartition::kKind, fabrics));
  ASSERT_OK_AND_ASSIGN(const std::vector<Snapshot> snapshots,
                       CollectSnapshots({{0, 10}, {2, 20}, {5, 8}}, {true, true, true}, domains));
  // Unpartitioned there would be {0} {0,1} {0,1,2} {0,1} {1}.
  EXPECT_THAT(Texts(snapshots), ElementsAre("0-5 0", "2-20 1", "5-8 0,2", "8-10 0"));
}

TEST(SnapshotCollectorTest, AnEdgeOfTwoDomainsHoldsThemTogether) {
  // Rows of a 2 x 2 grid do not meet; a column joins them while it is there.
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 8, {0, 1}),
                                       Edge(CollectiveKind::kAllReduce, 8, {2, 3}),
                                       Edge(CollectiveKind::kAllReduce, 8, {0, 1, 2, 3})};
  const FabricSet fabrics = FabricSet::ForAllEdges(
      FabricOf({Dimension(BlockShape::kRing, 2), Dimension(BlockShape::kRing, 2)}));
  ASSERT_OK_AND_ASSIGN(const EdgeDomains domains,
                       EdgeDomains::Find(edges, SnapshotPartition::kLinkDomain, fabrics));
  ASSERT_OK_AND_ASSIGN(const std::vector<Snapshot> snapshots,
                       CollectSnapshots({{0, 10}, {0, 10}, {4, 6}}, {true, true, true}, domains));
  EXPECT_THAT(Texts(snapshots), ElementsAre("0-4 0", "0-4 1", "4-6 0,1,2", "6-10 0", "6-10 1"));
}

// At any instant the edges of the snapshots are those whose intervals hold it.
TEST(SnapshotCollectorTest, SnapshotsSayWhatIsActiveWhen) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<EdgeInterval> intervals;
    for (int i = 0; i < 6; ++i) {
      const int64_t start = random() % 12;
      intervals.push_back({start, start + static_cast<int64_t>(random() % 6)});
    }
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Snapshot> snapshots,
        CollectSnapshots(intervals, std::vector<bool>(6, true), EdgeDomains::OneForAll(6)));
    for (int64_t t = 0; t < 20; ++t) {
      std::vector<EdgeIndex> active;
      for (EdgeIndex i = 0; i < 6; ++i) {
        if (intervals[i].start_ns <= t && t < intervals[i].end_ns) active.push_back(i);
      }
      std::vector<EdgeIndex> members;
      for (const Snapshot& snapshot : snapshots) {
        if (snapshot.start_ns <= t && t < snapshot.end_ns) members = snapshot.members;
      }
      EXPECT_EQ(members, active) << "at " << t << " in round " << round;
    }
  }
}

TEST(SnapshotCollectorTest, RefusesMoreMembersThanMemoryHolds) {
  // All begin in turn and end together: 16,000 * 16,001 / 2 members.
  std::vector<EdgeInterval> intervals;
  for (int64_t i = 0; i < 16'000; ++i) intervals.push_back({i, 20'000});
  EXPECT_THAT(CollectSnapshots(intervals, std::vector<bool>(intervals.size(), true),
                               EdgeDomains::OneForAll(intervals.size())),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("--coalesce_below_kib")));
}

}  // namespace
}  // namespace meridian
