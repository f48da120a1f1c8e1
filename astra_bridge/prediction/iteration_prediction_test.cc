#include "astra_bridge/prediction/iteration_prediction.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/prediction/testing/predictions.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TimingSetup Fixed(const std::map<std::string, double>& seconds) {
  TimingSetup setup;
  setup.timing = [seconds](const CommEdge& edge) { return seconds.at(edge.id); };
  return setup;
}

std::vector<int64_t> Ranks64(int64_t count) {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

absl::StatusOr<IterationPrediction> Predict(const TimingSetup& setup, const ExecutionGraph& graph,
                                            const IterationOptions& options) {
  return PredictIteration(setup, graph, CommunicationMatch(graph), options);
}

// The example of docs/astra_predict.md: rank 0 sends 1 MiB to rank 1, and 10 us later, on another
// stream, 1 MiB again.
ExecutionGraph TwoSends() {
  constexpr int64_t kMebibyte = 1 << 20;
  WorkloadBuilder builder;
  builder.Send({0, 1}, 1, kMebibyte, 0);
  builder.Receive({1, 1}, 0, kMebibyte, 0);
  const NodeIndex compute = builder.Compute({0, 0}, 10'000);
  builder.Send({0, 2, {compute}}, 1, kMebibyte, 1);
  builder.Receive({1, 2}, 0, kMebibyte, 1);
  return std::move(builder).Build();
}

// On a ring of 4 with 50 GiB/s and 500 ns a link, each takes trunc(500 + 19531.25) = 20031 ns
// alone. The second leaves when the link is free, at 19531, and arrives 20031 later.
TEST(IterationPredictionTest, WorkedExampleOfTwoSendsOverOneLink) {
  const TimingSetup setup = RingSetup();
  ASSERT_OK_AND_ASSIGN(const IterationPrediction prediction,
                       Predict(setup, TwoSends(), SnapshotOptions()));
  EXPECT_EQ(prediction.isolated_makespan_ns, 30031);
  EXPECT_THAT(prediction.seconds, ElementsAre(DoubleEq(20031e-9), DoubleEq(29562e-9)));
  EXPECT_THAT(prediction.times.starts_ns, ElementsAre(0, 10000));
  EXPECT_THAT(prediction.times.lasts_ns, ElementsAre(20031, 29562));
  EXPECT_EQ(prediction.times.replay.makespan_ns, 39562);
}

// Both share the link from 10000 on: the first has 9531.25 ns of work left, which takes twice as
// long, and the second goes on alone after that. All is sent at 2 x 19531.25.
TEST(IterationPredictionTest, FairlySharedTheFirstWaitsForTheSecond) {
  TimingSetup setup = RingSetup();
  setup.congestion = Congestion::kFair;
  ASSERT_OK_AND_ASSIGN(const IterationPrediction prediction,
                       Predict(setup, TwoSends(), SnapshotOptions()));
  EXPECT_NEAR(prediction.times.starts_ns[0] + prediction.times.lasts_ns[0], 10000 + 2 * 9531 + 500,
              3);
  EXPECT_NEAR(prediction.times.starts_ns[1] + prediction.times.lasts_ns[1], 2 * 19531 + 500, 3);
}

// Alone twice as long as the engine says: so is what the second waits for the first.
TEST(IterationPredictionTest, CorrectedEdgesWorkAsMuchLonger) {
  TimingSetup setup = RingSetup();
  setup.overhead_ns = 0;
  setup.timing = [](const CommEdge&) { return 40062e-9; };
  ASSERT_OK_AND_ASSIGN(const IterationPrediction prediction,
                       Predict(setup, TwoSends(), SnapshotOptions()));
  EXPECT_NEAR(prediction.seconds[0], 40062e-9, 2e-9);
  EXPECT_NEAR(prediction.times.starts_ns[1] + prediction.times.lasts_ns[1], 39562 + 40062, 5);
}

// Two all-reduces of all ranks, which rank 0 begins in another order than the others.
TEST(IterationPredictionTest, RanksMayBeginCollectivesOfAllInDifferentOrders) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", Ranks64(4));
  const GroupIndex other = builder.Group("1", Ranks64(4));
  std::vector<NodeIndex> first, second;
  for (int64_t rank = 0; rank < 4; ++rank) {
    first.push_back(builder.Compute({rank, 0}, rank == 0 ? 1000 : 2000));
    second.push_back(builder.Compute({rank, 3}, rank == 0 ? 2000 : 1000));
  }
  builder.CollectiveOnAll(Ranks64(4), 1, world, 1 << 20, first);
  builder.CollectiveOnAll(Ranks64(4), 2, other, 1 << 10, second);
  const ExecutionGraph graph = std::move(builder).Build();
  ASSERT_OK_AND_ASSIGN(
      const IterationPrediction prediction,
      Predict(EmbeddedSetup({Dimension(BlockShape::kRing, 2), Dimension(BlockShape::kRing, 2)}),
              graph, SnapshotOptions()));
  EXPECT_GT(prediction.seconds[0], 0.9 * prediction.isolated_seconds[0]);
  EXPECT_GT(prediction.seconds[1], 0.9 * prediction.isolated_seconds[1]);
}

TEST(IterationPredictionTest, IsolatedModeLeavesEdgesAlone) {
  const TimingSetup setup = RingSetup();
  ASSERT_OK_AND_ASSIGN(const IterationPrediction prediction, Predict(setup, TwoSends(), {}));
  EXPECT_EQ(prediction.times.replay.makespan_ns, 30031);
  EXPECT_EQ(prediction.isolated_makespan_ns, 30031);
}

// On ranks 0 and 1, edge a; beside it on ranks 2 and 3, edge b, and after b edge c.
ExecutionGraph ThreeEdges() {
  WorkloadBuilder builder;
  const GroupIndex left = builder.Group("l", {0, 1});
  const GroupIndex right = builder.Group("r", {2, 3});
  builder.CollectiveOnAll({0, 1}, 1, left, 1);
  const std::vector<NodeIndex> b = builder.CollectiveOnAll({2, 3}, 1, right, 2);
  builder.CollectiveOnAll({2, 3}, 1, right, 3, b);
  return std::move(builder).Build();
}

TEST(IterationPredictionTest, AFullyConnectedNetworkIsFasterThanARing) {
  WorkloadBuilder builder;
  const GroupIndex even = builder.Group("1", {0, 2, 4, 6});
  const GroupIndex odd = builder.Group("2", {1, 3, 5, 7});
  for (int64_t stream = 0; stream < 2; ++stream) {
    builder.CollectiveOnAll({0, 2, 4, 6}, stream, even, 1 << 22);
    builder.CollectiveOnAll({1, 3, 5, 7}, stream, odd, 1 << 22);
  }
  const ExecutionGraph graph = std::move(builder).Build();
  ASSERT_OK_AND_ASSIGN(
      const IterationPrediction ring,
      Predict(EmbeddedSetup({Dimension(BlockShape::kRing, 8)}), graph, SnapshotOptions()));
  ASSERT_OK_AND_ASSIGN(const IterationPrediction full,
                       Predict(EmbeddedSetup({Dimension(BlockShape::kFullyConnected, 8)}), graph,
                               SnapshotOptions()));
  EXPECT_LT(full.times.replay.makespan_ns, ring.times.replay.makespan_ns);
  EXPECT_GE(ring.times.replay.makespan_ns, ring.isolated_makespan_ns);
  EXPECT_GE(full.times.replay.makespan_ns, full.isolated_makespan_ns);
}

TEST(IterationPredictionTest, TellsHowMuchItHasTimed) {
  const TimingSetup setup = RingSetup();
  IterationOptions options = SnapshotOptions();
  std::vector<uint64_t> told;
  options.progress = [&](uint64_t timed) { told.push_back(timed); };
  EXPECT_OK(Predict(setup, TwoSends(), options).status());
  // The edges are alike.
  EXPECT_THAT(told, ElementsAre(1));
}

TEST(IterationPredictionTest, ErrorsNameTheEdge) {
  EXPECT_THAT(
      Predict(EmbeddedSetup({Dimension(BlockShape::kRing, 2)}), ThreeEdges(), SnapshotOptions()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("edge group r#0"), HasSubstr("device 2"))));
  EXPECT_THAT(Predict(Fixed({{"group l#0", 1e300}, {"group r#0", 1}, {"group r#1", 1}}),
                      ThreeEdges(), SnapshotOptions()),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("edge group l#0")));
}

}  // namespace
}  // namespace meridian
