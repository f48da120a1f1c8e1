#include "astra_bridge/prediction/prediction_run.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "astra_bridge/prediction/prediction_report.pb.h"
#include "astra_bridge/prediction/testing/predictions.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
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
  const absl::StatusOr<IterationPrediction> prediction =
      PredictIteration(setup, graph, match, options);
  EXPECT_OK(prediction.status());
  return MakeIterationReport(*prediction, options.mode, setup, graph);
}

// Alone: 20031 and 10265 ns. At once the large one goes first, and the small one arrives 9765 ns
// later than it: 29796.
TEST(PredictionReportTest, SaysWhereTheTimeGoes) {
  const PredictionReport report = Report(RingSetup(), Sends(), SnapshotOptions());
  EXPECT_EQ(report.engine(), "embedded, congestion-aware");
  EXPECT_EQ(report.mode(), "snapshot");
  EXPECT_EQ(report.iteration_ns(), 2 * 29796 + 100'000);
  EXPECT_EQ(report.fallbacks(), 0);

  ASSERT_EQ(report.edges_size(), 4);
  EXPECT_EQ(report.edges(1).id(), "send 0>1 tag 0#1");
  EXPECT_EQ(report.edges(1).kind(), "p2p");
  EXPECT_EQ(report.edges(1).bytes(), 1 << 20);
  EXPECT_EQ(report.edges(1).start_ns(), 29796);
  EXPECT_THAT(report.edges(1).isolated_seconds(), DoubleEq(20031e-9));

  EXPECT_EQ(report.workload().isolated_iteration_ns(), 2 * 20031 + 100'000);
  EXPECT_NEAR(report.inflation(), (20031.0 + 29796) / (20031 + 10265), 1e-12);
}

TEST(PredictionReportTest, AloneNothingIsInflated) {
  const PredictionReport report = Report(RingSetup(), Sends(), {});
  EXPECT_EQ(report.mode(), "isolated");
  EXPECT_EQ(report.iteration_ns(), 2 * 20031 + 100'000);
  EXPECT_EQ(report.inflation(), 1);
}

TEST(PredictionReportTest, WarnsOfWhatIsNotPriced) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  builder.CollectiveOnAll({0, 1}, 1, world, 8, {}, ChakraProtoMsg::BROADCAST);
  builder.CollectiveOnAll({0, 1}, 1, world, 8);
  const PredictionReport report = Report(RingSetup(), std::move(builder).Build(), {});
  EXPECT_THAT(report.warnings(), ElementsAre(HasSubstr("1 collectives of type BROADCAST")));
}

}  // namespace
}  // namespace meridian
