#include "trace_alignment/testing/synthetic_cluster.h"

#include <algorithm>
#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

ClusterOptions FourRanks() {
  ClusterOptions options;
  options.nodes = 4;
  options.collectives = OneOfEach(2);
  return options;
}

// Times of a rank's part in the collective of that position in OneOfEach.
struct Times {
  const SyntheticCluster& cluster;
  int64_t step;
  size_t collective;

  int64_t Start(int64_t rank) const { return cluster.Work(step, collective, rank).start_ps; }
  int64_t End(int64_t rank) const { return cluster.Work(step, collective, rank).end_ps; }
};

TEST(SyntheticClusterTest, GroupsAreOfNeighboursOrStrided) {
  const SyntheticCluster cluster(FourRanks());
  EXPECT_THAT(cluster.groups(0)[0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cluster.groups(1)[0], ElementsAre(0, 1));
  EXPECT_THAT(cluster.groups(1)[1], ElementsAre(2, 3));
  EXPECT_THAT(cluster.groups(2)[0], ElementsAre(0, 2));
  EXPECT_THAT(cluster.groups(2)[1], ElementsAre(1, 3));
  EXPECT_EQ(cluster.Pairs(4).size(), 4u);
  EXPECT_EQ(cluster.Pairs(4)[3], (SourceTargetPair{3, 0}));
}

TEST(SyntheticClusterTest, NobodyWaitsForOthersThanItMust) {
  const SyntheticCluster cluster(FourRanks());
  const int64_t transfer_ps = cluster.options().transfer_ns * kPsPerNs;
  const int64_t jitter_ps = cluster.options().end_jitter_ns * kPsPerNs;
  const auto expect_end = [&](const Times& times, int64_t rank, int64_t awaited_ps) {
    const int64_t transferred_ps = times.End(rank) - std::max(awaited_ps, times.Start(rank));
    EXPECT_GE(transferred_ps, transfer_ps);
    EXPECT_LE(transferred_ps, transfer_ps + jitter_ps);
  };
  for (int64_t step = 0; step < cluster.options().steps; ++step) {
    for (int64_t rank = 0; rank < 4; ++rank) {
      const Times all_reduce = {cluster, step, 0};
      expect_end(all_reduce, rank,
                 std::max({all_reduce.Start(0), all_reduce.Start(1), all_reduce.Start(2),
                           all_reduce.Start(3)}));
      const Times gather = {cluster, step, 1};
      expect_end(gather, rank, gather.Start(rank ^ 1));
      const Times scatter = {cluster, step, 2};
      expect_end(scatter, rank, scatter.Start(rank ^ 2));
      const Times permute = {cluster, step, 4};
      expect_end(permute, rank, permute.Start((rank + 3) % 4));
      const Times broadcast = {cluster, step, 5};
      expect_end(broadcast, rank, broadcast.Start(0));
      const Times reduce = {cluster, step, 6};
      const int64_t last_ps = std::max({reduce.Start(1), reduce.Start(2), reduce.Start(3)});
      expect_end(reduce, rank, rank == 0 ? last_ps : reduce.Start(rank));
    }
  }
}

TEST(SyntheticClusterTest, AStragglerComesLateInItsSteps) {
  ClusterOptions options = FourRanks();
  options.compute_jitter_ns = 0;
  options.stragglers = {{2, 3'000'000, 3}};
  const SyntheticCluster cluster(options);
  for (int64_t step = 0; step < options.steps; ++step) {
    const ClusterWork& work = cluster.Work(step, 0, 2);
    EXPECT_EQ((work.start_ps - work.compute_start_ps) / kPsPerNs,
              step % 3 == 0 ? 3'100'000 : 100'000);
  }
}

TEST(SyntheticClusterTest, ClocksLieWithinTheirLimitsAndTheReferenceIsRight) {
  ClusterOptions options = FourRanks();
  options.nodes = 64;
  options.max_skew_ns = 50'000'000;
  options.max_drift_ppb = 50'000;
  options.max_tracer_drift_ppb = 5'000;
  const SyntheticCluster cluster(options);
  int64_t largest_skew_ps = 0;
  for (int64_t n = 0; n < options.nodes; ++n) {
    const ClusterNode& node = cluster.node(n);
    largest_skew_ps = std::max(largest_skew_ps, std::abs(node.host.offset_ps));
    EXPECT_LE(std::abs(node.host.drift_ppb), 50'000);
    EXPECT_LE(std::abs(node.tracer.drift_ppb - node.host.drift_ppb), 5'000);
  }
  EXPECT_LE(largest_skew_ps, 50'000'000 * kPsPerNs);
  EXPECT_GT(largest_skew_ps, 40'000'000 * kPsPerNs);
  EXPECT_EQ(cluster.OffsetPs(0, 123'456'789), 0);
}

TEST(SyntheticClusterTest, FileTimeIsPinnedToTheHostAtTheStart) {
  ClusterOptions options;
  options.host_clocks = {{}, {7'000'000'000, 0, {}}};
  options.max_tracer_drift_ppb = 5'000;
  const SyntheticCluster cluster(options);
  const ClusterNode& node = cluster.node(1);
  // Readings are whole nanoseconds.
  EXPECT_LE(
      std::abs(cluster.FilePs(1, node.tracer_start_ps) - cluster.HostPs(1, node.tracer_start_ps)),
      kPsPerNs);
  // A second later the two are apart by what the tracer gained.
  const int64_t later_ps = node.tracer_start_ps + 1'000'000'000'000;
  EXPECT_LE(std::abs(cluster.FilePs(1, later_ps) - cluster.HostPs(1, later_ps) -
                     node.tracer.drift_ppb * kPsPerNs),
            kPsPerNs);
}

TEST(SyntheticClusterTest, TheSeedDecides) {
  ClusterOptions options = FourRanks();
  options.max_skew_ns = 1'000'000;
  const SyntheticCluster one(options), same(options);
  options.seed = 2;
  const SyntheticCluster other(options);
  EXPECT_EQ(one.end_ps(), same.end_ps());
  EXPECT_EQ(one.node(3).host.offset_ps, same.node(3).host.offset_ps);
  EXPECT_NE(one.node(3).host.offset_ps, other.node(3).host.offset_ps);
}

}  // namespace
}  // namespace meridian
