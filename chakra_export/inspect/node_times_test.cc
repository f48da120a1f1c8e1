#include "chakra_export/inspect/node_times.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kEnd = 30;

// Computation of one rank, on a stream each.
class Graph {
 public:
  NodeIndex Add(int64_t start_ns, int64_t duration_ns) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = "kernel";
    node.resource =
        builder_.AddResource({0, ResourceKind::kStream, static_cast<int64_t>(last_id_)});
    node.start_ns = start_ns;
    node.duration_ns = duration_ns;
    return builder_.AddNode(node);
  }

  // A rank's part of an all-reduce of both ranks.
  NodeIndex AddAllReduce(int64_t rank, const std::string& group) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = "all-reduce";
    node.type = ChakraProtoMsg::COMM_COLL_NODE;
    node.resource = builder_.AddResource({rank, ResourceKind::kCommunication, 0});
    node.duration_ns = 100;
    node.communication.emplace();
    node.communication->bytes = 64;
    node.communication->group = builder_.AddGroup({group, {0, 1}});
    return builder_.AddNode(node);
  }

  void AddDependency(NodeIndex node, NodeIndex source) {
    builder_.AddDependency(node, source, EdgeKind::kData);
  }

  ExecutionGraph Build() { return std::move(builder_).Build(); }

 private:
  ExecutionGraphBuilder builder_;
  uint64_t last_id_ = 0;
};

std::vector<std::pair<int64_t, int64_t>> Intervals(const NodeTimes& times) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const TimeInterval& interval : times.intervals) {
    intervals.emplace_back(interval.start_ns, interval.end_ns);
  }
  return intervals;
}

TEST(NodeTimesTest, StartsAreKnownWhenEveryNodeThatTookTimeHasOne) {
  Graph all;
  all.Add(1000, 5);
  all.Add(kNoTimeNs, 0);
  EXPECT_TRUE(HasStartTimes(all.Build()));

  Graph some;
  some.Add(1000, 5);
  some.Add(kNoTimeNs, 1);
  EXPECT_FALSE(HasStartTimes(some.Build()));

  Graph none;
  none.Add(kNoTimeNs, 0);
  EXPECT_FALSE(HasStartTimes(none.Build()));
  EXPECT_FALSE(HasStartTimes(Graph().Build()));
}

TEST(NodeTimesTest, MeasuredTimesAreThoseOfTheTrace) {
  Graph graph;
  graph.Add(1000, 5);
  graph.Add(kNoTimeNs, 0);
  graph.Add(900, 0);
  const NodeTimes times = MeasuredTimes(graph.Build());
  EXPECT_TRUE(times.measured);
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_THAT(Intervals(times), ElementsAre(Pair(1000, 1005), Pair(0, 0), Pair(900, 900)));
}

// Three kernels on streams of their own: a simulator has one place for them.
TEST(NodeTimesTest, ASimulatorRunsOneComputationOfARankAtATime) {
  Graph graph;
  const NodeIndex first = graph.Add(kNoTimeNs, 30);
  const NodeIndex second = graph.Add(kNoTimeNs, 20);
  const NodeIndex third = graph.Add(kNoTimeNs, 10);
  graph.AddDependency(second, third);
  const ExecutionGraph built = graph.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay,
                       ReplayAsSimulator(built, CommunicationMatch(built)));
  const NodeTimes times = ReplayedTimes(replay);
  EXPECT_FALSE(times.measured);
  // The first of those that wait for nothing, then the third, which the second waits for.
  EXPECT_EQ(times.intervals[first].start_ns, 0);
  EXPECT_EQ(times.intervals[third].start_ns, 30);
  EXPECT_EQ(times.intervals[third].end_ns, 40);
  EXPECT_EQ(times.intervals[second].start_ns, 40);
  EXPECT_EQ(times.intervals[second].end_ns, 60);
}

// Each rank begins with the all-reduce that the other one keeps for later.
TEST(NodeTimesTest, ASimulatorThatCannotGoOnIsAnError) {
  Graph graph;
  const NodeIndex a0 = graph.AddAllReduce(0, "1");
  const NodeIndex b0 = graph.AddAllReduce(0, "2");
  const NodeIndex b1 = graph.AddAllReduce(1, "2");
  const NodeIndex a1 = graph.AddAllReduce(1, "1");
  graph.AddDependency(b0, a0);
  graph.AddDependency(a1, b1);
  const ExecutionGraph built = graph.Build();
  const CommunicationMatch match(built);
  ASSERT_TRUE(match.problems().empty());
  EXPECT_THAT(ReplayAsSimulator(built, match),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("deadlock")));
}

// Which nanoseconds the intervals cover.
std::vector<bool> Covered(const std::vector<TimeInterval>& intervals) {
  std::vector<bool> covered(kEnd, false);
  for (const TimeInterval& interval : intervals) {
    for (int64_t t = interval.start_ns; t < interval.end_ns; ++t) covered[t] = true;
  }
  return covered;
}

std::vector<TimeInterval> RandomIntervals(std::mt19937_64& random) {
  std::vector<TimeInterval> intervals;
  for (uint64_t n = random() % 8; n > 0; --n) {
    const int64_t start_ns = static_cast<int64_t>(random() % kEnd);
    const int64_t length_ns = static_cast<int64_t>(random() % (kEnd - start_ns));
    intervals.push_back({start_ns, start_ns + length_ns});
  }
  return intervals;
}

TEST(IntervalUnionTest, TouchingIntervalsBecomeOne) {
  const std::vector<TimeInterval> united = UnionOf({{5, 7}, {1, 3}, {3, 4}, {6, 9}, {2, 2}});
  ASSERT_EQ(united.size(), 2);
  EXPECT_EQ(united[0].start_ns, 1);
  EXPECT_EQ(united[0].end_ns, 4);
  EXPECT_EQ(united[1].end_ns, 9);
  EXPECT_EQ(TotalNs(united), 3 + 4);
  EXPECT_THAT(UnionOf({{4, 4}}), IsEmpty());
}

TEST(IntervalUnionTest, AgreesWithCountingNanoseconds) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::vector<TimeInterval> a = RandomIntervals(random);
    const std::vector<TimeInterval> b = RandomIntervals(random);
    const std::vector<bool> in_a = Covered(a);
    const std::vector<bool> in_b = Covered(b);
    int64_t total = 0;
    int64_t both = 0;
    for (int64_t t = 0; t < kEnd; ++t) {
      total += in_a[t];
      both += in_a[t] && in_b[t];
    }
    EXPECT_EQ(TotalNs(UnionOf(a)), total);
    EXPECT_EQ(OverlapNs(UnionOf(a), UnionOf(b)), both);
  }
}

}  // namespace
}  // namespace meridian
