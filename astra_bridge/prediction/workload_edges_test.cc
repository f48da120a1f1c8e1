#include "astra_bridge/prediction/workload_edges.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

absl::StatusOr<WorkloadEdges> Find(WorkloadBuilder builder) {
  const ExecutionGraph graph = std::move(builder).Build();
  return FindWorkloadEdges(graph, CommunicationMatch(graph));
}

TEST(WorkloadEdgesTest, NamesEdgesByGroupAndCount) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1, 2});
  const GroupIndex pair = builder.Group("7", {2, 0});
  builder.CollectiveOnAll({0, 1, 2}, 1, world, 100);
  builder.CollectiveOnAll({0, 2}, 1, pair, 8, {}, ChakraProtoMsg::ALL_GATHER);
  builder.CollectiveOnAll({0, 1, 2}, 1, world, 200, {}, ChakraProtoMsg::REDUCE_SCATTER);
  builder.Send({1, 2}, 2, 64, 5);
  builder.Send({1, 2}, 2, 65, 5);
  builder.Receive({2, 2}, 1, 64, 5);
  builder.Receive({2, 2}, 1, 65, 5);
  ASSERT_OK_AND_ASSIGN(const WorkloadEdges found, Find(std::move(builder)));
  std::vector<std::string> texts;
  for (const CommEdge& edge : found.edges) texts.push_back(edge.id + " " + CanonicalText(edge));
  EXPECT_THAT(texts, ElementsAre("world#0 AR 100 0-2", "world#1 RS 200 0-2", "group 7#0 AG 8 2,0",
                                 "send 1>2 tag 5#0 P2P 64 1-2", "send 1>2 tag 5#1 P2P 65 1-2"));
  EXPECT_THAT(found.edge_of_instance, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.not_priced, IsEmpty());
}

TEST(WorkloadEdgesTest, LeavesOutWhatNoNetworkTimingKnows) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  builder.CollectiveOnAll({0, 1}, 1, world, 100, {}, ChakraProtoMsg::BROADCAST);
  builder.CollectiveOnAll({0, 1}, 1, world, 100);
  ASSERT_OK_AND_ASSIGN(const WorkloadEdges found, Find(std::move(builder)));
  // The broadcast counts in the names all the same.
  ASSERT_EQ(found.edges.size(), 1);
  EXPECT_EQ(found.edges[0].id, "world#1");
  EXPECT_THAT(found.edge_of_instance, ElementsAre(kNoCommEdge, 0));
  EXPECT_THAT(found.not_priced, ElementsAre(Pair("BROADCAST", 1)));
}

void ExpectRefused(WorkloadBuilder builder, const ::testing::Matcher<std::string>& message) {
  EXPECT_THAT(Find(std::move(builder)), StatusIs(absl::StatusCode::kInvalidArgument, message));
}

TEST(WorkloadEdgesTest, RefusesWhatCannotBeScheduled) {
  WorkloadBuilder silent;
  silent.Compute({0, 0}, 5);
  ExpectRefused(std::move(silent), HasSubstr("no node communicates"));

  WorkloadBuilder absent;
  absent.CollectiveOnAll({0, 1}, 1, absent.Group("3", {0, 1, 9}), 8);
  ExpectRefused(std::move(absent), AllOf(HasSubstr("rank 0 node 0"), HasSubstr("group \"3\""),
                                         HasSubstr("rank 9, which has no trace")));

  WorkloadBuilder nowhere;
  nowhere.Send({0, 0}, 4, 8, 0);
  ExpectRefused(std::move(nowhere), HasSubstr("sends to rank 4, which has no trace"));

  WorkloadBuilder nobody;
  nobody.Receive({0, 0}, 4, 8, 0);
  ExpectRefused(std::move(nobody), HasSubstr("receives from rank 4, which has no trace"));

  WorkloadBuilder itself;
  itself.Send({0, 0}, 0, 8, 0);
  itself.Receive({0, 0}, 0, 8, 0);
  ExpectRefused(std::move(itself), HasSubstr("sends to its own rank"));

  WorkloadBuilder once;
  const GroupIndex world = once.Group("", {0, 1});
  once.CollectiveOnAll({0, 1}, 1, world, 8);
  once.Collective({0, 1}, world, 8);
  ExpectRefused(std::move(once), AllOf(HasSubstr("rank 0 node 1"), HasSubstr("rank 1 has only 1"),
                                       HasSubstr("export all ranks of the same steps")));

  WorkloadBuilder different;
  const GroupIndex both = different.Group("", {0, 1});
  different.Collective({0, 1}, both, 8);
  different.Collective({1, 1}, both, 16);
  ExpectRefused(std::move(different), AllOf(HasSubstr("8 bytes"), HasSubstr("16 bytes")));
}

TEST(WorkloadEdgesTest, NamesThreeOfManyProblems) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  for (int i = 0; i < 5; ++i) {
    builder.Collective({0, 1}, world, 8);
    builder.Collective({1, 1}, world, 16);
  }
  ExpectRefused(std::move(builder), HasSubstr("and 2 more"));
}

}  // namespace
}  // namespace meridian
