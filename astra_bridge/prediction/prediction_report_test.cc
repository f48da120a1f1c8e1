#include "astra_bridge/prediction/prediction_report.h"

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/testing/predictions.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "astra_bridge/timing/network_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 1 MiB and half of it over the same link at once, twice in a row, then 100 us of computation.
ExecutionGraph Sends() {
  WorkloadBuilder builder;
  NodePlace sends(0, 1);
  NodePlace others(0, 2);
  for (int32_t round = 0; round < 2; ++round) {
    const NodeIndex large = builder.Send(sends, 1, 1 << 20, 0);
    const NodeIndex small = builder.Send(others, 1, 1 << 19, 1);
    builder.Receive({1, 1}, 0, 1 << 20, 0);
    builder.Receive({1, 2}, 0, 1 << 19, 1);
    sends.after = others.after = {large, small};
  }
  builder.Compute({0, 0, sends.after}, 100'000);
  return std::move(builder).Build();
}

PredictionReport Report(const TimingSetup& setup, const ExecutionGraph& graph,
                        const IterationOptions& options) {
  const CommunicationMatch match(graph);
  const absl::StatusOr<std::unique_ptr<IterationPrediction>> prediction =
      PredictIteration(setup, graph, match, options);
  EXPECT_OK(prediction.status());
  return MakeIterationReport(**prediction, options.mode, setup, graph);
}

// Alone: 20031 and 10265 ns. At once the small one goes first and the large one takes 29796, which
// folds to 20031 + 10265 * 9765 / 20031 = 25035 ns.
TEST(PredictionReportTest, SaysWhereTheTimeGoes) {
  const PredictionReport report = Report(RingSetup(), Sends(), SnapshotOptions());
  EXPECT_EQ(report.engine(), "embedded, congestion-aware");
  EXPECT_EQ(report.mode(), "snapshot");
  EXPECT_EQ(report.batch_rule(), "simulated together");
  EXPECT_EQ(report.iteration_ns(), 2 * 25035 + 100'000);
  EXPECT_EQ(report.fallbacks(), 0);

  ASSERT_EQ(report.edges_size(), 4);
  EXPECT_EQ(report.edges(1).id(), "send 0>1 tag 0#1");
  EXPECT_EQ(report.edges(1).kind(), "p2p");
  EXPECT_EQ(report.edges(1).bytes(), 1 << 20);
  EXPECT_EQ(report.edges(1).start_ns(), 25035);
  EXPECT_THAT(report.edges(1).isolated_seconds(), DoubleEq(20031e-9));

  EXPECT_EQ(report.workload().isolated_iteration_ns(), 2 * 20031 + 100'000);

  // Both, the large one, both, the large one.
  EXPECT_EQ(report.snapshots(), 4);
  const double inflation = 29796.0 / 20031;
  EXPECT_NEAR(report.inflation(), (10265 * inflation + 9766) / 20031, 1e-12);
}

TEST(PredictionReportTest, AloneNothingRunsAtOnce) {
  const PredictionReport report = Report(RingSetup(), Sends(), {});
  EXPECT_EQ(report.mode(), "isolated");
  EXPECT_EQ(report.iteration_ns(), 2 * 20031 + 100'000);
  EXPECT_EQ(report.snapshots(), 0);
  EXPECT_EQ(report.inflation(), 1);
  EXPECT_EQ(report.batch_rule(), "");
}

TEST(PredictionReportTest, NoFallbackIsSilent) {
  FixedTimes times({{"send 0>1 tag 0#0", 20e-9}, {"send 0>1 tag 1#0", 10e-9}});
  times.batch_failure = absl::AbortedError("it crashed");
  TimingSetup setup;
  setup.timing = std::make_unique<FallbackTiming>(std::make_unique<FixedTiming>(times),
                                                  std::make_unique<FixedTiming>(times));
  const PredictionReport report = Report(setup, Sends(), SnapshotOptions());
  EXPECT_EQ(report.fallbacks(), 1);
  EXPECT_EQ(report.batch_rule(), "serialised");
  EXPECT_EQ(report.edges(0).fallback_reason(), "it crashed");
}

TEST(PredictionReportTest, WarnsOfWhatIsNotPriced) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  builder.CollectiveOnAll({0, 1}, 1, world, 8, {}, ChakraProtoMsg::BROADCAST);
  builder.CollectiveOnAll({0, 1}, 1, world, 8);
  const PredictionReport report = Report(RingSetup(), std::move(builder).Build(), {});
  EXPECT_THAT(report.warnings(), ElementsAre(HasSubstr("1 collectives of type BROADCAST")));
}

TrafficManifest ManifestOf(const TimingSetup& setup, const ExecutionGraph& graph) {
  const absl::StatusOr<std::unique_ptr<IterationPrediction>> prediction =
      PredictIteration(setup, graph, CommunicationMatch(graph), SnapshotOptions());
  EXPECT_OK(prediction.status());
  return MakeTrafficManifest(
      **prediction, MakeIterationReport(**prediction, TimingMode::kSnapshot, setup, graph));
}

TEST(TrafficManifestTest, HasIntervalsMembersAndSizes) {
  WorkloadBuilder builder;
  builder.Send({0, 1}, 1, 1 << 20, 0);
  builder.Receive({1, 1}, 0, 1 << 20, 0);
  builder.Send({0, 2}, 1, 1 << 19, 1);
  builder.Receive({1, 2}, 0, 1 << 19, 1);
  const TrafficManifest manifest = ManifestOf(RingSetup(), std::move(builder).Build());
  EXPECT_EQ(manifest.engine(), "embedded, congestion-aware");

  ASSERT_EQ(manifest.edges_size(), 2);
  EXPECT_EQ(manifest.edges(1).id(), "send 0>1 tag 1#0");
  EXPECT_EQ(manifest.edges(1).kind(), "p2p");
  EXPECT_EQ(manifest.edges(1).bytes(), 1 << 19);
  EXPECT_THAT(manifest.edges(1).participants(), ElementsAre(0, 1));
  // trunc(500 + 9765.625).
  EXPECT_THAT(manifest.edges(1).isolated_seconds(), DoubleEq(10265e-9));
  // 20031 + 10265 * (29796 - 20031) / 20031 = 25035.1; see below.
  EXPECT_NEAR(manifest.edges(0).seconds(), 25035.1e-9, 0.05e-9);
  EXPECT_THAT(manifest.edges(1).seconds(), DoubleEq(10265e-9));

  // Both, then the larger one alone. The smaller goes first: it is first in canonical order.
  ASSERT_EQ(manifest.snapshots_size(), 2);
  const TrafficSnapshot& both = manifest.snapshots(0);
  EXPECT_EQ(both.start_ns(), 0);
  EXPECT_EQ(both.end_ns(), 10265);
  EXPECT_THAT(both.edges(), ElementsAre(1, 0));
  // The larger waits for 9765 ns.
  EXPECT_THAT(both.seconds(), ElementsAre(DoubleEq(10265e-9), DoubleEq(29796e-9)));
  EXPECT_EQ(both.rule(), "simulated together");
  EXPECT_EQ(both.fallback_reason(), "");
  EXPECT_EQ(manifest.snapshots(1).end_ns(), 20031);
  EXPECT_THAT(manifest.snapshots(1).edges(), ElementsAre(0));
}

// The snapshots of an edge follow each other without a gap, and its seconds follow from them.
void ExpectOneStory(const TrafficManifest& manifest) {
  std::vector<int64_t> first_ns(manifest.edges_size(), -1), last_ns(manifest.edges_size(), -1);
  std::vector<double> weighed(manifest.edges_size(), 0);
  for (const TrafficSnapshot& snapshot : manifest.snapshots()) {
    for (int i = 0; i < snapshot.edges_size(); ++i) {
      const uint32_t edge = snapshot.edges(i);
      if (first_ns[edge] < 0) first_ns[edge] = last_ns[edge] = snapshot.start_ns();
      EXPECT_EQ(snapshot.start_ns(), last_ns[edge]) << manifest.edges(edge).id();
      last_ns[edge] = snapshot.end_ns();
      weighed[edge] +=
          static_cast<double>(snapshot.end_ns() - snapshot.start_ns()) * snapshot.seconds(i);
    }
  }
  for (int i = 0; i < manifest.edges_size(); ++i) {
    EXPECT_NEAR(manifest.edges(i).seconds(),
                weighed[i] / static_cast<double>(last_ns[i] - first_ns[i]), 1e-15)
        << manifest.edges(i).id();
  }
}

TEST(TrafficManifestTest, SecondsOfEdgesFollowFromTheirSnapshots) {
  // a and b of 10 ns start at once and take three times as long in company; c, after 20 ns, then
  // meets them, so that snapshots are collected from a: 0-30, b: 0-30, c: 20-30.
  WorkloadBuilder builder;
  builder.CollectiveOnAll({0, 1}, 1, builder.Group("a", {0, 1}), 1);
  builder.CollectiveOnAll({2, 3}, 1, builder.Group("b", {2, 3}), 2);
  builder.CollectiveOnAll({4, 5}, 1, builder.Group("c", {4, 5}), 3,
                          {builder.Compute({4, 0}, 20), builder.Compute({5, 0}, 20)});
  TimingSetup setup;
  setup.timing = std::make_unique<FixedTiming>(
      FixedTimes({{"group a#0", 10e-9}, {"group b#0", 10e-9}, {"group c#0", 10e-9}}, 3));
  const TrafficManifest manifest = ManifestOf(setup, std::move(builder).Build());
  ExpectOneStory(manifest);
  ASSERT_EQ(manifest.snapshots_size(), 2);
  EXPECT_EQ(manifest.snapshots(1).start_ns(), 20);
  EXPECT_EQ(manifest.snapshots(1).end_ns(), 30);
  EXPECT_THAT(manifest.edges(2).seconds(), DoubleEq(30e-9));
  EXPECT_EQ(manifest.edges(2).start_ns(), 20);
}

TEST(TrafficManifestTest, SecondsAgreeWhateverTheWorkload) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    WorkloadBuilder builder;
    const GroupIndex groups[] = {builder.Group("1", {0, 1}), builder.Group("2", {2, 3})};
    for (int i = 0; i < 16; ++i) {
      const int64_t first = random() % 2 == 0 ? 0 : 2;
      const std::vector<int64_t> ranks = {first, first + 1};
      const int64_t stream = 1 + random() % 3;
      const int64_t compute_ns = random() % 100'000;
      const std::vector<NodeIndex> before = {builder.Compute({first, 0}, compute_ns),
                                             builder.Compute({first + 1, 0}, compute_ns)};
      builder.CollectiveOnAll(ranks, stream, groups[first / 2], 4096 << random() % 10, before);
    }
    ExpectOneStory(ManifestOf(RingSetup(), std::move(builder).Build()));
  }
}

TEST(TrafficManifestTest, SaysWhatTheEngineDidNotTime) {
  WorkloadBuilder builder;
  builder.Send({0, 1}, 1, 64, 0);
  builder.Receive({1, 1}, 0, 64, 0);
  builder.Send({0, 2}, 1, 64, 1);
  builder.Receive({1, 2}, 0, 64, 1);
  FixedTimes failing;
  failing.edge_failure = failing.batch_failure = absl::AbortedError("it crashed");
  TimingSetup setup;
  setup.timing = std::make_unique<FallbackTiming>(
      std::make_unique<FixedTiming>(failing),
      std::make_unique<FixedTiming>(
          FixedTimes({{"send 0>1 tag 0#0", 2e-6}, {"send 0>1 tag 1#0", 2e-6}})));
  const TrafficManifest manifest = ManifestOf(setup, std::move(builder).Build());
  EXPECT_EQ(manifest.edges(1).fallback_reason(), "it crashed");
  EXPECT_EQ(manifest.snapshots(0).fallback_reason(), "it crashed");
  EXPECT_EQ(manifest.snapshots(0).rule(), "serialised");
  // One after the other.
  EXPECT_THAT(manifest.snapshots(0).seconds(), ElementsAre(DoubleEq(4e-6), DoubleEq(4e-6)));
}

}  // namespace
}  // namespace meridian
