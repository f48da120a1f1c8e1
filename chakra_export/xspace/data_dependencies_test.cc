#include "chakra_export/xspace/data_dependencies.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/xspace/device_work.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Work of a program, which the tests' constructors write.
class ProgramWorkTest : public ::testing::Test {
 protected:
  ProgramWorkTest() : builder_("jit_step") {}

  void EndProgram() {
    bytes_ = builder_.Serialize();
    program_ = std::make_unique<HloProgram>(1, "jit_step", bytes_, bytes_.data());
  }

  // Launched when it starts.
  NodeIndex Add(const std::string& hlo_op, int64_t stream, int64_t start_ns, int64_t end_ns,
                int64_t run_id = 1) {
    DeviceWork& work = work_.emplace_back();
    DeviceOp& op = ops_.emplace_back();
    op.program = program_.get();
    op.instruction = (*program_->Module())->FindInstruction(hlo_op);
    work.op = &op;
    work.run_id = run_id;
    work.start_ps = start_ns * 1000;
    RunNode node;
    node.resource = {0, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.work = &work;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }

  std::vector<NodeIndex> SourcesOf(NodeIndex node, EdgeKind kind) const {
    std::vector<NodeIndex> sources;
    for (const DependencyEdge& edge : graph_.edges) {
      if (edge.node == node && edge.kinds.Contains(kind)) sources.push_back(edge.source);
    }
    return sources;
  }

  HloModuleBuilder builder_;
  std::string bytes_;
  std::unique_ptr<HloProgram> program_;
  std::deque<DeviceOp> ops_;
  std::deque<DeviceWork> work_;
  RunGraph graph_;
};

class DataDependenciesTest : public ProgramWorkTest {
 protected:
  // first -> hidden_1 -> hidden_2 -> last, and other beside them.
  DataDependenciesTest() {
    const xla::ShapeProto array = ArrayShape(xla::F32, {4});
    auto* first = builder_.Add("first", "fusion", array);
    auto* hidden_1 = builder_.Add("hidden_1", "fusion", array, {first});
    auto* hidden_2 = builder_.Add("hidden_2", "fusion", array, {hidden_1});
    auto* other = builder_.Add("other", "fusion", array);
    auto* last = builder_.Add("last", "fusion", array, {hidden_2});
    other->add_control_predecessor_ids(first->id());
    builder_.Add("result", "tuple", TupleShape({array, array}), {last, other});
    EndProgram();
  }

  NodeIndex AddBuffered(uint32_t correlation, int64_t start_ns, int64_t end_ns) {
    const NodeIndex node = Add("command_buffer", 7, start_ns, end_ns);
    ops_.back().in_command_buffer = true;
    work_.back().correlation = correlation;
    return node;
  }
};

TEST_F(DataDependenciesTest, AKernelWaitsForItsOperandOfTheSameExecution) {
  Add("hidden_2", 7, 0, 10, 1);
  const NodeIndex made = Add("hidden_2", 8, 20, 30, 2);
  // Of the first run, but later.
  Add("hidden_2", 7, 31, 35, 1);
  const NodeIndex user = Add("last", 7, 40, 50, 2);
  AddDataDependencies(&graph_);
  EXPECT_THAT(SourcesOf(user, EdgeKind::kData), ElementsAre(made));
  EXPECT_THAT(SourcesOf(made, EdgeKind::kData), IsEmpty());
}

TEST_F(DataDependenciesTest, OfSeveralTheLastThatHadEndedIsMeant) {
  const NodeIndex early = Add("hidden_2", 8, 0, 10);
  // Still running on its stream when the user starts.
  Add("hidden_2", 8, 20, 60);
  const NodeIndex user = Add("last", 7, 40, 50);
  AddDataDependencies(&graph_);
  EXPECT_THAT(SourcesOf(user, EdgeKind::kData), ElementsAre(early));
}

TEST_F(DataDependenciesTest, KernelsOfOneStreamMayOverlapALittle) {
  const NodeIndex made = Add("hidden_2", 7, 0, 10);
  const NodeIndex user = Add("last", 7, 9, 20);
  AddDataDependencies(&graph_);
  EXPECT_THAT(SourcesOf(user, EdgeKind::kData), ElementsAre(made));
}

TEST_F(DataDependenciesTest, InstructionsWithoutATraceArePassedThrough) {
  const NodeIndex first = Add("first", 7, 0, 10);
  const NodeIndex last = Add("last", 7, 20, 30);
  AddDataDependencies(&graph_);
  EXPECT_THAT(SourcesOf(last, EdgeKind::kData), ElementsAre(first));
}

TEST_F(DataDependenciesTest, ACommandBufferStandsForWhatLiesBetweenItsNeighbours) {
  const NodeIndex first = Add("first", 8, 0, 10);
  const NodeIndex begin = AddBuffered(5, 11, 20);
  const NodeIndex end = AddBuffered(5, 21, 30);
  const NodeIndex other = Add("other", 8, 31, 35);
  const NodeIndex last = Add("last", 9, 40, 50);
  AddDataDependencies(&graph_);
  EXPECT_THAT(SourcesOf(begin, EdgeKind::kData), ElementsAre(first));
  EXPECT_THAT(SourcesOf(end, EdgeKind::kData), IsEmpty());
  EXPECT_THAT(SourcesOf(last, EdgeKind::kData), ElementsAre(end));
  EXPECT_THAT(SourcesOf(other, EdgeKind::kControl), ElementsAre(first));
}

// main: slice, all-gather-start, beside, all-gather-done, while(body), last
// body: first_of_body, all-gather-start.2, beside.2, all-gather-done.2, last_of_body
class AsyncWaitsTest : public ProgramWorkTest {
 protected:
  AsyncWaitsTest() {
    const xla::ShapeProto array = ArrayShape(xla::F32, {4});
    auto* slice = builder_.Add("slice", "fusion", array);
    auto* start = builder_.Add("all-gather-start", "async-start", array, {slice});
    auto* beside = builder_.Add("beside", "fusion", array, {slice});
    builder_.Add("all-gather-done", "async-done", array, {start});
    auto* loop = builder_.Add("while", "while", array, {beside});
    builder_.Add("last", "fusion", array);
    auto* wrapped = builder_.AddComputation("wrapped");
    builder_.Add("all-gather", "fusion", array);
    start->add_called_computation_ids(wrapped->id());
    auto* wrapped_2 = builder_.AddComputation("wrapped.2");
    builder_.Add("all-gather.2", "fusion", array);
    auto* body = builder_.AddComputation("body");
    builder_.Add("first_of_body", "fusion", array);
    auto* start_2 = builder_.Add("all-gather-start.2", "async-start", array);
    start_2->add_called_computation_ids(wrapped_2->id());
    builder_.Add("beside.2", "fusion", array);
    builder_.Add("all-gather-done.2", "async-done", array, {start_2});
    builder_.Add("last_of_body", "fusion", array);
    loop->add_called_computation_ids(body->id());
    EndProgram();
  }

  // Asynchronous work is on stream 9, the other on stream 7.
  NodeIndex Add(const std::string& hlo_op, int64_t start_ns, int64_t end_ns, int64_t run_id = 1) {
    const bool is_async = hlo_op == "all-gather" || hlo_op == "all-gather.2";
    const NodeIndex node = ProgramWorkTest::Add(hlo_op, is_async ? 9 : 7, start_ns, end_ns, run_id);
    EXPECT_NE(work_.back().op->instruction, nullptr) << hlo_op;
    return node;
  }

  std::vector<NodeIndex> AwaitedBy(NodeIndex node) {
    if (graph_.edges.empty()) AddDataDependencies(&graph_);
    return SourcesOf(node, EdgeKind::kSync);
  }
};

TEST_F(AsyncWaitsTest, WhatComesAfterADoneWaitsThoughItReadsSomethingElse) {
  const NodeIndex slice = Add("slice", 0, 10);
  const NodeIndex gather = Add("all-gather", 12, 100);
  const NodeIndex beside = Add("beside", 13, 20);
  const NodeIndex in_loop = Add("first_of_body", 102, 110);
  const NodeIndex next = Add("beside.2", 110, 120);
  EXPECT_THAT(AwaitedBy(gather), ElementsAre(slice));
  EXPECT_THAT(AwaitedBy(beside), IsEmpty());
  EXPECT_THAT(AwaitedBy(in_loop), ElementsAre(gather));
  EXPECT_THAT(AwaitedBy(next), IsEmpty());
}

TEST_F(AsyncWaitsTest, EveryIterationWaitsForItsOwn) {
  const NodeIndex before = Add("first_of_body", 0, 10);
  const NodeIndex gather = Add("all-gather.2", 12, 50);
  Add("beside.2", 13, 20);
  const NodeIndex after = Add("last_of_body", 52, 60);
  const NodeIndex again = Add("first_of_body", 60, 70);
  const NodeIndex second = Add("all-gather.2", 72, 150);
  const NodeIndex last = Add("last", 152, 160);
  EXPECT_THAT(AwaitedBy(gather), ElementsAre(before));
  EXPECT_THAT(AwaitedBy(after), ElementsAre(gather));
  EXPECT_THAT(AwaitedBy(again), IsEmpty());
  EXPECT_THAT(AwaitedBy(second), ElementsAre(again));
  // The loop has ended.
  EXPECT_THAT(AwaitedBy(last), ElementsAre(second));
}

// Whose first and last work is asynchronous, or beside it.
TEST_F(AsyncWaitsTest, ALoopOfNothingElseStillWaitsInEachIteration) {
  const NodeIndex gather = Add("all-gather.2", 0, 50);
  Add("beside.2", 1, 20);
  const NodeIndex second = Add("all-gather.2", 52, 100);
  const NodeIndex beside = Add("beside.2", 54, 60);
  const NodeIndex last = Add("last", 102, 110);
  EXPECT_THAT(AwaitedBy(second), ElementsAre(1));
  // In the second iteration, so after the first one's done.
  EXPECT_THAT(AwaitedBy(beside), ElementsAre(gather));
  EXPECT_THAT(AwaitedBy(last), ElementsAre(second));
}

TEST_F(AsyncWaitsTest, TheNextExecutionWaitsAndTimesAreBelieved) {
  const NodeIndex gather = Add("all-gather", 0, 100);
  const NodeIndex next = Add("slice", 105, 110, /*run_id=*/2);
  const NodeIndex gather_2 = Add("all-gather", 112, 200, /*run_id=*/2);
  // Began before the all-gather ended: it did not wait.
  const NodeIndex early = Add("last", 150, 160, /*run_id=*/2);
  EXPECT_THAT(AwaitedBy(next), ElementsAre(gather));
  EXPECT_THAT(AwaitedBy(gather_2), ElementsAre(next));
  EXPECT_THAT(AwaitedBy(early), IsEmpty());
}

// A kernel that starts 1 ms after its launch, right after what ran on another stream.
TEST_F(AsyncWaitsTest, LateStartsAreExplainedByWhatHasJustEnded) {
  const NodeIndex gather = Add("all-gather", 0, 990'000);
  const NodeIndex late = Add("beside", 1'000'000, 1'000'100);
  HostCall call;
  call.end_ps = 1'000;
  work_[1].call = &call;
  EXPECT_EQ(AddInferredDependencies(&graph_), 1);
  ASSERT_EQ(graph_.edges.size(), 1);
  EXPECT_EQ(graph_.edges[0].node, late);
  EXPECT_EQ(graph_.edges[0].source, gather);
  EXPECT_TRUE(graph_.edges[0].kinds.Contains(EdgeKind::kInferred));
}

class StreamOrderTest : public ::testing::Test {
 protected:
  // A kernel of its own.
  void Add(int64_t rank, int64_t stream) {
    RunNode node;
    node.resource = {rank, ResourceKind::kStream, stream};
    node.kernel = static_cast<uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back(node);
  }
  // Another node of the last kernel.
  void AddTwin() { graph_.nodes.push_back(graph_.nodes.back()); }

  // "source>node:kinds".
  std::vector<std::string> Edges() const {
    std::vector<std::string> texts;
    for (const DependencyEdge& edge : graph_.edges) {
      texts.push_back(absl::StrCat(edge.source, ">", edge.node, ":", edge.kinds.Letters()));
    }
    return texts;
  }

  RunGraph graph_;
};

TEST_F(StreamOrderTest, StreamsOfEachRankAreChains) {
  Add(0, 7);  // 0
  Add(0, 8);  // 1
  Add(0, 7);  // 2
  Add(1, 7);  // 3
  Add(0, 8);  // 4
  Add(1, 7);  // 5
  AddStreamOrder(&graph_);
  EXPECT_THAT(Edges(), ElementsAre("0>2:s", "1>4:s", "3>5:s"));
}

// The kernel of a permute is a send and a receive: both wait for what came before it, neither for
// the other, and what comes next waits for both.
TEST_F(StreamOrderTest, TheNodesOfOneKernelBeginTogether) {
  Add(0, 7);  // 0
  Add(0, 7);  // 1
  AddTwin();  // 2
  Add(0, 7);  // 3
  Add(0, 7);  // 4
  AddStreamOrder(&graph_);
  EXPECT_THAT(Edges(), ElementsAre("0>1:s", "0>2:s", "1>3:s", "2>3:s", "3>4:s"));
}

}  // namespace
}  // namespace meridian
