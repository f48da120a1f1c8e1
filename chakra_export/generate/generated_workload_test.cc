#include "chakra_export/generate/generated_workload.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
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

// Three computations in a row, of which the last also uses the first.
class Row : public GeneratedWorkload {
 public:
  int64_t rank_count() const override { return 2; }
  void AddRank(int64_t rank, RankProgram* program) const override {
    const NodeIndex first = program->Compute("first", {1, 1}, 10 + rank, {});
    program->Compute("second", {1, 1}, 20, {});
    program->Compute("third", {1, 1}, 30, {first});
  }
};

TEST(GeneratedWorkloadTest, TheGraphHasAllRanksAndNoEdgesThatOthersImply) {
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, BuildWorkloadGraph(Row()));
  ASSERT_EQ(graph.node_count(), 6u);
  EXPECT_THAT(graph.Ranks(), ElementsAre(0, 1));
  EXPECT_EQ(graph.duration_ns(3), 11);
  EXPECT_THAT(graph.dependencies(2), ElementsAre(1));
  EXPECT_THAT(graph.dependencies(5), ElementsAre(4));
  EXPECT_EQ(graph.dependency_count(), 4u);
}

// 2 TFLOPS are 2,000 operations in a nanosecond.
TEST(WorkCostTest, DurationIsOperationsAtASpeed) {
  EXPECT_EQ(DurationNs({6000000, 1}, 2), 3000);
  EXPECT_EQ(DurationNs({0, 1}, 2), 0);
}

TEST(WorkCostTest, DurationIsTheNearestNanosecond) {
  EXPECT_EQ(DurationNs({999, 1}, 2), 0);
  EXPECT_EQ(DurationNs({1001, 1}, 2), 1);
  EXPECT_EQ(DurationNs({2999, 1}, 2), 1);
  EXPECT_EQ(DurationNs({500, 1}, 0.5), 1);
}

class RankProgramTest : public ::testing::Test {
 protected:
  ExecutionGraphBuilder builder_;
  RankProgram program_{5, &builder_};
};

TEST_F(RankProgramTest, ComputationsWaitForTheOneBefore) {
  const NodeIndex a = program_.Compute("a", {1, 1}, 10, {});
  const NodeIndex b = program_.Compute("b", {1, 1}, 20, {});
  const ExecutionGraph graph = std::move(builder_).Build();
  EXPECT_THAT(graph.dependencies(a), IsEmpty());
  EXPECT_THAT(graph.dependencies(b), ElementsAre(a));
  EXPECT_THAT(graph.dependency_kinds(b), ElementsAre(EdgeKinds(EdgeKind::kStream)));
  EXPECT_EQ(graph.duration_ns(b), 20);
}

TEST_F(RankProgramTest, CollectivesAndSendsWaitForTheOneBeforeOfEither) {
  const GroupIndex group = program_.AddGroup({"2", {4, 5}});
  const NodeIndex a = program_.Collective("a", ChakraProtoMsg::ALL_GATHER, 4096, group, {});
  const NodeIndex compute = program_.Compute("compute", {1, 1}, 10, {});
  const NodeIndex b = program_.Send("b", {6, 100, 3}, {compute});
  const ExecutionGraph graph = std::move(builder_).Build();
  EXPECT_THAT(graph.dependencies(compute), IsEmpty());
  EXPECT_THAT(graph.dependencies(b), ElementsAre(a, compute));
  EXPECT_THAT(graph.dependency_kinds(b),
              ElementsAre(EdgeKinds(EdgeKind::kStream), EdgeKinds(EdgeKind::kData)));
  EXPECT_EQ(graph.communication(a)->type, ChakraProtoMsg::ALL_GATHER);
  EXPECT_EQ(graph.communication(a)->bytes, 4096);
  EXPECT_EQ(graph.groups()[graph.communication(a)->group].name, "2");
  EXPECT_EQ(graph.communication(b)->source, 5);
  EXPECT_EQ(graph.communication(b)->target, 6);
  EXPECT_EQ(graph.communication(b)->tag, 3);
}

TEST_F(RankProgramTest, ReceivesWaitForNothingButWhatTheyAreTold) {
  const NodeIndex a = program_.Receive("a", {4, 100, 3}, {});
  const NodeIndex b = program_.Receive("b", {6, 100, 4}, {});
  const NodeIndex c = program_.Receive("c", {4, 100, 5}, {a});
  const ExecutionGraph graph = std::move(builder_).Build();
  EXPECT_THAT(graph.dependencies(b), IsEmpty());
  EXPECT_THAT(graph.dependencies(c), ElementsAre(a));
  EXPECT_EQ(graph.communication(a)->source, 4);
  EXPECT_EQ(graph.communication(a)->target, 5);
  // From lower ranks on one stream, from higher ones on another, which overlap.
  EXPECT_EQ(graph.resource_index(a), graph.resource_index(c));
  EXPECT_NE(graph.resource_index(a), graph.resource_index(b));
}

TEST_F(RankProgramTest, KeepsWhatTheGraphDoesNot) {
  program_.Compute("a", {100, 7}, 10, {});
  program_.Compute("b", {200, 9}, 20, {});
  program_.Send("c", {6, 100, 3}, {});
  ASSERT_EQ(program_.costs().size(), 3u);
  EXPECT_EQ(program_.costs()[0].operations, 100);
  EXPECT_EQ(program_.costs()[0].bytes, 7);
  EXPECT_EQ(program_.costs()[2].operations, 0);
}

TEST_F(RankProgramTest, IdsOfEachRankCountFromOne) {
  program_.Compute("a", {1, 1}, 10, {});
  program_.Compute("b", {1, 1}, 10, {});
  RankProgram other(6, &builder_);
  const NodeIndex c = other.Compute("c", {1, 1}, 10, {});
  const ExecutionGraph graph = std::move(builder_).Build();
  EXPECT_EQ(graph.id(1), 2u);
  EXPECT_EQ(graph.id(c), 1u);
  EXPECT_EQ(graph.rank(c), 6);
  EXPECT_THAT(graph.dependencies(c), IsEmpty());
}

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(WorkloadLimitsTest, RangesIncludeTheirEnds) {
  EXPECT_OK(CheckRange("--x", 1, 1, 3));
  EXPECT_OK(CheckRange("--x", 3, 1, 3));
  EXPECT_THAT(CheckRange("--x", 0, 1, 3), StatusIs(kInvalid, "--x=0: expected 1 to 3"));
  EXPECT_THAT(CheckRange("--x", 4, 1, 3), StatusIs(kInvalid, "--x=4: expected 1 to 3"));
}

TEST(WorkloadLimitsTest, ASpeedIsAPositiveNumber) {
  EXPECT_OK(CheckTflops(0.001));
  EXPECT_OK(CheckTflops(1e5));
  for (const double tflops :
       {0.0, -1.0, 2e5, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(CheckTflops(tflops), StatusIs(kInvalid, HasSubstr("--tflops"))) << tflops;
  }
}

TEST(WorkloadLimitsTest, WhatDoesNotDivideIsToldWhatWould) {
  EXPECT_OK(CheckDivides("--layers", 12, "--pp=4", 4));
  EXPECT_THAT(CheckDivides("--layers", 10, "--pp=4", 4),
              StatusIs(kInvalid, "--layers=10 does not divide by --pp=4; 8 or 12 would"));
  EXPECT_THAT(CheckDivides("--layers", 3, "--pp=4", 4),
              StatusIs(kInvalid, "--layers=3 does not divide by --pp=4; 4 would"));
}

TEST(WorkloadLimitsTest, CountsHaveLimits) {
  EXPECT_OK(CheckCount(16384, "ranks", 16384, ""));
  EXPECT_THAT(
      CheckCount(16385, "ranks", 16384, "do x"),
      StatusIs(kInvalid, AllOf(HasSubstr("16,385 ranks"), HasSubstr("at most 16,384: do x"))));
  // More than 64 bits hold.
  EXPECT_THAT(CheckCount(absl::int128(1) << 80, "nodes", kMaxGeneratedNodes, "do x"),
              StatusIs(kInvalid, HasSubstr("9,223,372,036,854,775,807")));
  EXPECT_OK(CheckAllGatherBytes(64, ""));
  EXPECT_THAT(CheckAllGatherBytes(63, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("63 bytes"), HasSubstr(": do x"))));
}

TEST(WorkloadLimitsTest, ComputationEnds) {
  // 10^17 ns at 1,000 operations in each.
  EXPECT_OK(CheckComputation(absl::int128(9'000'000'000'000'000'000), 100, ""));
  EXPECT_THAT(CheckComputation(absl::int128(9'000'000'000'000'000'000), 0.01, "do x"),
              StatusIs(kInvalid, AllOf(HasSubstr("three years"), HasSubstr(": do x"))));
}

}  // namespace
}  // namespace meridian
