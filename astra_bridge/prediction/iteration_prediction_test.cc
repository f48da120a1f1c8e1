#include "astra_bridge/prediction/iteration_prediction.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/prediction/testing/predictions.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Prediction = std::unique_ptr<IterationPrediction>;

TimingSetup Fixed(std::map<std::string, double> seconds, double inflation) {
  TimingSetup setup;
  setup.timing = std::make_unique<FixedTiming>(FixedTimes(std::move(seconds), inflation));
  return setup;
}

absl::StatusOr<Prediction> Predict(const TimingSetup& setup, const ExecutionGraph& graph,
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
// alone; of two that start at once the second leaves 19531 ns later and takes 39562.
TEST(IterationPredictionTest, WorkedExampleOfTwoSendsOverOneLink) {
  const TimingSetup setup = RingSetup();
  ASSERT_OK_AND_ASSIGN(const Prediction prediction, Predict(setup, TwoSends(), SnapshotOptions()));
  EXPECT_EQ(prediction->isolated_makespan_ns, 30031);

  ASSERT_THAT(prediction->traffic, SizeIs(3));
  EXPECT_THAT(prediction->traffic[0].members, ElementsAre(0));
  EXPECT_EQ(prediction->traffic[0].end_ns, 10000);
  EXPECT_THAT(prediction->traffic[1].members, ElementsAre(0, 1));
  EXPECT_EQ(prediction->traffic[1].end_ns, 20031);
  EXPECT_THAT(prediction->traffic[2].members, ElementsAre(1));
  EXPECT_EQ(prediction->traffic[2].end_ns, 30031);

  const BatchEstimate& both = prediction->timer->batch(prediction->batches[1]);
  EXPECT_THAT(both.seconds, ElementsAre(DoubleEq(20031e-9), DoubleEq(39562e-9)));
  EXPECT_NEAR(both.inflation, 39562.0 / 20031, 1e-12);

  // The second spends 10031 ns in company and 10000 alone:
  // (10031 * 39562 + 10000 * 20031) / 20031 = 29811.61... ns.
  EXPECT_THAT(prediction->seconds,
              ElementsAre(DoubleEq(20031e-9), DoubleNear(597'156'422.0 / 20031 * 1e-9, 1e-18)));
  EXPECT_THAT(prediction->times.intervals,
              ElementsAre(EdgeInterval{0, 20031}, EdgeInterval{10000, 39812}));
  // A simulation of the whole would give 39562.
  EXPECT_EQ(prediction->times.replay.makespan_ns, 39812);
  EXPECT_EQ(prediction->extractions, 1);
}

TEST(IterationPredictionTest, IsolatedModeLeavesEdgesAlone) {
  const TimingSetup setup = RingSetup();
  ASSERT_OK_AND_ASSIGN(const Prediction prediction, Predict(setup, TwoSends(), {}));
  EXPECT_EQ(prediction->times.replay.makespan_ns, 30031);
  EXPECT_EQ(prediction->isolated_makespan_ns, 30031);
  EXPECT_THAT(prediction->traffic, IsEmpty());
  EXPECT_EQ(prediction->extractions, 0);
}

// On rank 0, edge a; beside it on ranks 2 and 3, edge b, and after b edge c. Alone, a is over
// before c begins.
//   a: 0-10   b: 0-12   c: 12-20
ExecutionGraph ThreeEdges() {
  WorkloadBuilder builder;
  const GroupIndex left = builder.Group("l", {0, 1});
  const GroupIndex right = builder.Group("r", {2, 3});
  builder.CollectiveOnAll({0, 1}, 1, left, 1);
  const std::vector<NodeIndex> b = builder.CollectiveOnAll({2, 3}, 1, right, 2);
  builder.CollectiveOnAll({2, 3}, 1, right, 3, b);
  return std::move(builder).Build();
}

TEST(IterationPredictionTest, CollectsOnceWhenEdgesMeetTheSame) {
  // In company everything takes four times as long: a 40; b (10 * 48 + 2 * 12) / 12 = 42; c 8. Then
  // a: 0-40 and b: 0-42 still meet, and c still nobody.
  ASSERT_OK_AND_ASSIGN(
      const Prediction prediction,
      Predict(Fixed({{"group l#0", 10e-9}, {"group r#0", 12e-9}, {"group r#1", 8e-9}}, 4),
              ThreeEdges(), SnapshotOptions()));
  EXPECT_EQ(prediction->extractions, 1);
  EXPECT_THAT(prediction->times.intervals,
              ElementsAre(EdgeInterval{0, 40}, EdgeInterval{0, 42}, EdgeInterval{42, 50}));
}

// Edges a and b of 10 ns start at once. Alone they are over when c begins at 20; in company, three
// times as long, they are not. Further edges of 10 ns follow c.
absl::StatusOr<Prediction> PredictMeeting(int further) {
  WorkloadBuilder builder;
  builder.CollectiveOnAll({0, 1}, 1, builder.Group("a", {0, 1}), 1);
  builder.CollectiveOnAll({2, 3}, 1, builder.Group("b", {2, 3}), 2);
  const GroupIndex group = builder.Group("c", {4, 5});
  std::vector<NodeIndex> last = {builder.Compute({4, 0}, 20), builder.Compute({5, 0}, 20)};
  std::map<std::string, double> seconds = {{"group a#0", 10e-9}, {"group b#0", 10e-9}};
  for (int k = 0; k <= further; ++k) {
    last = builder.CollectiveOnAll({4, 5}, 1, group, 3, last);
    seconds[absl::StrCat("group c#", k)] = 10e-9;
  }
  return Predict(Fixed(std::move(seconds), 3), std::move(builder).Build(), SnapshotOptions());
}

TEST(IterationPredictionTest, CollectsAnewWhenEdgesMeetOthers) {
  ASSERT_OK_AND_ASSIGN(const Prediction prediction, PredictMeeting(0));
  EXPECT_EQ(prediction->extractions, 2);
  ASSERT_THAT(prediction->traffic, SizeIs(2));
  EXPECT_THAT(prediction->traffic[0].members, ElementsAre(0, 1));
  EXPECT_EQ(prediction->traffic[0].end_ns, 20);
  EXPECT_THAT(prediction->traffic[1].members, ElementsAre(0, 1, 2));
  EXPECT_EQ(prediction->traffic[1].end_ns, 30);
  EXPECT_THAT(prediction->times.intervals,
              ElementsAre(EdgeInterval{0, 30}, EdgeInterval{0, 30}, EdgeInterval{20, 50}));
}

TEST(IterationPredictionTest, OneEdgeInTwentyMayMeetOthers) {
  // a, b and c meet others: 3 of 60 are 5 %, 3 of 59 are more.
  ASSERT_OK_AND_ASSIGN(const Prediction once, PredictMeeting(57));
  EXPECT_EQ(once->extractions, 1);
  ASSERT_OK_AND_ASSIGN(const Prediction twice, PredictMeeting(56));
  EXPECT_EQ(twice->extractions, 2);
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
      const Prediction ring,
      Predict(EmbeddedSetup({Dimension(BlockShape::kRing, 8)}), graph, SnapshotOptions()));
  ASSERT_OK_AND_ASSIGN(const Prediction full,
                       Predict(EmbeddedSetup({Dimension(BlockShape::kFullyConnected, 8)}), graph,
                               SnapshotOptions()));
  EXPECT_LT(full->times.replay.makespan_ns, ring->times.replay.makespan_ns);
  EXPECT_GE(ring->times.replay.makespan_ns, ring->isolated_makespan_ns);
  EXPECT_GE(full->times.replay.makespan_ns, full->isolated_makespan_ns);
}

TEST(IterationPredictionTest, TellsHowMuchItHasTimed) {
  const TimingSetup setup = RingSetup();
  IterationOptions options = SnapshotOptions();
  std::vector<uint64_t> told;
  options.progress = [&](uint64_t timed) { told.push_back(timed); };
  EXPECT_OK(Predict(setup, TwoSends(), options).status());
  // An edge alone, then two sets of edges.
  EXPECT_THAT(told, ElementsAre(1, 2, 3));
}

TEST(IterationPredictionTest, ErrorsNameTheEdge) {
  EXPECT_THAT(
      Predict(EmbeddedSetup({Dimension(BlockShape::kRing, 2)}), ThreeEdges(), SnapshotOptions()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("edge group r#0"), HasSubstr("device 2"))));
  EXPECT_THAT(Predict(Fixed({{"group l#0", 1e300}, {"group r#0", 1}, {"group r#1", 1}}, 1),
                      ThreeEdges(), SnapshotOptions()),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("edge group l#0")));
}

TEST(IterationPredictionTest, RanksArePutOnDevices) {
  TimingSetup setup = RingSetup();
  setup.layout.rank_to_device = {{0, 0}, {1, 2}};
  ASSERT_OK_AND_ASSIGN(const Prediction prediction, Predict(setup, TwoSends(), {}));
  // Two links of 20031 ns, in whole messages.
  EXPECT_EQ(prediction->times.intervals[0].duration_ns(), 40062);
}

}  // namespace
}  // namespace meridian
