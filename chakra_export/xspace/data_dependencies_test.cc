#include "chakra_export/xspace/data_dependencies.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DataDependenciesTest : public ::testing::Test {
 protected:
  // first -> hidden_1 -> hidden_2 -> last, and other beside them.
  DataDependenciesTest() : builder_("jit_step") {
    const xla::ShapeProto array = ArrayShape(xla::F32, {4});
    auto* first = builder_.Add("first", "fusion", array);
    auto* hidden_1 = builder_.Add("hidden_1", "fusion", array, {first});
    auto* hidden_2 = builder_.Add("hidden_2", "fusion", array, {hidden_1});
    auto* other = builder_.Add("other", "fusion", array);
    auto* last = builder_.Add("last", "fusion", array, {hidden_2});
    other->add_control_predecessor_ids(first->id());
    builder_.Add("result", "tuple", TupleShape({array, array}), {last, other});
    bytes_ = builder_.Serialize();
    program_ = std::make_unique<HloProgram>(1, "jit_step", bytes_, bytes_.data());
  }

  NodeIndex Add(const std::string& hlo_op, int64_t stream, int64_t start_ns, int64_t end_ns,
                int64_t run_id = 1) {
    DeviceWork& work = work_.emplace_back();
    work.program = program_.get();
    work.instruction = (*program_->Module())->FindInstruction(hlo_op);
    work.run_id = run_id;
    work.start_ps = start_ns * 1000;
    work.launch_ps = work.start_ps;
    WorkNode node;
    node.resource = {0, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.work = &work;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }
  NodeIndex AddBuffered(uint64_t correlation, int64_t start_ns, int64_t end_ns) {
    const NodeIndex node = Add("command_buffer", 7, start_ns, end_ns);
    work_.back().in_command_buffer = true;
    work_.back().correlation = correlation;
    return node;
  }

  std::vector<NodeIndex> SourcesOf(NodeIndex node, EdgeKind kind) const {
    std::vector<NodeIndex> sources;
    for (const WorkEdge& edge : graph_.edges) {
      if (edge.node == node && edge.kinds.Contains(kind)) sources.push_back(edge.source);
    }
    return sources;
  }

  HloModuleBuilder builder_;
  std::string bytes_;
  std::unique_ptr<HloProgram> program_;
  std::deque<DeviceWork> work_;
  WorkGraph graph_;
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

}  // namespace
}  // namespace meridian
