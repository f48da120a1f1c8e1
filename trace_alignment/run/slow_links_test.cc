#include "trace_alignment/run/slow_links.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kBytes = 1 << 20;

CombineReport Find(const CollectiveTable& table, std::optional<int64_t> clock_uncertainty_ps,
                   const std::vector<std::string>& hosts = {}) {
  CombineReport report;
  FindSlowLinks(table, hosts, clock_uncertainty_ps, &report);
  return report;
}

// Eight ranks, in pairs and in two groups of four, all-reduce five times each; a group with a slow
// rank takes `times` as long. Whoever is not last to come waits for 1,000.
void AddGroups(int64_t slow_rank, int64_t times, RunBuilder* run) {
  int64_t number = 0;
  for (const IdGroups& groups :
       std::vector<IdGroups>{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{0, 2, 4, 6}, {1, 3, 5, 7}}}) {
    const uint32_t op = run->AddOp(CollectiveKind::kAllReduce, groups, kBytes);
    for (int64_t repeat = 0; repeat < 5; ++repeat, ++number) {
      for (size_t i = 0; i < groups.size(); ++i) {
        const bool is_slow = absl::c_linear_search(groups[i], slow_rank);
        for (const int64_t rank : groups[i]) {
          const int64_t base_ps = 100000 * number;
          run->Add({op, number, rank, base_ps + (rank == groups[i][0] ? 0 : 1000),
                    base_ps + 1000 + 200 * (is_slow ? times : 1)});
        }
      }
    }
  }
}

TEST(SlowLinksTest, ARankAllOfWhoseGroupsAreSlowHasASlowLink) {
  RunBuilder run(8);
  AddGroups(/*slow_rank=*/5, /*times=*/3, &run);
  const CombineReport found = Find(run.Build(), /*clock_uncertainty_ps=*/std::nullopt);
  ASSERT_THAT(found.slow_links(), SizeIs(1));
  EXPECT_EQ(found.slow_links(0).rank(), 5);
  EXPECT_DOUBLE_EQ(found.slow_links(0).times_slower(), 3);
  EXPECT_THAT(found.slow_links(0).or_ranks(), IsEmpty());
  // Five of the pair beside those of three others, five of four beside five of the other four.
  EXPECT_EQ(found.slow_links(0).transfers(), 10);
  EXPECT_EQ(found.slow_links(0).compared_with(), 20);
  EXPECT_EQ(found.link_ranks_compared(), 8);
}

TEST(SlowLinksTest, EqualLinksAreNotSlow) {
  RunBuilder run(8);
  AddGroups(/*slow_rank=*/5, /*times=*/1, &run);
  EXPECT_THAT(Find(run.Build(), 0).slow_links(), IsEmpty());
}

TEST(SlowLinksTest, RanksThatAreInAllTheSameGroupsAreNotToldApart) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}}, kBytes);
  for (int64_t repeat = 0; repeat < 5; ++repeat) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      run.Add({op, repeat, rank, 1000 * repeat, 1000 * repeat + (rank < 2 ? 100 : 250)});
    }
  }
  const CombineReport found = Find(run.Build(), 0);
  ASSERT_THAT(found.slow_links(), SizeIs(1));
  EXPECT_EQ(found.slow_links(0).rank(), 2);
  EXPECT_THAT(found.slow_links(0).or_ranks(), ElementsAre(3));
}

// Nothing is like what all ranks do together.
TEST(SlowLinksTest, OfCollectivesOfAllRanksNothingIsKnown) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2, 3}}, kBytes);
  for (int64_t repeat = 0; repeat < 5; ++repeat) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      run.Add({op, repeat, rank, 1000 * repeat, 1000 * repeat + 100});
    }
  }
  const CombineReport found = Find(run.Build(), 0);
  EXPECT_THAT(found.slow_links(), IsEmpty());
  EXPECT_EQ(found.link_ranks_compared(), 0);
  EXPECT_EQ(found.link_ranks(), 4);
}

// A ring in which the messages from and to rank 2 take 400 in place of 100.
TEST(SlowLinksTest, PairsNeedClocksThatAreKnown) {
  RunBuilder run(4);
  std::vector<SourceTargetPair> ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, ring, kBytes);
  for (int64_t repeat = 0; repeat < 5; ++repeat) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const bool is_slow = rank == 2 || rank == 3;
      run.Add({op, repeat, rank, 1000 * repeat, 1000 * repeat + (is_slow ? 400 : 100)});
    }
  }
  const CollectiveTable table = run.Build();
  ASSERT_THAT(Find(table, 10).slow_links(), SizeIs(1));
  EXPECT_EQ(Find(table, 10).slow_links(0).rank(), 2);
  EXPECT_DOUBLE_EQ(Find(table, 10).slow_links(0).times_slower(), 4);
  // What clocks may be off by could be all of the difference.
  EXPECT_THAT(Find(table, 60).slow_links(), IsEmpty());
  EXPECT_EQ(Find(table, std::nullopt).link_ranks_compared(), 0);
}

// The groups of AddGroups, beside an all-reduce of all ranks that takes far longer.
TEST(SlowLinksTest, ALittleOfWhatRanksTransferTellsNothing) {
  RunBuilder run(8);
  AddGroups(/*slow_rank=*/5, /*times=*/3, &run);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2, 3, 4, 5, 6, 7}}, kBytes);
  for (int64_t rank = 0; rank < 8; ++rank) run.Add({op, 99, rank, 10000000, 10100000});
  const CombineReport found = Find(run.Build(), 0);
  EXPECT_THAT(found.slow_links(), IsEmpty());
  EXPECT_EQ(found.link_ranks_compared(), 0);
}

TEST(SlowLinksTest, BytesThatAreNotKnownAreNotCompared) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  for (int64_t repeat = 0; repeat < 5; ++repeat) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      run.Add({op, repeat, rank, 1000 * repeat, 1000 * repeat + (rank < 2 ? 100 : 250)});
    }
  }
  EXPECT_EQ(Find(run.Build(), 0).link_ranks(), 0);
}

// Ranks 0 and 1 share a host.
TEST(SlowLinksTest, WhatStaysOnAHostIsNotComparedWithWhatLeavesIt) {
  RunBuilder run(4);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}}, kBytes);
  for (int64_t repeat = 0; repeat < 5; ++repeat) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      run.Add({op, repeat, rank, 1000 * repeat, 1000 * repeat + (rank < 2 ? 10 : 250)});
    }
  }
  EXPECT_THAT(Find(run.Build(), 0, {"a", "a", "b", "c"}).slow_links(), IsEmpty());
}

}  // namespace
}  // namespace meridian
