// A pipeline of 4 stages, twice, of which a table tells: what is found of a slow worker is what the
// same pipeline takes without it.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

constexpr int kStages = 4, kPipelines = 2, kWorkers = kStages * kPipelines;
constexpr int64_t kMs = 1'000'000;

// What a worker does next: computes, or meets others, who must have come to the same.
struct PipelineOp {
  const char* compute = nullptr;
  int64_t compute_ns = 0;
  // The other end, for messages in one or both directions; -1 for the group of a stage.
  int peer = -1;
  std::string send, receive;
  const char* collective = nullptr;
};

PipelineOp Compute(const char* name, int64_t ns) {
  PipelineOp op;
  op.compute = name;
  op.compute_ns = ns;
  return op;
}

PipelineOp Message(int peer, std::string send, std::string receive) {
  PipelineOp op;
  op.peer = peer;
  op.send = std::move(send);
  op.receive = std::move(receive);
  return op;
}

PipelineOp Collective(const char* kind) {
  PipelineOp op;
  op.collective = kind;
  return op;
}

// One forward, one backward, as Megatron schedules them: the first stages run ahead.
std::vector<PipelineOp> Schedule(int worker, int microbatches, int64_t slowness) {
  const int stage = worker % kStages, ahead = std::min(microbatches, kStages - 1 - stage);
  const bool has_next = stage + 1 < kStages, has_previous = stage > 0;
  const PipelineOp forward = Compute("forward", 60 * kMs * slowness),
                   backward = Compute("backward", 130 * kMs * slowness);
  std::vector<PipelineOp> ops = {Collective("all-gather")};
  for (int i = 0; i < ahead; ++i) {
    if (has_previous) ops.push_back(Message(worker - 1, "", "f"));
    ops.push_back(forward);
    ops.push_back(Message(worker + 1, "f", ""));
  }
  if (has_previous && ahead < microbatches) ops.push_back(Message(worker - 1, "", "f"));
  for (int i = ahead; i < microbatches; ++i) {
    ops.push_back(forward);
    if (has_next) ops.push_back(Message(worker + 1, "f", "b"));
    ops.push_back(backward);
    if (has_previous) ops.push_back(Message(worker - 1, "b", i + 1 < microbatches ? "f" : ""));
  }
  for (int i = 0; i < ahead; ++i) {
    ops.push_back(Message(worker + 1, "", "b"));
    ops.push_back(backward);
    if (has_previous) ops.push_back(Message(worker - 1, "b", ""));
  }
  ops.push_back(Collective("reduce-scatter"));
  ops.push_back(Compute("optimizer", 40 * kMs));
  return ops;
}

struct PipelineRun {
  std::string table = "rank,stream,name,kind,group,peer,seq,start_ns,end_ns,step\n";
  int64_t took_ns = 0;
};

// Messages and collectives have begun when all have come. The table shows them from then on, or, if
// they block, from when each has come.
PipelineRun Simulate(int microbatches, int slow, int64_t slowness, bool block) {
  PipelineRun run;
  std::vector<int64_t> clock(kWorkers, kMs);
  for (int step = 0; step < 2; ++step) {
    std::vector<std::vector<PipelineOp>> ops;
    for (int i = 0; i < kWorkers; ++i)
      ops.push_back(Schedule(i, microbatches, i == slow ? slowness : 1));
    std::vector<size_t> at(kWorkers);
    const auto add = [&](int worker, const char* stream, const std::string& name,
                         const std::string& kind, const std::string& group, int64_t start_ns,
                         int64_t end_ns) {
      absl::StrAppend(&run.table, worker, ",", stream, ",", name, ",", kind, ",", group, ",,,",
                      start_ns, ",", end_ns, ",", step, "\n");
    };
    for (bool moves = true; moves;) {
      moves = false;
      for (int worker = 0; worker < kWorkers; ++worker) {
        if (at[worker] == ops[worker].size()) continue;
        const PipelineOp& op = ops[worker][at[worker]];
        std::vector<int> members = {worker};
        if (op.peer >= 0) members = {std::min(worker, op.peer), std::max(worker, op.peer)};
        if (op.collective != nullptr) members = {worker % kStages, worker % kStages + kStages};
        int64_t start_ns = 0;
        bool are_there = true;
        for (const int member : members) {
          if (at[member] == ops[member].size()) {
            are_there = false;
            continue;
          }
          const PipelineOp& other = ops[member][at[member]];
          are_there &= op.collective != nullptr
                           ? other.collective == op.collective
                           : op.peer < 0 || member == worker || other.peer == worker;
          start_ns = std::max(start_ns, clock[member] + 3000);
        }
        if (!are_there) continue;
        moves = true;
        const std::string group = absl::StrCat(members[0], " ", members.back());
        for (const int member : members) {
          const PipelineOp& own = ops[member][at[member]++];
          const int64_t own_ns = block ? clock[member] + 3000 : start_ns;
          const int64_t end_ns = start_ns + (own.collective != nullptr ? 25 * kMs
                                             : own.peer >= 0           ? kMs / 2
                                                                       : own.compute_ns);
          if (own.compute != nullptr)
            add(member, "compute", own.compute, "compute", "", own_ns, end_ns);
          if (own.collective != nullptr)
            add(member, "dp", own.collective, own.collective, group, own_ns, end_ns);
          if (!own.send.empty())
            add(member, "pp", own.send + "-send", "send", group, own_ns, end_ns);
          if (!own.receive.empty())
            add(member, "pp", own.receive + "-recv", "recv", group, own_ns, end_ns);
          clock[member] = end_ns;
        }
      }
    }
    for (int i = 0; i < kWorkers; ++i)
      EXPECT_EQ(at[i], ops[i].size()) << "worker " << i << " is stuck";
  }
  run.took_ns = *std::max_element(clock.begin(), clock.end()) - kMs;
  return run;
}

class TableLevelingTest : public ::testing::TestWithParam<int> {};

TEST_P(TableLevelingTest, WithoutTheSlowWorkerTheRunIsAsLongAsSimulated) {
  const int slow = GetParam();
  for (const int microbatches : {4, 12}) {
    const PipelineRun fast = Simulate(microbatches, slow, 1, false);
    for (const bool block : {false, true}) {
      SCOPED_TRACE(absl::StrCat(microbatches, " microbatches, block: ", block));
      const PipelineRun recorded = Simulate(microbatches, slow, 2, block);
      const TemporaryDirectory directory;
      JobInput input;
      input.traces = {directory.Write("run.csv", recorded.table)};
      ASSERT_OK_AND_ASSIGN(TraceAnalysis analysis, AnalyzeJob(FileSystem::Posix(), input, {}));
      const MeasuredGraph measured = MeasureGraph(std::move(analysis.graph));
      EXPECT_NEAR(MicrosAfter(measured, "scale all 1"), recorded.took_ns / 1000, 10);
      const double after = MicrosAfter(measured, absl::StrCat("level rank=", slow));
      EXPECT_NEAR(after * 1000 / fast.took_ns, 1, 0.01) << recorded.took_ns;
      // Another rank is not to blame.
      EXPECT_NEAR(MicrosAfter(measured, absl::StrCat("level rank=", (slow + 1) % kWorkers)),
                  recorded.took_ns / 1000, 10);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, TableLevelingTest, ::testing::Values(0, 2, 5, 7));

}  // namespace
}  // namespace meridian
