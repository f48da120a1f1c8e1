#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/generate/call_workload.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/measurements/measured_runs.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/testing/made_up_search.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CallWorkloadTest : public testing::Test {
 protected:
  std::string Prefix() const { return directory_.path() + "/et/large"; }

  TemporaryDirectory directory_;
};

// Measured on 4, 9 and 16 ranks, generated for 256: calls, groups and peers are those of the code.
TEST_F(CallWorkloadTest, ASearchIsGeneratedForMoreRanks) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3, 4})));
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
}

TEST_F(CallWorkloadTest, WhatCannotBeGeneratedIsRefused) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3})));
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
  EXPECT_THAT(refusal(without), HasSubstr("callsite 4 (MPI_Bcast) cannot be generated: hidden"));
}

// Coefficients are finite, but infinity less infinity is no number; neither traces nor motifs hold it.
TEST_F(CallWorkloadTest, WhatIsNoNumberIsNotGenerated) {
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3})));
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
    EXPECT_THAT(MakeEmberMotif(changed, options.cell, "Search").status().message(),
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
      name.cell.machines = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "halo", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(runs));
  GenerateOptions options;
  options.cell = {10, 0};
  ASSERT_OK_AND_ASSIGN(const CallWorkloadReport report,
                       GenerateWorkload(FileSystem::Posix(), model, Prefix(), options));
  // Of each rank and step a send and a receive, and computation before them.
  EXPECT_GE(report.trace_nodes(), 2 * 10 * 5);
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
      name.cell.machines = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "halo", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(runs));
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

// Runs of 2 and 4 ranks that take 5 ms to come from a callsite to the first call, then 20 iterations.
std::vector<RunMeasurements> RunsWithAPrologue(int64_t start) {
  std::vector<RunMeasurements> runs;
  for (int64_t ranks : {2, 4}) {
    const std::string call =
        absl::StrCat(" MPI_Allreduce coll 0xc4 64 to 0 1", ranks == 4 ? " 2 3\n" : "\n");
    std::string trace = absl::StrCat("TRACE ", start, " -> 2 5000.0", call);
    for (int i = 0; i < 20; ++i) {
      absl::StrAppend(&trace, i > 0 ? absl::StrCat("TRACE 3 -> 2 200.0", call) : "",
                      "TRACE 2 -> 3 100.0", call);
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      RunName name;
      name.cell.machines = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "prologue", name));
    }
  }
  return runs;
}

// What was generated computes as long as evaluate says.
TEST_F(CallWorkloadTest, TheWayToTheFirstCallIsGenerated) {
  GenerateOptions options;
  options.cell = {8, 0};
  for (const auto& [start, total_us] : {std::pair<int64_t, double>{1, 10800}, {0, 5800}}) {
    ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(RunsWithAPrologue(start)));
    EXPECT_EQ(model.flows(0).start(), start);
    ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation evaluation,
                         EvaluateWorkload(model, options.cell));
    EXPECT_NEAR(evaluation.total_us(), total_us, 1);
    ASSERT_OK_AND_ASSIGN(const CallWorkloadReport report,
                         GenerateWorkload(FileSystem::Posix(), model, Prefix(), options));
    EXPECT_NEAR(report.compute_us(), total_us, 1);
  }
  // Not known where runs do not agree.
  std::vector<RunMeasurements> runs = RunsWithAPrologue(1);
  for (RunMeasurements& run : RunsWithAPrologue(0)) runs.push_back(std::move(run));
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(std::move(runs)));
  EXPECT_EQ(model.flows(0).start(), 0);
  EXPECT_THAT(model.notes(), Contains(HasSubstr("come to their first call from different "
                                                "callsites (0, 1)")));
}

// The first rank computes for 105 us, the others for 10 us, and wait for it in a call that takes 10 us.
TEST_F(CallWorkloadTest, WaitsForOtherClassesAreNotCountedTwice) {
  std::vector<RunMeasurements> runs;
  for (int64_t ranks : {2, 4}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<TracedCall> calls;
      const auto add = [&](int64_t callsite, const char* operation, double us, double call_us) {
        TracedCall& call = calls.emplace_back();
        call.source = calls.size() > 1 ? calls[calls.size() - 2].destination : 0;
        call.destination = callsite;
        call.us = us;
        call.operation = operation;
        call.call_us = call_us;
        for (int64_t i = 0; i < ranks && callsite == 1; ++i) call.members.push_back(i);
      };
      for (int step = 0; step < 20; ++step) {
        add(1, "MPI_Allreduce", rank == 0 ? 110 : 115, rank == 0 ? 10 : 105);
        if (rank == 0) add(2, "MPI_Comm_free", 5, 0);
      }
      RunName name;
      name.cell.machines = static_cast<double>(ranks);
      name.rank = rank;
      runs.push_back(*MeasureCalls(std::move(calls), "late", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(runs));
  EXPECT_EQ(model.rank_classes(), "first");
  GenerateOptions options;
  options.cell = {4, 0};
  ASSERT_OK_AND_ASSIGN(const CallWorkloadReport report,
                       GenerateWorkload(FileSystem::Posix(), model, Prefix(), options));
  // All but the first call, of whose computation nothing is known, take 115 us.
  EXPECT_NEAR(report.replayed_us(), 10 + 19 * 115, 6);
}

TEST_F(CallWorkloadTest, WhatWasNotMeasuredIsNotMadeUp) {
  GenerateOptions options;
  options.cell = {16, 16};
  const auto refusal = [&](const std::vector<RunMeasurements>& runs) {
    const absl::StatusOr<WorkloadModel> model = FitRuns(runs);
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
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(SearchesOf({2, 3})));
  options.cell = {9, 500};
  EXPECT_FALSE(GenerateWorkload(FileSystem::Posix(), model, Prefix(), options).ok());
}

// 20 barriers that come ever later, by half of the mean from the first to the last.
TEST_F(CallWorkloadTest, TimesDriftAsTheyDidWithinMeasuredRuns) {
  std::vector<RunMeasurements> runs;
  for (const int ranks : {2, 3, 4}) {
    std::string members = "MPI_Barrier coll 0x4 0 to";
    for (int rank = 0; rank < ranks; ++rank) absl::StrAppend(&members, " ", rank);
    std::string trace = absl::StrCat("TRACE 0 -> 1 1e15 ", members, "\n");
    for (int i = 0; i < 21; ++i) {
      const double us = i == 0 ? 500 : 100 * (1 + 0.5 * ((i - 0.5) / 20 - 0.5));
      absl::StrAppend(&trace, "TRACE 1 -> 1 ", us, " ", members, "\n");
    }
    for (int rank = 0; rank < ranks; ++rank) {
      RunName name;
      name.cell.machines = ranks;
      name.rank = rank;
      runs.push_back(*ParseMeasurements(trace, "drift", name));
    }
  }
  ASSERT_OK_AND_ASSIGN(const WorkloadModel model, FitRuns(std::move(runs)));
  ASSERT_EQ(model.models_size(), 1);
  EXPECT_NEAR(model.models(0).drift(), 0.5, 0.02);
  EXPECT_THAT(model.notes(),
              testing::Contains(HasSubstr("times of 1 transition drift within a run")));
  const ControlFlow& flow = model.flows(0);
  ASSERT_OK_AND_ASSIGN(EvaluatedFlow evaluated, EvaluateFlow(model, flow, {2, 0}));
  ASSERT_OK_AND_ASSIGN(const ClassCalls calls, WalkClass(std::move(evaluated)));
  ASSERT_EQ(calls.visits.size(), 22u);
  EXPECT_EQ(calls.visits[1].compute_ns, 500000);
  EXPECT_NEAR(static_cast<double>(calls.visits[2].compute_ns), 76250, 1000);
  EXPECT_NEAR(static_cast<double>(calls.visits[21].compute_ns), 123750, 1000);
  // The mean stays.
  EXPECT_NEAR(calls.ComputeUs(), 500 + 20 * 100, 1);
}

TEST(EmberMotifTest, AMotifIsASwitchOverCallsites) {
  ASSERT_OK_AND_ASSIGN(WorkloadModel model, FitRuns(SearchesOf({2, 3, 4})));
  Model& polynomial = *model.mutable_messages(0)->mutable_value();
  polynomial.Clear();
  polynomial.set_type("POLYNOMIAL");
  for (const char* const term : {"0,0", "2,1"}) polynomial.add_terms(term);
  for (const double coefficient : {8.0, 0.25}) polynomial.add_coefficients(coefficient);
  ASSERT_OK_AND_ASSIGN(const EmberMotif motif, MakeEmberMotif(model, {256, 20}, "Search"));
  EXPECT_THAT(motif.msg_model, HasSubstr("\n1 1 POLYNOMIAL 0 0 8 2 1 0.25\n"));
  EXPECT_THAT(motif.source, HasSubstr("class EmberSearchGenerator"));
  EXPECT_THAT(motif.source, HasSubstr("AddRow(1, Root());"));
  EXPECT_THAT(motif.source, HasSubstr("AddRow(Root(), Root());"));
  EXPECT_THAT(motif.source, HasSubstr("Transposed()"));
  EXPECT_THAT(motif.source, HasSubstr("if (visits_[6] <= Whole("));
  EXPECT_THAT(motif.source, HasSubstr("random_.nextUniform()"));
  EXPECT_THAT(motif.exec_model, HasSubstr("\n1 2 1 FIRST "));
  EXPECT_THAT(motif.msg_model, HasSubstr("\n7 1 CONSTANT 4\n"));
  EXPECT_THAT(motif.source, testing::Not(HasSubstr("$")));
  EXPECT_THAT(motif.sdl,
              HasSubstr("job.addMotif(\"Search seed=1 size=20 exec_model=Search.exec.model "));
  EXPECT_THAT(motif.sdl, HasSubstr("EmberMPIJob(0, 256, 1)"));
  EXPECT_THAT(MakeEmberMotif(model, {8, 20}, "Search").status().message(),
              HasSubstr("there are none of 8 ranks"));
  // Ember cannot begin a collective and wait for it later.
  for (CallsiteModel& callsite : *model.mutable_flows(0)->mutable_callsites()) {
    if (callsite.operation() == "MPI_Allreduce") callsite.set_operation("MPI_Iallreduce");
  }
  EXPECT_THAT(MakeEmberMotif(model, {256, 20}, "Search").status().message(),
              HasSubstr("(MPI_Iallreduce) goes on before it has ended, as no collective of Ember"));
}

}  // namespace
}  // namespace meridian
