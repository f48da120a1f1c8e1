#include "astra_bridge/schedule/iteration_report.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "astra_bridge/schedule/testing/predictions.h"
#include "astra_bridge/schedule/testing/workload_builder.h"
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
  return MakeIterationReport(**prediction, options, setup, graph, match);
}

// Alone: 20031 and 10265 ns. At once the small one goes first and the large one takes 29796, which
// folds to 20031 + 10265 * 9765 / 20031 = 25035 ns.
TEST(IterationReportTest, SaysWhereTheTimeGoes) {
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

  const WorkloadPrediction& workload = report.workload();
  EXPECT_EQ(workload.ranks(), 2);
  EXPECT_EQ(workload.nodes(), 9);
  EXPECT_EQ(workload.distinct_edges(), 2);
  EXPECT_EQ(workload.isolated_iteration_ns(), 2 * 20031 + 100'000);
  EXPECT_EQ(workload.critical_communication_ns(), 2 * 25035);
  ASSERT_EQ(workload.kinds_size(), 1);
  EXPECT_EQ(workload.kinds(0).kind(), "p2p");
  EXPECT_EQ(workload.kinds(0).edges(), 4);
  EXPECT_EQ(workload.kinds(0).bytes(), 3 << 20);

  // Both, the large one, both, the large one.
  EXPECT_EQ(report.snapshots(), 4);
  EXPECT_EQ(workload.contended_snapshots(), 2);
  EXPECT_EQ(workload.distinct_snapshots(), 2);
  EXPECT_EQ(workload.extractions(), 1);
  const double inflation = 29796.0 / 20031;
  EXPECT_THAT(workload.max_inflation(), DoubleEq(inflation));
  EXPECT_NEAR(report.inflation(), (10265 * inflation + 9766) / 20031, 1e-12);
  EXPECT_NEAR(workload.inflation_over_sum(), (10265 * 29796.0 / 30296 + 9766) / 20031, 1e-12);
  ASSERT_EQ(workload.slowest_snapshots_size(), 1);
  const SnapshotPrediction& slowest = workload.slowest_snapshots(0);
  EXPECT_EQ(slowest.start_ns(), 0);
  EXPECT_EQ(slowest.edges(), 2);
  EXPECT_EQ(slowest.bytes(), 3 << 19);
  EXPECT_EQ(slowest.occurrences(), 2);
  EXPECT_EQ(slowest.total_ns(), 2 * 10265);
  EXPECT_THAT(slowest.makespan_seconds(), DoubleEq(29796e-9));
  EXPECT_THAT(slowest.edge_ids(), ElementsAre("send 0>1 tag 0#0", "send 0>1 tag 1#0"));
}

TEST(IterationReportTest, AloneNothingRunsAtOnce) {
  const PredictionReport report = Report(RingSetup(), Sends(), {});
  EXPECT_EQ(report.mode(), "isolated");
  EXPECT_EQ(report.iteration_ns(), 2 * 20031 + 100'000);
  EXPECT_EQ(report.snapshots(), 0);
  EXPECT_EQ(report.inflation(), 1);
  EXPECT_EQ(report.batch_rule(), "");
  EXPECT_EQ(report.workload().inflation_over_sum(), 1);
  EXPECT_EQ(report.workload().max_inflation(), 1);
  EXPECT_EQ(report.workload().extractions(), 0);
}

TEST(IterationReportTest, CountsEdgesLeftOut) {
  IterationOptions options = SnapshotOptions();
  options.coalesce_below_bytes = 1 << 20;
  const PredictionReport report = Report(RingSetup(), Sends(), options);
  EXPECT_EQ(report.workload().coalesced_edges(), 2);
  EXPECT_EQ(report.workload().coalesce_below_bytes(), 1 << 20);
}

TEST(IterationReportTest, NoFallbackIsSilent) {
  FixedTimes times({{"send 0>1 tag 0#0", 20e-9}, {"send 0>1 tag 1#0", 10e-9}});
  times.batch_failure = absl::AbortedError("it crashed");
  TimingSetup setup;
  setup.timing = std::make_unique<FallbackTiming>(std::make_unique<FixedTiming>(times),
                                                  std::make_unique<FixedTiming>(times));
  const PredictionReport report = Report(setup, Sends(), SnapshotOptions());
  EXPECT_EQ(report.fallbacks(), 1);
  EXPECT_EQ(report.fallback_details(0).reason(), "it crashed");
  EXPECT_EQ(report.batch_rule(), "serialised");
  EXPECT_TRUE(report.edges(0).fallback());
  EXPECT_TRUE(report.workload().slowest_snapshots(0).fallback());
  // One after the other: 30 ns, 1.5 times the longest.
  EXPECT_THAT(report.workload().max_inflation(), DoubleEq(1.5));
}

TEST(IterationReportTest, WarnsOfWhatIsNotPriced) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  builder.CollectiveOnAll({0, 1}, 1, world, 8, {}, ChakraProtoMsg::BROADCAST);
  builder.CollectiveOnAll({0, 1}, 1, world, 8);
  const PredictionReport report = Report(RingSetup(), std::move(builder).Build(), {});
  EXPECT_THAT(report.warnings(), ElementsAre(HasSubstr("1 collectives of type BROADCAST")));
}

}  // namespace
}  // namespace meridian
