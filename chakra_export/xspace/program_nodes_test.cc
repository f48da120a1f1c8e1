#include "chakra_export/xspace/work_nodes.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "chakra_export/xspace/testing/made_up_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

xla::ShapeProto Floats() { return ArrayShape(xla::F32, {64}); }

WorkNodes Make(const MadeUpRun& run) {
  absl::StatusOr<WorkNodes> nodes = MakeProgramNodes(run.profiles, run.run);
  EXPECT_OK(nodes);
  return *std::move(nodes);
}

// Names of a rank's nodes in their order.
std::vector<std::string> Names(const WorkNodes& nodes, int64_t rank) {
  std::vector<std::string> names;
  for (const RunNode& node : nodes.graph.nodes) {
    if (node.resource.rank == rank) names.emplace_back(node.name);
  }
  return names;
}

// "source > node: kinds" of a rank.
std::vector<std::string> Edges(const WorkNodes& nodes, int64_t rank) {
  std::vector<std::string> edges;
  for (const DependencyEdge& edge : nodes.graph.edges) {
    const RunNode& node = nodes.graph.nodes[edge.node];
    if (node.resource.rank != rank) continue;
    edges.push_back(absl::StrCat(std::string(nodes.graph.nodes[edge.source].name), " > ",
                                 std::string(node.name), ": ", edge.kinds.Letters()));
  }
  return edges;
}

// x -> a -> all-reduce -> b, and c beside them; b also waits for c.
HloModuleBuilder Diamond(int64_t partitions) {
  HloModuleBuilder program = PartitionedProgram(partitions);
  auto* x = program.Add("x", "parameter", Floats());
  auto* a = program.Add("a", "fusion", Floats(), {x});
  std::vector<int64_t> all;
  for (int64_t i = 0; i < partitions; ++i) all.push_back(i);
  auto* reduce = AddAllReduce("all-reduce.1", Floats(), {a}, {all}, &program);
  auto* c = program.Add("c", "fusion", Floats(), {x});
  auto* b = program.Add("b", "fusion", Floats(), {reduce});
  b->add_control_predecessor_ids(c->id());
  return program;
}

// One kernel of "a", so that the program ran.
ProfileRun Ran() { return {7, 10, {{"a", "a", 14, 20000, 30000, ""}}}; }

TEST(ProgramNodesTest, InstructionsAreNodesOnEveryRank) {
  // Only the first of three profiles is at hand.
  const MadeUpRun run({GpuProfile(0, Diamond(3), {Ran()})});
  const WorkNodes nodes = Make(run);
  EXPECT_EQ(nodes.graph.rank_count, 3);
  for (const int64_t rank : {0, 1, 2}) {
    EXPECT_THAT(Names(nodes, rank), ElementsAre("jit_step", "a", "all-reduce.1", "c", "b"));
    EXPECT_THAT(Edges(nodes, rank),
                UnorderedElementsAre("jit_step > a: c", "a > all-reduce.1: d", "jit_step > c: c",
                                     "all-reduce.1 > b: d", "c > b: c"));
  }
  const RunNode& reduce = nodes.graph.nodes[2];
  EXPECT_EQ(reduce.type, ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_EQ(reduce.communication->bytes, 256);
  EXPECT_THAT(nodes.graph.groups[reduce.communication->group].ranks, ElementsAre(0, 1, 2));
  for (const RunNode& node : nodes.graph.nodes) {
    EXPECT_EQ(node.start_ns, kNoTimeNs);
    EXPECT_EQ(node.duration_ns, 0);
    if (node.name == "all-reduce.1") {
      EXPECT_EQ(node.instance, reduce.instance);
    }
  }
  EXPECT_THAT(nodes.notes, IsEmpty());
}

TEST(ProgramNodesTest, PermutesAreMessagesWithTagsOfTheirOwn) {
  HloModuleBuilder program = PartitionedProgram(3);
  auto* x = program.Add("x", "parameter", Floats());
  auto* a = program.Add("a", "fusion", Floats(), {x});
  auto* first = AddPermute("first", Floats(), {a}, {{0, 1}, {1, 2}}, &program);
  AddPermute("second", Floats(), {first}, {{0, 1}, {2, 2}}, &program);
  const MadeUpRun run({GpuProfile(0, program, {Ran()})});
  const WorkNodes nodes = Make(run);
  std::vector<std::string> messages;
  for (const RunNode& node : nodes.graph.nodes) {
    if (!node.IsCommunication()) continue;
    EXPECT_EQ(node.communication->bytes, 256);
    messages.push_back(absl::StrCat(
        node.resource.rank, node.type == ChakraProtoMsg::COMM_SEND_NODE ? " sends " : " receives ",
        node.communication->source, "->", node.communication->target, " tag ",
        node.communication->tag));
  }
  EXPECT_THAT(messages, UnorderedElementsAre("0 sends 0->1 tag 0", "1 receives 0->1 tag 0",
                                             "1 sends 1->2 tag 0", "2 receives 1->2 tag 0",
                                             "0 sends 0->1 tag 1", "1 receives 0->1 tag 1"));
  // Rank 2 sends to itself in the second, which is no message.
  EXPECT_THAT(Names(nodes, 2), ElementsAre("jit_step", "a", "first", "second"));
  EXPECT_EQ(nodes.graph.nodes.back().op_kind, kLocalOpKind);
}

TEST(ProgramNodesTest, ALoopCountsOnceWithANote) {
  HloModuleBuilder program = PartitionedProgram(1);
  auto* x = program.Add("x", "parameter", Floats());
  auto* loop = program.Add("while.1", "while", Floats(), {x});
  program.Add("after", "fusion", Floats(), {loop});
  xla::HloComputationProto* body = program.AddComputation("body");
  auto* state = program.Add("state", "parameter", Floats());
  program.Add("a", "fusion", Floats(), {state});
  xla::HloComputationProto* condition = program.AddComputation("condition");
  auto* tested = program.Add("tested", "parameter", Floats());
  program.Add("less", "compare", ArrayShape(xla::PRED, {}), {tested});
  loop->add_called_computation_ids(body->id());
  loop->add_called_computation_ids(condition->id());
  const MadeUpRun run({GpuProfile(0, program, {Ran()})});
  const WorkNodes nodes = Make(run);
  EXPECT_THAT(Names(nodes, 0), ElementsAre("jit_step", "a", "after"));
  EXPECT_THAT(nodes.notes, ElementsAre(HasSubstr("while.1: a while counts as one iteration")));
}

// A fusion of a product and a sum, a copy, and two all-reduces that were made one.
TEST(ProgramNodesTest, FusionsCopiesAndCombinedCollectivesCanBeUndone) {
  HloModuleBuilder program = PartitionedProgram(2);
  auto* x = program.Add("x", "parameter", Floats());
  auto* fusion = program.Add("fusion.1", "fusion", Floats(), {x});
  auto* copy = program.Add("copy.1", "copy", Floats(), {fusion});
  auto* other = program.Add("other", "exponential", ArrayShape(xla::F32, {8}), {x});
  auto* both = AddAllReduce("both", TupleShape({Floats(), ArrayShape(xla::F32, {8})}),
                            {copy, other}, {{0, 1}}, &program);
  auto* second = program.Add("second", "get-tuple-element", ArrayShape(xla::F32, {8}), {both});
  second->set_tuple_index(1);
  program.Add("user", "negate", ArrayShape(xla::F32, {8}), {second});
  xla::HloComputationProto* fused = program.AddComputation("fused");
  auto* argument = program.Add("argument", "parameter", Floats());
  auto* product = program.Add("product", "multiply", Floats(), {argument, argument});
  product->mutable_metadata()->set_op_name("jit(step)/mul");
  program.Add("sum", "add", Floats(), {product, argument});
  fusion->add_called_computation_ids(fused->id());
  const MadeUpRun run({GpuProfile(0, program, {{7, 10, {{"a", "user", 14, 20000, 30000, ""}}}})});
  absl::StatusOr<WorkNodes> nodes = MakeProgramNodes(run.profiles, run.run, /*undo=*/true);
  ASSERT_OK(nodes.status());
  EXPECT_THAT(Names(*nodes, 1),
              ElementsAre("jit_step", "jit(step)/mul", "sum", "other", "both", "both", "user"));
  EXPECT_THAT(Edges(*nodes, 1),
              UnorderedElementsAre("jit_step > jit(step)/mul: c", "jit(step)/mul > sum: d",
                                   "jit_step > other: c", "sum > both: d", "other > both: d",
                                   "both > user: d"));
  std::vector<int64_t> bytes;
  for (const RunNode& node : nodes->graph.nodes) {
    if (node.IsCommunication() && node.resource.rank == 1) {
      bytes.push_back(node.communication->bytes);
    }
  }
  EXPECT_THAT(bytes, ElementsAre(256, 32));
}

// What XLA makes of two all-reduces where it joins their operands end to end: a fusion of the
// concatenation, and a fusion that cuts out what one of them gave.
TEST(ProgramNodesTest, JoinedAllReducesAreTakenApart) {
  const xla::ShapeProto few = ArrayShape(xla::F32, {8}), all = ArrayShape(xla::F32, {72});
  for (const bool by_framework : {false, true}) {
    HloModuleBuilder program = PartitionedProgram(2);
    auto* x = program.Add("x", "parameter", Floats());
    auto* first = program.Add("first", "negate", Floats(), {x});
    auto* second = program.Add("second", "exponential", few, {x});
    auto* joining = program.Add("joining", "fusion", all, {first, second});
    auto* both = AddAllReduce("both", all, {joining}, {{0, 1}}, &program);
    both->mutable_metadata()->set_op_name("jit(step)/(psum/a:psum/b)");
    auto* cutting = program.Add("cutting", "fusion", few, {both});
    xla::HloComputationProto* joined = program.AddComputation("joined");
    auto* p0 = program.Add("p0", "parameter", Floats());
    auto* p1 = program.Add("p1", "parameter", few);
    p1->set_parameter_number(1);
    auto* concatenate = program.Add("concatenate.1", "concatenate", all, {p0, p1});
    if (by_framework) concatenate->mutable_metadata()->set_op_name("jit(step)/concatenate");
    joining->add_called_computation_ids(joined->id());
    xla::HloComputationProto* cut = program.AddComputation("cut");
    auto* whole = program.Add("whole", "parameter", all);
    auto* slice = program.Add("slice.1", "slice", few, {whole});
    auto* range = slice->add_slice_dimensions();
    range->set_start(64);
    range->set_limit(72);
    range->set_stride(1);
    program.Add("user", "negate", few, {slice});
    cutting->add_called_computation_ids(cut->id());
    const MadeUpRun run({GpuProfile(0, program, {{7, 10, {{"a", "user", 14, 20000, 30000, ""}}}})});
    absl::StatusOr<WorkNodes> nodes = MakeProgramNodes(run.profiles, run.run, /*undo=*/true);
    ASSERT_OK(nodes.status());
    if (by_framework) {
      EXPECT_THAT(Names(*nodes, 1),
                  ElementsAre("jit_step", "first", "second", "jit(step)/concatenate",
                              "jit(step)/(psum/a:psum/b)", "slice.1", "user"));
      continue;
    }
    EXPECT_THAT(Names(*nodes, 1), ElementsAre("jit_step", "first", "second", "jit(step)/psum/a",
                                              "jit(step)/psum/b", "user"));
    EXPECT_THAT(Edges(*nodes, 1),
                UnorderedElementsAre("jit_step > first: c", "jit_step > second: c",
                                     "first > jit(step)/psum/a: d", "second > jit(step)/psum/b: d",
                                     "jit(step)/psum/b > user: d"));
    EXPECT_EQ(nodes->graph.nodes[4].communication->bytes, 32);
  }
}

TEST(ProgramNodesTest, AnAllReduceOfOneRankIsNoCommunication) {
  const MadeUpRun run({GpuProfile(0, Diamond(1), {Ran()})});
  const WorkNodes nodes = Make(run);
  EXPECT_THAT(Names(nodes, 0), ElementsAre("jit_step", "a", "all-reduce.1", "c", "b"));
  EXPECT_EQ(nodes.graph.nodes[2].type, ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(nodes.graph.nodes[2].op_kind, kLocalOpKind);
}

TEST(ProgramNodesTest, NoProgramIsAnError) {
  HloModuleBuilder program("jit_step");
  program.Add("a", "fusion", Floats());
  const MadeUpRun run({GpuProfile(0, program, {Ran()})});
  EXPECT_THAT(MakeProgramNodes(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no program with a device assignment")));
}

}  // namespace
}  // namespace meridian
