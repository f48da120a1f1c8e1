#include "astra_bridge/prediction/traffic_interval_timer.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "astra_bridge/prediction/testing/timed_edges.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void Ignore(uint64_t) {}

// An edge alone takes a second per byte; in a batch the i-th takes i seconds more. Keeps what it
// was asked.
class RecordingTiming : public NetworkTiming {
 public:
  TimingEngine engine() const override { return {"recording", "1"}; }

  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override {
    absl::MutexLock lock(&mutex_);
    edges_.push_back(edge.id);
    if (edge.id == "bad") return absl::InvalidArgumentError("edge bad");
    EdgeEstimate estimate;
    estimate.seconds = static_cast<double>(edge.bytes);
    return estimate;
  }

  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) override {
    absl::MutexLock lock(&mutex_);
    batches_.push_back(absl::StrJoin(
        edges, "+", [](std::string* out, const CommEdge& edge) { out->append(edge.id); }));
    BatchEstimate batch;
    for (const CommEdge& edge : edges) {
      batch.isolated.emplace_back();
      batch.isolated.back().seconds = static_cast<double>(edge.bytes);
      batch.seconds.push_back(static_cast<double>(edge.bytes) +
                              static_cast<double>(batch.seconds.size()));
    }
    SummariseBatch(&batch);
    return batch;
  }

  std::vector<std::string> edges() const {
    absl::MutexLock lock(&mutex_);
    return edges_;
  }
  std::vector<std::string> batches() const {
    absl::MutexLock lock(&mutex_);
    return batches_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> edges_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> batches_ ABSL_GUARDED_BY(mutex_);
};

CommEdge Named(const std::string& id, int64_t bytes) {
  CommEdge edge = Edge(CollectiveKind::kAllReduce, bytes, {0, 1});
  edge.id = id;
  return edge;
}

TEST(TrafficIntervalTimerTest, TimesEveryShapeOnce) {
  const std::vector<CommEdge> edges = {Named("a", 4), Named("b", 2), Named("a2", 4)};
  RecordingTiming timing;
  TrafficIntervalTimer timer(timing, edges, 1);
  std::vector<uint64_t> told;
  EXPECT_OK(timer.TimeEdges([&](uint64_t done) { told.push_back(done); }));
  EXPECT_THAT(timing.edges(), ElementsAre("b", "a"));
  EXPECT_THAT(told, ElementsAre(1, 2));
  EXPECT_EQ(timer.shape_count(), 2);
  EXPECT_EQ(timer.isolated(0).seconds, 4);
  EXPECT_EQ(timer.isolated(1).seconds, 2);
  EXPECT_EQ(timer.isolated(2).seconds, 4);
}

TEST(TrafficIntervalTimerTest, AlikeSnapshotsAreOneBatchInCanonicalOrder) {
  const std::vector<CommEdge> edges = {Named("a", 4), Named("b", 2), Named("a2", 4),
                                       Named("b2", 2)};
  RecordingTiming timing;
  TrafficIntervalTimer timer(timing, edges, 1);
  EXPECT_OK(timer.TimeEdges(Ignore));
  const std::vector<TrafficInterval> traffic = {
      {0, 1, {0, 1}}, {1, 2, {1, 2}}, {2, 3, {0, 1, 2}}, {3, 4, {2, 3}}};
  ASSERT_OK_AND_ASSIGN(const std::vector<BatchIndex> batches, timer.TimeIntervals(traffic, Ignore));
  EXPECT_THAT(batches, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(timing.batches(), ElementsAre("b+a", "b+a+a2"));
  EXPECT_THAT(timer.batch(0).seconds, ElementsAre(2, 5));
  EXPECT_THAT(timer.batch(1).seconds, ElementsAre(2, 5, 6));
  EXPECT_THAT(timer.BatchMembers(traffic[2]), ElementsAre(1, 0, 2));
  EXPECT_THAT(timer.BatchMembers(traffic[3]), ElementsAre(3, 2));
}

TEST(TrafficIntervalTimerTest, AnEdgeAloneIsNotSimulatedAgain) {
  const std::vector<CommEdge> edges = {Named("a", 4)};
  RecordingTiming timing;
  TrafficIntervalTimer timer(timing, edges, 1);
  EXPECT_OK(timer.TimeEdges(Ignore));
  ASSERT_OK_AND_ASSIGN(const std::vector<BatchIndex> batches,
                       timer.TimeIntervals({{0, 1, {0}}}, Ignore));
  EXPECT_THAT(timing.batches(), IsEmpty());
  EXPECT_THAT(timer.batch(batches[0]).seconds, ElementsAre(4));
  EXPECT_EQ(timer.batch(batches[0]).inflation, 1);
}

TEST(TrafficIntervalTimerTest, RemembersBatchesOfEarlierCalls) {
  const std::vector<CommEdge> edges = {Named("a", 4), Named("b", 2), Named("c", 3)};
  RecordingTiming timing;
  TrafficIntervalTimer timer(timing, edges, 1);
  EXPECT_OK(timer.TimeEdges(Ignore));
  EXPECT_OK(timer.TimeIntervals({{0, 1, {0, 1}}}, Ignore).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<BatchIndex> batches,
                       timer.TimeIntervals({{0, 1, {1, 2}}, {1, 2, {0, 1}}}, Ignore));
  EXPECT_THAT(batches, ElementsAre(1, 0));
  EXPECT_THAT(timing.batches(), SizeIs(2));
}

TEST(TrafficIntervalTimerTest, ErrorsComeThrough) {
  const std::vector<CommEdge> edges = {Named("bad", 4)};
  RecordingTiming timing;
  EXPECT_THAT(TrafficIntervalTimer(timing, edges, 2).TimeEdges(Ignore),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("edge bad")));
}

TEST(TrafficIntervalTimerTest, ThreadsChangeNothing) {
  std::vector<CommEdge> edges;
  std::vector<TrafficInterval> traffic;
  for (CommEdgeIndex i = 0; i < 24; ++i) {
    edges.push_back(Edge(CollectiveKind::kAllReduce, int64_t{1000} * (i % 5 + 1),
                         {static_cast<int32_t>(i % 3), static_cast<int32_t>(i % 4 + 3)}));
    for (CommEdgeIndex j = 0; j < i; ++j) traffic.push_back({0, 1, {j, i}});
  }
  const auto run = [&](int threads) {
    EmbeddedTiming timing(OneFabric(FabricOf({Dimension(BlockShape::kRing, 8)})),
                          Congestion::kAware, nullptr);
    TrafficIntervalTimer timer(timing, edges, threads);
    EXPECT_OK(timer.TimeEdges(Ignore));
    const absl::StatusOr<std::vector<BatchIndex>> batches = timer.TimeIntervals(traffic, Ignore);
    EXPECT_OK(batches.status());
    std::vector<std::vector<double>> seconds;
    for (const BatchIndex batch : *batches) seconds.push_back(timer.batch(batch).seconds);
    return seconds;
  };
  const std::vector<std::vector<double>> one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(7), one);
}

std::vector<double> Fold(const std::vector<TrafficInterval>& traffic) {
  TimedEdges edges;
  return FoldEdgeTimes(edges.timer(), traffic, edges.Time(traffic));
}

TEST(FoldEdgeTimesTest, WeighsTheTimesInSnapshotsByTheTimeSpentThere) {
  // a: 4 of 10 alone, 6 with b: (4 * 10 + 6 * 30) / 10. b: 6 of 20 with a: (6 * 60 + 14 * 20) / 20.
  EXPECT_THAT(Fold({{0, 4, {0}}, {4, 10, {0, 1}}, {10, 24, {1}}}),
              ElementsAre(DoubleEq(22), DoubleEq(32), 30));
}

TEST(FoldEdgeTimesTest, OnlySharesOfTheTimeCount) {
  // The same twice as slowly: a schedule in which the edges are stretched already.
  EXPECT_THAT(Fold({{0, 8, {0}}, {8, 20, {0, 1}}, {20, 48, {1}}}),
              ElementsAre(DoubleEq(22), DoubleEq(32), 30));
}

TEST(FoldEdgeTimesTest, WhoIsAloneKeepsItsTimeToTheLastBit) {
  EXPECT_THAT(Fold({{0, 7, {0}}, {7, 11, {1}}, {11, 14, {2}}}), ElementsAre(10, 20, 30));
}

TEST(TrafficIntervalTimerTest, InflationIsWeighedByTime) {
  TimedEdges edges;
  // Of a and b: 60 s, 3 times the longest, for 6 of 10 ns.
  const std::vector<TrafficInterval> traffic = {{0, 4, {0}}, {4, 10, {0, 1}}};
  EXPECT_THAT(MeanInflation(edges.timer(), traffic, edges.Time(traffic)), DoubleEq(2.2));
}

TEST(TrafficIntervalTimerTest, WithoutSnapshotsNothingIsInflated) {
  TimedEdges edges;
  EXPECT_EQ(MeanInflation(edges.timer(), {}, {}), 1);
}

TEST(TrafficIntervalTimerTest, ShapesAscendInCanonicalOrderWithinATopology) {
  std::vector<CommEdge> edges = {
      Edge(CollectiveKind::kAllGather, 8, {0, 1}), Edge(CollectiveKind::kAllReduce, 16, {0, 1}),
      Edge(CollectiveKind::kAllReduce, 8, {1, 0}), Edge(CollectiveKind::kAllReduce, 8, {0, 1}),
      Edge(CollectiveKind::kAllGather, 8, {0, 1}), Edge(CollectiveKind::kAllReduce, 8, {0, 1})};
  // Ids and names of groups make no difference, topologies do.
  edges[4].id = "another";
  edges[4].group_id = "tp";
  edges[5].topology_key = "pod";
  RecordingTiming timing;
  const TrafficIntervalTimer timer(timing, edges, /*threads=*/1);
  EXPECT_EQ(timer.shape_count(), 5u);
  EXPECT_THAT(timer.BatchMembers({0, 1, {0, 1, 2, 3, 4, 5}}), ElementsAre(3, 2, 1, 0, 4, 5));
}

}  // namespace
}  // namespace meridian
