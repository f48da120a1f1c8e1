// Motifs as SST would run them: what each rank enqueues is what the models say, at nodes and sizes that
// no motif was made for.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/generate/call_workload.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/generate/testing/RingMotif.inc"
#include "workload_model/generate/testing/SearchMotif.inc"
#include "workload_model/measurements/measurements.h"
#include "workload_model/models/models.h"
#include "workload_model/testing/made_up_search.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;

using Kind = CallOperation::Kind;

constexpr char kFolder[] = "workload_model/generate/testing/";

WorkloadModel SearchModel() { return *FitRuns(SearchesOf({2, 3, 4})); }

// A ring of ranks with messages that are begun and waited for; the first rank sends before it receives,
// the others after. It takes 500 us to come from callsite 4 to the first call.
WorkloadModel RingModel() {
  std::vector<RunMeasurements> runs;
  for (const int64_t ranks : {4, 6, 8}) {
    for (const int size : {4, 5, 6}) {
      for (int64_t rank = 0; rank < ranks; ++rank) {
        std::string trace;
        int last = 4;
        const std::string target = absl::StrCat((rank + 1) % ranks, ":", (rank + 1) % ranks);
        const std::string begins = absl::StrCat("MPI_Isend p2p ", std::exp2(size), " to ", target);
        const std::vector<std::string> calls =
            rank == 0 ? std::vector<std::string>{begins, "MPI_Irecv ", "MPI_Waitall "}
                      : std::vector<std::string>{"MPI_Irecv ", begins, "MPI_Waitall "};
        for (int step = 0; step < 5; ++step) {
          for (size_t i = 0; i < calls.size(); ++i) {
            const int callsite = static_cast<int>(i) + 1;
            absl::StrAppend(&trace, "TRACE ", last, " -> ", callsite, " ",
                            last == 4 ? 500 : 10 + std::exp2(size) / static_cast<double>(ranks),
                            " ", calls[i], "\n");
            last = callsite;
          }
        }
        RunName name;
        name.cell = {static_cast<double>(ranks), static_cast<double>(size)};
        name.rank = rank;
        name.run = "ring";
        runs.push_back(*ParseMeasurements(trace, "ring", name));
      }
    }
  }
  return *FitRuns(std::move(runs));
}

// Runs a motif of one rank to its end.
template <typename Motif>
std::vector<std::string> RunMotif(const std::string& exec_model, const std::string& msg_model,
                                  int64_t rank, const WorkloadCell& cell) {
  SST::Params params({{"rank", absl::StrCat(rank)},
                      {"ranks", absl::StrCat(cell.Ranks())},
                      {"arg.size", absl::StrCat(cell.size)},
                      {"arg.exec_model", exec_model},
                      {"arg.msg_model", msg_model}});
  Motif motif(0, params);
  std::queue<SST::Ember::EmberEvent*> queue;
  while (!motif.generate(queue)) queue = {};
  return motif.calls();
}

// What a call enqueues; `open` counts what was begun.
std::vector<std::string> EnqueuedBy(const Visit& visit, int64_t rank, int64_t ranks,
                                    int64_t sent_bytes, size_t* open) {
  const PeerRule& rule = visit.callsite->peer();
  const int64_t bytes = std::max<int64_t>(1, visit.bytes);
  switch (visit.operation.kind) {
    case Kind::kCollective: {
      const std::vector<int64_t> members = *GroupOf(*visit.callsite, rank, ranks);
      return {absl::StrCat(visit.callsite->operation().substr(4), " ", visit.bytes, " of ",
                           absl::StrJoin(members, " "))};
    }
    case Kind::kSendReceive: {
      const int64_t to = *TargetOf(rule, rank, ranks, visit.number).rank;
      if (to == rank) return {};
      return {absl::StrCat("sendrecv ", bytes, " to ", to, " from ",
                           *SourceOf(rule, rank, ranks, visit.number).rank)};
    }
    case Kind::kSend:
      ++*open;
      return {
          absl::StrCat("isend ", bytes, " to ", *TargetOf(rule, rank, ranks, visit.number).rank)};
    case Kind::kReceive:
      ++*open;
      return {absl::StrCat("irecv ", sent_bytes, " from -1")};
    default:
      return std::vector<std::string>(std::exchange(*open, 0), "wait");
  }
}

// Makes a motif and writes its model files. The source must be the one that was compiled here.
void WriteMotif(const WorkloadModel& model, const std::string& name,
                const TemporaryDirectory& directory) {
  ASSERT_OK_AND_ASSIGN(const EmberMotif motif, MakeEmberMotif(model, {4, 6}, name));
  directory.Write("exec.model", motif.exec_model);
  directory.Write("msg.model", motif.msg_model);
  std::ifstream file(absl::StrCat(kFolder, name, "Motif.inc"));
  const std::string kept((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(motif.source, kept) << "motifs have changed: keep the new text in its place";
}

// Expects that all ranks enqueue what the model says of them.
template <typename Motif>
void ExpectSame(const WorkloadModel& model, const TemporaryDirectory& directory,
                const WorkloadCell& cell, int64_t sent_bytes = 0) {
  ASSERT_OK_AND_ASSIGN(const EvaluatedRanks ranks, EvaluateRanks(model, cell, 10000));
  std::vector<ClassCalls> classes;
  for (const EvaluatedFlow& flow : ranks.flows) {
    ASSERT_OK_AND_ASSIGN(ClassCalls calls, WalkClass(flow));
    classes.push_back(std::move(calls));
  }
  const auto count = static_cast<int64_t>(ranks.class_of.size());
  for (int64_t rank = 0; rank < count; ++rank) {
    const std::vector<Visit>& visits = classes[ranks.class_of[static_cast<size_t>(rank)]].visits;
    std::vector<std::string> expected;
    if (model.flows(0).start() != 0) {
      expected.push_back(absl::StrCat("compute ", visits[0].compute_ns));
    }
    size_t open = 0;
    for (size_t i = 0; i < visits.size(); ++i) {
      for (std::string& call : EnqueuedBy(visits[i], rank, count, sent_bytes, &open)) {
        expected.push_back(std::move(call));
      }
      const int64_t compute_ns = i + 1 < visits.size() ? visits[i + 1].compute_ns : 0;
      expected.push_back(absl::StrCat("compute ", compute_ns));
    }
    EXPECT_THAT(
        RunMotif<Motif>(directory.PathOf("exec.model"), directory.PathOf("msg.model"), rank, cell),
        ElementsAreArray(expected))
        << "rank " << rank << " of " << count;
  }
}

TEST(MotifTest, ASearchRunsAtAnyNodesAndSize) {
  const TemporaryDirectory directory;
  const WorkloadModel model = SearchModel();
  WriteMotif(model, "Search", directory);
  for (const WorkloadCell& cell :
       {WorkloadCell(4, 14), WorkloadCell(9, 17), WorkloadCell(25, 20)}) {
    ExpectSame<SST::Ember::EmberSearchGenerator>(model, directory, cell);
  }
}

TEST(MotifTest, MessagesAreBegunAndWaitedForByEachClassOfRanks) {
  const WorkloadModel model = RingModel();
  EXPECT_EQ(model.rank_classes(), "first");
  const TemporaryDirectory directory;
  WriteMotif(model, "Ring", directory);
  ExpectSame<SST::Ember::EmberRingGenerator>(model, directory, {4, 4}, 16);
  ExpectSame<SST::Ember::EmberRingGenerator>(model, directory, {12, 8}, 256);
}

// As evaluate shows them: with the call at their ends, or as the motif computes them.
TEST(MotifTest, ItsModelFilesAreEvaluated) {
  for (const WorkloadModel& model : {SearchModel(), RingModel()}) {
    const WorkloadCell cell(4, 15);
    ASSERT_OK_AND_ASSIGN(const EmberMotif motif, MakeEmberMotif(model, cell, "Any"));
    for (const bool as_ember : {false, true}) {
      ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation times,
                           EvaluateFile(motif.exec_model, "exec.model", cell, as_ember));
      ASSERT_EQ(times.transitions_size(), model.models_size());
      std::map<std::string, double> totals;
      std::map<std::pair<int64_t, int64_t>, std::multiset<int64_t>> expected, found;
      for (const CallModel& call : model.models()) {
        const bool computes = as_ember && call.has_compute();
        const double us = EvaluateModel(computes ? call.compute() : call.value(), cell);
        expected[{call.source(), call.destination()}].insert(std::llround(1000 * us));
        totals[call.rank_class()] += us;
      }
      double longest = 0;
      for (const auto& [name, total] : totals) longest = std::max(longest, total);
      for (const EvaluatedTransition& t : times.transitions()) {
        found[{t.source(), t.destination()}].insert(std::llround(1000 * t.us()));
      }
      EXPECT_EQ(found, expected);
      EXPECT_NEAR(times.total_us(), longest, 0.01);
      ASSERT_OK_AND_ASSIGN(const WorkloadEvaluation bytes,
                           EvaluateFile(motif.msg_model, "msg.model", cell, as_ember));
      EXPECT_EQ(bytes.messages_size(), model.messages_size());
    }
  }
}

// Typed rows and a table, as the study of the motif has published them; what they do not have is 0.
TEST(MotifTest, TakesPublishedModelFiles) {
  const TemporaryDirectory directory;
  const std::string exec = directory.Write("exec_exp.model",
                                           "1 2 1 EXPONENTIAL 0 0 0.5 -4\n"
                                           "2 3 1 POLYNOMIAL 0 0 1 1 1 0.5\n");
  const std::string msg = directory.Write("msg_poly.model",
                                          "callsite threads_per_rank 0,0 1,0 0,1\n"
                                          "1 1 3 2 10\n1 2 99 99 99\n");
  const std::vector<std::string> calls =
      RunMotif<SST::Ember::EmberSearchGenerator>(exec, msg, 0, {4, 10});
  // 3 + 2 * 10 + 10 * 4 bytes, then exp(1) us.
  EXPECT_EQ(calls[0], "Allreduce 63 of 0 1 2 3");
  EXPECT_EQ(calls[1], "compute 2718");
  // 1 + 0.5 * 10 * 4 us.
  EXPECT_EQ(calls[3], "compute 21000");
  EXPECT_THAT(calls, Contains("Bcast 0 of 0 1"));
}

TEST(MotifTest, RefusesFilesAndRanksThatItCannotRunWith) {
  const TemporaryDirectory directory;
  const std::string good = directory.Write("exec.model", "1 2 1 CONSTANT 5\n");
  const std::string msg = directory.Write("msg.model", "1 1 CONSTANT 8\n");
  using Search = SST::Ember::EmberSearchGenerator;
  EXPECT_THROW(RunMotif<Search>("none", msg, 0, {4, 14}), std::runtime_error);
  const std::string bad = directory.Write("bad", "1 2 1 EXPONENTIAL 0 0\n");
  EXPECT_THROW(RunMotif<Search>(bad, msg, 0, {4, 14}), std::runtime_error);
  // No square.
  EXPECT_THROW(RunMotif<Search>(good, msg, 0, {6, 14}), std::runtime_error);
}

TEST(MotifTest, TimesDriftAlongTheLoop) {
  WorkloadModel model = RingModel();
  for (CallModel& call : *model.mutable_models()) {
    // These are once in each iteration.
    if (call.source() < call.destination()) call.set_drift(-0.5);
  }
  const TemporaryDirectory directory;
  WriteMotif(model, "Ring", directory);
  ExpectSame<SST::Ember::EmberRingGenerator>(model, directory, {4, 6}, 64);
}

}  // namespace
}  // namespace meridian
