#include "workload_model/call_workload.h"

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/callsite_graph.h"
#include "workload_model/control_flow.h"
#include "workload_model/ember_motif.h"
#include "workload_model/evaluated_flow.h"
#include "workload_model/rank_classes.h"
#include "workload_model/rank_patterns.h"
#include "workload_model/run_calls.h"
#include "workload_model/testing/made_up_search.h"
#include "workload_model/workload.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::Contains;
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

// The first two visits in an iteration are fixed, the third is drawn, and the share of it grows with
// the size.
TEST(ControlFlowTest, DrawnBranchesKeepTheirShares) {
  CallSequences sequences;
  std::mt19937_64 random(7);
  for (double size : {10, 12, 14, 16}) {
    Path path;
    for (int i = 0; i < 400; ++i) {
      const bool again = static_cast<double>(random() % 1000) < 100 * (size - 8);
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
    EXPECT_NEAR(visits / rounds, 2 + 0.1 * (size - 8), 0.1) << size;
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
  EXPECT_NEAR(first.segments(0).choices(0).share().coefficients(0), 0.9, 1e-9);
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

std::vector<RunMeasurements> SearchesOf(const std::vector<int64_t>& roots) {
  std::vector<RunMeasurements> runs;
  for (int64_t q : roots) {
    for (double size : {14, 16, 18}) {
      MadeUpSearch search;
      search.root_of_ranks = q;
      search.size = size;
      search.seed = static_cast<uint64_t>(q) * 100 + static_cast<uint64_t>(size);
      for (RunMeasurements& run : SearchRuns(search)) runs.push_back(std::move(run));
    }
  }
  return runs;
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

TEST(RankClassesTest, RanksThatCallOtherwiseAreAClass) {
  std::vector<RunMeasurements> runs;
  for (int64_t rank = 0; rank < 4; ++rank) {
    RunName name;
    name.cell.nodes = 4;
    name.rank = rank;
    std::vector<TracedCall> calls(2);
    calls[0].destination = 1;
    calls[1].source = 1;
    calls[1].destination = rank == 0 ? 3 : 2;
    runs.push_back(*MeasureCalls(calls, "a", name));
  }
  std::vector<std::string> notes;
  EXPECT_EQ(ClassifyRanks(&runs, &notes), "first");
  EXPECT_EQ(runs[0].cell.kind.rank_class, "first");
  EXPECT_EQ(runs[3].cell.kind.rank_class, "others");
  EXPECT_THAT(notes, SizeIs(0));
  // Ranks 0 and 1 alike, 2 and 3 not.
  runs[1].calls[1].destination = 3;
  EXPECT_EQ(ClassifyRanks(&runs, &notes), std::nullopt);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("ranks of one run make different calls")));
  EXPECT_EQ(RankClassOf("diagonal", 4, 9), "diagonal");
  EXPECT_EQ(RankClassOf("diagonal", 4, 8), std::nullopt);
  EXPECT_EQ(RankClassOf("ends", 7, 8), "last");
}

TEST(RankClassesTest, RanksThatComputeLongerAreAClass) {
  std::vector<RunMeasurements> runs = SearchesOf({3});
  std::vector<std::string> notes;
  EXPECT_EQ(ClassifyRanks(&runs, &notes), "all");
  for (RunMeasurements& run : runs) {
    for (auto& [transition, values] : run.computes) {
      for (double& value : values) value *= run.rank % 4 == 0 ? 2 : 1;
    }
  }
  EXPECT_EQ(ClassifyRanks(&runs, &notes), "diagonal");
}

TEST(CallsiteGraphTest, CountsAndCommunicators) {
  MadeUpSearch search;
  search.roots = 3;
  const CallsiteGraph graph = MakeCallsiteGraph(SearchRuns(search));
  EXPECT_EQ(graph.runs(), 4);
  ASSERT_THAT(graph.callsites(), SizeIs(9));
  EXPECT_EQ(graph.callsites(0).calls(), 3 * 4);
  EXPECT_EQ(graph.callsites(0).operation(), "MPI_Allreduce");
  EXPECT_EQ(graph.callsites(0).bytes().median(), 8);
  EXPECT_THAT(graph.callsites(0).communicators(), ElementsAre(0));
  EXPECT_THAT(graph.communicators(0).ranks(), ElementsAre(0, 1, 2, 3));
  // Rows and columns of 2 x 2 ranks, and all.
  EXPECT_THAT(graph.communicators(), SizeIs(5));
  for (const CallsiteTransition& edge : graph.transitions()) {
    if (edge.source() != 1) continue;
    EXPECT_EQ(edge.destination(), 2);
    EXPECT_EQ(edge.count(), 3 * 4);
    EXPECT_EQ(edge.us().median(), 15 + 16);
    EXPECT_EQ(edge.us().deviation(), 0);
  }
  EXPECT_THAT(CallsiteGraphDot(graph), HasSubstr("1 -> 2 [label=\"12 x 31.0 us\""));
}

class CallWorkloadTest : public testing::Test {
 protected:
  std::string Prefix() const { return directory_.path() + "/et/large"; }

  TemporaryDirectory directory_;
};

// Measured on 4, 9 and 16 ranks, generated for 256: calls, groups and peers are those of the code.
TEST_F(CallWorkloadTest, ASearchIsGeneratedForMoreRanks) {
  WorkloadFitOptions fit;
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3, 4}), fit));
  ASSERT_OK_AND_ASSIGN(const WorkloadModel read, ParseWorkloadModel(ReportToJson(model), "M.json"));
  GenerateOptions options;
  options.cell = {256, 20};
  ASSERT_OK_AND_ASSIGN(const CallWorkloadReport report,
                       GenerateWorkload(FileSystem::Posix(), read, Prefix(), options));
  EXPECT_EQ(report.ranks(), 256);
  ASSERT_OK_AND_ASSIGN(const EtFiles files, FindEtFiles(FileSystem::Posix(), Prefix()));
  EtGraphReaderOptions reader;
  ASSERT_OK_AND_ASSIGN(reader.groups,
                       ReadCommGroups(FileSystem::Posix(), CommGroupsPath(Prefix())));
  // 16 rows and 16 columns.
  EXPECT_THAT(reader.groups, SizeIs(32));
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, ReadEtGraph(FileSystem::Posix(), files, reader));
  EXPECT_THAT(CommunicationMatch(graph).problems(), SizeIs(0));
  // What the code itself does with as many levels.
  int64_t levels = 0, sends = 0, transposes = 0;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* communication = graph.communication(node);
    if (communication == nullptr || graph.rank(node) != 33) continue;
    const std::string name(graph.name(node));
    levels += name == "MPI_Allreduce at 8" ? 1 : 0;
    if (name == "MPI_Alltoall at 7") {
      // 4 bytes for each of 16.
      EXPECT_EQ(communication->bytes, 64);
      EXPECT_EQ(graph.groups()[communication->group].ranks.front(), 32);
      EXPECT_THAT(graph.groups()[communication->group].ranks, SizeIs(16));
    }
    if (communication->source != 33) continue;
    sends += name == "MPI_Sendrecv at 6" ? 1 : 0;
    if (name == "MPI_Sendrecv at 3") {
      ++transposes;
      EXPECT_EQ(communication->target, 18);
    }
  }
  EXPECT_EQ(transposes, 20);
  EXPECT_EQ(sends, 15 * levels);
  EXPECT_NEAR(static_cast<double>(levels), 54, 8);
  // The largest measured cell, generated again.
  ASSERT_THAT(report.self_check(), SizeIs(1));
  const SelfCheck& check = report.self_check(0);
  EXPECT_EQ(check.nodes(), 16);
  EXPECT_NEAR(check.calls() / check.measured_calls(), 1, 0.1);
  EXPECT_NEAR(check.us() / check.measured_us(), 1, 0.12);
  EXPECT_NEAR(check.bytes() / check.measured_bytes(), 1, 0.15);
}

TEST_F(CallWorkloadTest, WhatCanNotBeGeneratedIsRefused) {
  WorkloadFitOptions fit;
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3}), fit));
  GenerateOptions options;
  options.cell = {8, 16};
  const auto refusal = [&](const WorkloadModel& of) {
    return std::string(
        GenerateWorkload(FileSystem::Posix(), of, Prefix(), options).status().message());
  };
  EXPECT_THAT(refusal(model), HasSubstr("there are none of 8 ranks"));
  options.cell = {2.5, 16};
  EXPECT_THAT(refusal(model), HasSubstr("expected a whole number"));
  options.cell = {9, 16};
  WorkloadModel without = model;
  without.clear_flows();
  EXPECT_THAT(refusal(without), HasSubstr("the model has no control flow"));
  options.cell.kind.threads = 4;
  EXPECT_THAT(refusal(model), HasSubstr("no model of 4 threads"));
  options.cell.kind.threads = 1;
  without = model;
  without.mutable_flows(0)->mutable_callsites(3)->set_unexplained("hidden");
  EXPECT_THAT(refusal(without), HasSubstr("callsite 4 (MPI_Bcast) can not be generated: hidden"));
}

// Coefficients are finite, but infinity less infinity is no number; neither traces nor motifs hold it.
TEST_F(CallWorkloadTest, WhatIsNoNumberIsNotGenerated) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3}), {}));
  const auto expect_refusal = [&](const std::function<Model*(WorkloadModel*)>& part,
                                  const char* reason) {
    WorkloadModel changed = model;
    Model* no_number = part(&changed);
    no_number->Clear();
    no_number->set_type("BILINEAR");
    for (const double coefficient : {1e308, -1e308, 0.0, 0.0}) {
      no_number->add_coefficients(coefficient);
    }
    GenerateOptions options;
    options.cell = {9, 16};
    EXPECT_THAT(
        GenerateWorkload(FileSystem::Posix(), changed, Prefix(), options).status().message(),
        HasSubstr(reason));
    EXPECT_THAT(MakeEmberMotif(changed, options.cell, 7, "Search").status().message(),
                HasSubstr(reason));
  };
  const char* const kOfACall = "is no finite number for 9 nodes and size 16";
  expect_refusal([](auto* m) { return m->mutable_models(0)->mutable_value(); }, kOfACall);
  expect_refusal([](auto* m) { return m->mutable_models(0)->mutable_first(); }, kOfACall);
  expect_refusal([](auto* m) { return m->mutable_models(0)->mutable_compute(); }, kOfACall);
  expect_refusal([](auto* m) { return m->mutable_messages(0)->mutable_value(); }, kOfACall);
  expect_refusal([](auto* m) { return m->mutable_flows(0)->mutable_iterations(); },
                 "the number of iterations is no finite number");
  expect_refusal(
      [](auto* m) {
        return m->mutable_flows(0)->mutable_branches(0)->mutable_segments(0)->mutable_visits();
      },
      "how the control flow goes on at callsite");
}

// Sends and receives of their own, which traces do not pair: halos of a row that is no ring.
TEST_F(CallWorkloadTest, ReceivesAreFedByWhatWasSent) {
  std::vector<RunMeasurements> runs;
  for (int64_t ranks : {4, 6}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::string trace;
      int last = 0;
      for (int step = 0; step < 5; ++step) {
        for (int callsite = 1; callsite <= 3; ++callsite) {
          const std::string call = callsite == 1 ? "MPI_Irecv "
                                   : callsite == 2
                                       ? absl::StrCat("MPI_Isend p2p 512 to ", (rank + 1) % ranks,
                                                      ":", (rank + 1) % ranks)
                                       : "MPI_Waitall ";
          absl::StrAppend(&trace, "TRACE ", last, " -> ", callsite, " 10.0 ", call, "\n");
          last = callsite;
        }
      }
      RunName name;
      name.cell.nodes = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "halo", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(runs, {}));
  GenerateOptions options;
  options.cell = {10, 0};
  ASSERT_OK_AND_ASSIGN(const CallWorkloadReport report,
                       GenerateWorkload(FileSystem::Posix(), model, Prefix(), options));
  ASSERT_THAT(report.traffic(), SizeIs(2));
  EXPECT_EQ(report.traffic(0).nodes(), 10 * 5);
  EXPECT_EQ(report.traffic(1).nodes(), 10 * 5);
  EXPECT_FALSE(report.has_replayed_us());
  EXPECT_THAT(report.notes(), Contains(HasSubstr("nobody measured how long calls took")));
  // What was generated is read back as the same calls.
  ASSERT_OK_AND_ASSIGN(const EtFiles files, FindEtFiles(FileSystem::Posix(), Prefix()));
  EXPECT_THAT(files.files, SizeIs(10));
  EXPECT_THAT(ReadRunCalls(FileSystem::Posix(), Prefix(), "job", 1).status().message(),
              HasSubstr("does not say when it ran"));
}

// Halos of an open row: those at its ends have one neighbour, and call less.
TEST_F(CallWorkloadTest, ReceivesOfHalosGetWhatTheirNeighboursSent) {
  std::vector<RunMeasurements> runs;
  for (int64_t ranks : {4, 8}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::string trace;
      int last = 0;
      const auto call = [&](int callsite, const std::string& what) {
        absl::StrAppend(&trace, "TRACE ", last, " -> ", callsite, " 10.0 ", what, "\n");
        last = callsite;
      };
      for (int step = 0; step < 20; ++step) {
        int callsite = 0;
        for (int64_t peer : {rank - 1, rank + 1}) {
          if (peer >= 0 && peer < ranks) call(++callsite, "MPI_Irecv ");
        }
        for (int64_t peer : {rank - 1, rank + 1}) {
          if (peer < 0 || peer >= ranks) continue;
          call(++callsite, absl::StrCat("MPI_Isend p2p 512 to ", peer, ":", peer));
        }
        call(++callsite, "MPI_Waitall ");
      }
      RunName name;
      name.cell.nodes = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "halo", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(runs, {}));
  EXPECT_EQ(model.rank_classes(), "ends");
  GenerateOptions options;
  options.cell = {16, 0};
  ASSERT_OK(GenerateWorkload(FileSystem::Posix(), model, Prefix(), options).status());
  ASSERT_OK_AND_ASSIGN(const EtFiles files, FindEtFiles(FileSystem::Posix(), Prefix()));
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, ReadEtGraph(FileSystem::Posix(), files, {}));
  std::map<int64_t, int> received;
  int waits = 0;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) != 1) continue;
    const Communication* communication = graph.communication(node);
    if (communication == nullptr) continue;
    if (communication->target == 1) ++received[communication->source];
    // Of each step one from either side.
    if (communication->source == 1 && communication->target == 2) {
      ++waits;
      EXPECT_EQ(received[0], waits);
      EXPECT_EQ(received[2], waits);
    }
  }
  EXPECT_EQ(waits, 20);
}

TEST_F(CallWorkloadTest, WhatWasNotMeasuredIsNotMadeUp) {
  GenerateOptions options;
  options.cell = {16, 16};
  const auto refusal = [&](const std::vector<RunMeasurements>& runs) {
    const absl::StatusOr<WorkloadModel> model = FitRuns(runs, {});
    if (!model.ok()) return std::string(model.status().message());
    return std::string(
        GenerateWorkload(FileSystem::Posix(), *model, Prefix(), options).status().message());
  };
  // One number of ranks.
  EXPECT_THAT(refusal(SearchesOf({2})), HasSubstr("was measured on 4 ranks only"));
  // One rank of each run.
  std::vector<RunMeasurements> first;
  for (RunMeasurements& run : SearchesOf({2, 3})) {
    if (run.rank == 0) first.push_back(std::move(run));
  }
  EXPECT_THAT(refusal(first), HasSubstr("not all ranks were traced"));
  // An operation that nobody knows.
  std::vector<RunMeasurements> unknown = SearchesOf({2, 3});
  for (RunMeasurements& run : unknown) {
    for (TracedCall& call : run.calls) {
      if (call.destination == 4) call.operation = "MPI_Neighbor_alltoall";
    }
  }
  EXPECT_THAT(refusal(unknown), HasSubstr("what it does is not known here"));
  // A size that is no number of anything any more.
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3}), {}));
  options.cell = {9, 500};
  EXPECT_FALSE(GenerateWorkload(FileSystem::Posix(), model, Prefix(), options).ok());
}

TEST(EmberMotifTest, AMotifIsASwitchOverCallsites) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3, 4}), {}));
  ASSERT_OK_AND_ASSIGN(const EmberMotif motif, MakeEmberMotif(model, {256, 20}, 7, "Search"));
  EXPECT_THAT(motif.source, HasSubstr("class EmberSearchGenerator"));
  EXPECT_THAT(motif.source, HasSubstr("AddRow(1, 16);"));
  EXPECT_THAT(motif.source, HasSubstr("AddRow(16, 16);"));
  EXPECT_THAT(motif.source, HasSubstr("enQ_alltoall(evQ, nullptr, 4, CHAR, nullptr, 4, CHAR, "));
  EXPECT_THAT(motif.source, HasSubstr("Transposed(16)"));
  EXPECT_THAT(motif.source, HasSubstr("if (visits_[6] <= 14) {"));
  EXPECT_THAT(motif.source, HasSubstr("random_.nextUniform()"));
  EXPECT_THAT(motif.source, testing::Not(HasSubstr("$")));
  EXPECT_THAT(motif.sdl, HasSubstr("job.addMotif(\"Search seed=7\")"));
  EXPECT_THAT(motif.sdl, HasSubstr("EmberMPIJob(0, 256, 1)"));
  EXPECT_THAT(MakeEmberMotif(model, {8, 20}, 7, "Search").status().message(),
              HasSubstr("there are none of 8 ranks"));
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
