#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/calls/control_flow.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/models/models.h"
#include "workload_model/testing/made_up_search.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Path = std::vector<int64_t>;

CallSequences Sequences(const std::vector<std::pair<WorkloadCell, Path>>& runs) {
  CallSequences sequences;
  for (const auto& [cell, path] : runs) sequences[cell].push_back(path);
  return sequences;
}

const FlowBranch& BranchOf(const ControlFlow& flow, int64_t callsite) {
  for (const FlowBranch& branch : flow.branches()) {
    if (branch.callsite() == callsite) return branch;
  }
  ADD_FAILURE() << "no branch of " << callsite;
  return flow.branches(0);
}

// A loop of sqrt n - 1 rounds, within one of three.
TEST(ControlFlowTest, LoopsOfKnownLengthAreFoundAgain) {
  const auto path = [](int64_t rounds) {
    Path result;
    for (int outer = 0; outer < 3; ++outer) {
      result.push_back(1);
      for (int64_t i = 0; i < rounds; ++i) result.push_back(2);
      result.push_back(3);
    }
    return result;
  };
  ASSERT_OK_AND_ASSIGN(
      const ControlFlow flow,
      LearnControlFlow(Sequences({{{4, 1}, path(1)}, {{9, 1}, path(2)}, {{16, 1}, path(3)}})));
  EXPECT_OK(CheckControlFlow(flow));
  for (int64_t q : {2, 3, 4, 7, 30}) {
    ASSERT_OK_AND_ASSIGN(const Path walked,
                         WalkControlFlow(flow, {static_cast<double>(q * q), 1}, 5, 1000));
    EXPECT_EQ(walked, path(q - 1)) << q;
  }
  EXPECT_EQ(flow.head(), 1);
  EXPECT_EQ(flow.last(), 3);
  EXPECT_THAT(WalkControlFlow(flow, {1e8, 1}, 5, 1000).status().message(),
              HasSubstr("not come to an end after 1000 calls"));
}

// Loops of all kinds, from few ranks: those that another rule would nearly explain, those that are run
// once, and those at whose end the run ends.
TEST(ControlFlowTest, TripCountsAreThoseOfTheCode) {
  const auto loop = [](int64_t outer, int64_t inner) {
    Path path;
    for (int64_t i = 0; i < outer; ++i) {
      path.push_back(1);
      for (int64_t j = 0; j < inner; ++j) path.push_back(2);
    }
    return path;
  };
  struct Case {
    const char* name;
    std::function<int64_t(double n, double s)> outer, inner;
    std::vector<double> nodes, sizes;
  };
  const auto number = [](int64_t value) { return [value](double, double) { return value; }; };
  const auto lg = [](double n, double) { return static_cast<int64_t>(std::log2(n)); };
  const auto half = [](double n, double) { return static_cast<int64_t>(n / 2); };
  const auto all = [](double n, double) { return static_cast<int64_t>(n); };
  const auto size = [](double, double s) { return static_cast<int64_t>(2 * s + 1); };
  for (const Case& c : {Case{"lg n", number(3), lg, {4, 8, 16}, {1}},
                        Case{"n / 2", number(3), half, {4, 8, 16}, {1}},
                        Case{"n, once", number(1), all, {4, 9, 16}, {1}},
                        Case{"2 s + 1, once", number(1), size, {4, 8}, {3, 5, 8}},
                        Case{"outer by size", size, number(2), {4, 8, 16}, {2, 3, 4}},
                        Case{"two levels", number(5), number(4), {4, 8}, {1}}}) {
    CallSequences sequences;
    for (double n : c.nodes) {
      for (double s : c.sizes) sequences[{n, s}].push_back(loop(c.outer(n, s), c.inner(n, s)));
    }
    ASSERT_OK_AND_ASSIGN(const ControlFlow flow, LearnControlFlow(sequences));
    ASSERT_OK_AND_ASSIGN(const Path walked, WalkControlFlow(flow, {64, 10}, 1, 100000));
    EXPECT_EQ(walked, loop(c.outer(64, 10), c.inner(64, 10))) << c.name;
  }
}

// Where 2 leads is told by what came two calls before it, and by no count of visits.
TEST(ControlFlowTest, WhatCameBeforeDecidesWhereNothingIsCounted) {
  Path path;
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto before = static_cast<int64_t>(random() % 3);
    for (int64_t callsite : {11 + before, int64_t{4}, int64_t{2}, 21 + before}) {
      path.push_back(callsite);
    }
  }
  ASSERT_OK_AND_ASSIGN(const ControlFlow flow, LearnControlFlow(Sequences({{{4, 1}, path}})));
  const FlowBranch& branch = BranchOf(flow, 2);
  ASSERT_THAT(branch.segments(), SizeIs(3));
  EXPECT_THAT(branch.segments(0).before(), ElementsAre(4, 11));
  ASSERT_THAT(branch.segments(0).choices(), SizeIs(1));
  EXPECT_EQ(branch.segments(0).choices(0).destination(), 21);
}

// The first two visits in an iteration are fixed, the third is drawn.
TEST(ControlFlowTest, DrawnBranchesKeepTheirShares) {
  CallSequences sequences;
  std::mt19937_64 random(7);
  for (double size : {10, 12, 14, 16}) {
    Path path;
    for (int i = 0; i < 400; ++i) {
      const bool again = random() % 1000 < 300;
      for (int64_t callsite : again ? Path{1, 2, 2, 2, 3} : Path{1, 2, 2, 3}) {
        path.push_back(callsite);
      }
    }
    sequences[{4, size}].push_back(path);
  }
  ASSERT_OK_AND_ASSIGN(const ControlFlow flow, LearnControlFlow(sequences));
  for (double size : {10, 13, 16}) {
    ASSERT_OK_AND_ASSIGN(const Path walked, WalkControlFlow(flow, {4, size}, 1, 100000));
    const auto rounds = static_cast<double>(std::count(walked.begin(), walked.end(), 1));
    const auto visits = static_cast<double>(std::count(walked.begin(), walked.end(), 2));
    EXPECT_NEAR(visits / rounds, 2.3, 0.1) << size;
    ASSERT_OK_AND_ASSIGN(const Path same, WalkControlFlow(flow, {4, size}, 1, 100000));
    EXPECT_EQ(walked, same);
  }
}

// What is random stays drawn, and runs that went the same way count each.
TEST(ControlFlowTest, NothingIsLearntByHeart) {
  std::mt19937_64 random(5);
  Path path = {1};
  for (int i = 0; i < 5000; ++i) path.push_back(1 + static_cast<int64_t>(random() % 20));
  ASSERT_OK_AND_ASSIGN(const ControlFlow flow, LearnControlFlow(Sequences({{{4, 1}, path}})));
  for (const FlowBranch& branch : flow.branches()) {
    EXPECT_LE(branch.segments_size(), 3) << branch.callsite();
  }
  CallSequences runs;
  for (int i = 0; i < 40; ++i) runs[{4, 1}].push_back(i < 36 ? Path{1, 2, 4} : Path{1, 3, 4});
  ASSERT_OK_AND_ASSIGN(const ControlFlow shares, LearnControlFlow(runs));
  const FlowBranch& first = BranchOf(shares, 1);
  ASSERT_THAT(first.segments(), SizeIs(1));
  EXPECT_NEAR(first.segments(0).choices(0).share(), 0.9, 1e-9);
}

TEST(ControlFlowTest, FlowsThatHandsMadeAreChecked) {
  ASSERT_OK_AND_ASSIGN(const ControlFlow good,
                       LearnControlFlow(Sequences({{{4, 1}, {1, 2, 1, 2, 1, 3}}})));
  EXPECT_OK(CheckControlFlow(good));
  ControlFlow bad = good;
  bad.set_first(7);
  EXPECT_THAT(CheckControlFlow(bad).message(), HasSubstr("begins at callsite 7"));
  bad = good;
  bad.mutable_branches(0)->mutable_segments(0)->clear_choices();
  EXPECT_THAT(CheckControlFlow(bad).message(), HasSubstr("without choices"));
  bad = good;
  *bad.add_branches() = bad.branches(0);
  EXPECT_THAT(CheckControlFlow(bad).message(), HasSubstr("twice"));
  // It leads to a callsite that it lacks.
  bad = good;
  bad.mutable_branches(2)->mutable_segments(0)->mutable_choices(0)->set_destination(99);
  EXPECT_THAT(WalkControlFlow(bad, {4, 1}, 1, 100).status().message(),
              HasSubstr("does not say how to go on at callsite 99"));
}

TEST(RankPatternsTest, NumbersOfRanks) {
  EXPECT_EQ(RanksOf("n", 16), 16);
  EXPECT_EQ(RanksOf("sqrt n", 16), 4);
  EXPECT_EQ(RanksOf("sqrt n", 8), std::nullopt);
  EXPECT_EQ(RanksOf("n/4", 16), 4);
  EXPECT_EQ(RanksOf("n/3", 16), std::nullopt);
  EXPECT_EQ(RanksOf("3", 16), 3);
  EXPECT_EQ(RanksOf("0", 16), std::nullopt);
  EXPECT_EQ(RanksOf("x", 16), std::nullopt);
  EXPECT_EQ(FindRanksExpression({{4, 2}, {9, 3}}), "sqrt n");
  EXPECT_EQ(FindRanksExpression({{4, 2}, {8, 2}}), "2");
  EXPECT_EQ(FindRanksExpression({{4, 2}, {8, 4}}), "n/2");
  EXPECT_EQ(FindRanksExpression({{4, 2}, {8, 5}}), std::nullopt);
}

TEST(RankPatternsTest, RulesOfPeers) {
  PeerRule ring;
  ring.set_kind("shift");
  ring.set_stride("1");
  ring.set_length("sqrt n");
  ring.set_wraps(true);
  ring.set_step(-1);
  EXPECT_EQ(TargetOf(ring, 4, 16, 0).rank, 7);
  EXPECT_EQ(SourceOf(ring, 7, 16, 0).rank, 4);
  EXPECT_FALSE(TargetOf(ring, 4, 8, 0).is_known);
  ring.set_wraps(false);
  EXPECT_TRUE(TargetOf(ring, 4, 16, 0).is_known);
  EXPECT_EQ(TargetOf(ring, 4, 16, 0).rank, std::nullopt);
  PeerRule doubling;
  doubling.set_kind("xor");
  doubling.set_step(-1);
  doubling.set_by_visit(1);
  EXPECT_EQ(TargetOf(doubling, 5, 8, 3).rank, 1);
  PeerRule transpose;
  transpose.set_kind("transpose");
  EXPECT_EQ(TargetOf(transpose, 1, 9, 0).rank, 3);
  PeerRule root;
  root.set_kind("rank");
  EXPECT_EQ(TargetOf(root, 5, 8, 0).rank, 0);
  EXPECT_FALSE(SourceOf(root, 0, 8, 0).is_known);
}

TEST(RankPatternsTest, GroupsAndPeersOfASearchAreFoundAgain) {
  const std::vector<RunMeasurements> runs = SearchesOf({2, 3, 4});
  std::vector<const RunMeasurements*> pointers;
  for (const RunMeasurements& run : runs) pointers.push_back(&run);
  const std::vector<CallsiteModel> callsites = LearnCallsites(pointers, true);
  ASSERT_THAT(callsites, SizeIs(9));
  const auto group = [&](size_t i) { return callsites[i].stride() + "; " + callsites[i].length(); };
  EXPECT_EQ(group(0), "1; n");
  EXPECT_EQ(group(1), "sqrt n; sqrt n");
  EXPECT_EQ(group(3), "1; sqrt n");
  EXPECT_EQ(callsites[2].peer().kind(), "transpose");
  EXPECT_EQ(callsites[4].peer().kind(), "shift");
  EXPECT_EQ(callsites[4].peer().step(), 1);
  EXPECT_EQ(callsites[4].peer().length(), "sqrt n");
  EXPECT_EQ(callsites[5].peer().by_visit(), 1);
  for (const CallsiteModel& callsite : callsites) EXPECT_EQ(callsite.unexplained(), "");
}

TEST(OperationTest, NamesOfCalls) {
  EXPECT_EQ(OperationOf("MPI_Allreduce").collective, CollectiveKind::kAllReduce);
  EXPECT_TRUE(OperationOf("MPI_Alltoall").is_per_member);
  EXPECT_TRUE(OperationOf("MPI_Iallreduce").is_asynchronous);
  EXPECT_EQ(OperationOf("MPI_Isend").kind, CallOperation::Kind::kSend);
  EXPECT_EQ(OperationOf("MPI_Comm_dup").kind, CallOperation::Kind::kLocal);
  EXPECT_EQ(OperationOf("ALL_GATHER").collective, CollectiveKind::kAllGather);
  EXPECT_EQ(OperationOf("RECV").kind, CallOperation::Kind::kReceive);
  EXPECT_EQ(OperationOf("MPI_Neighbor_alltoall").kind, CallOperation::Kind::kUnknown);
  EXPECT_EQ(OperationOf("").kind, CallOperation::Kind::kUnknown);
}

}  // namespace
}  // namespace meridian
