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

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kNccl[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";
constexpr char kSendRecv[] = "ncclDevKernel_SendRecv(ncclDevKernelArgs)";

xla::ShapeProto Floats(int64_t count) { return ArrayShape(xla::F32, {count}); }

WorkNodes Make(const MadeUpRun& run, const WorkNodesOptions& options = {}) {
  absl::StatusOr<WorkNodes> nodes = MakeWorkNodes(run.profiles, run.run, options);
  EXPECT_OK(nodes);
  return *std::move(nodes);
}

// Of one rank, in their order.
std::vector<const RunNode*> NodesOf(const WorkNodes& nodes, int64_t rank) {
  std::vector<const RunNode*> found;
  for (const RunNode& node : nodes.graph.nodes) {
    if (node.resource.rank == rank) found.push_back(&node);
  }
  return found;
}

// A program of one permute of 64 floats, which partition i runs from starts_ns[i] to 200.
std::vector<XSpaceProto> PermuteRun(const std::vector<int64_t>& starts_ns,
                                    const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  HloModuleBuilder program = PartitionedProgram(static_cast<int64_t>(starts_ns.size()));
  auto* x = program.Add("x", "parameter", Floats(64));
  AddPermute("ppermute.1", Floats(64), {x}, pairs, &program);
  std::vector<XSpaceProto> spaces;
  for (size_t i = 0; i < starts_ns.size(); ++i) {
    spaces.push_back(
        GpuProfile(static_cast<int64_t>(i), program,
                   {{7, 10, {{kSendRecv, "ppermute.1", 14, starts_ns[i] * 1000, 200000, ""}}}}));
  }
  return spaces;
}

// 0 -> 1 -> 2 -> 0; they start at 100, 110 and 120 us and all end at 200.
TEST(WorkNodesTest, APermuteIsASendAndAReceiveOnEachRankOfARing) {
  const MadeUpRun run(PermuteRun({100, 110, 120}, {{0, 1}, {1, 2}, {2, 0}}));
  const WorkNodes nodes = Make(run);
  ASSERT_THAT(nodes.graph.nodes, SizeIs(6));
  // By sender: when the later of the two had started, and what was left until the receiver's end.
  const int64_t begins_us[] = {110, 120, 120};
  for (int64_t sender = 0; sender < 3; ++sender) {
    const int64_t receiver = (sender + 1) % 3;
    const RunNode* send = nullptr;
    const RunNode* receive = nullptr;
    for (const RunNode* node : NodesOf(nodes, sender)) {
      if (node->type == ChakraProtoMsg::COMM_SEND_NODE) send = node;
    }
    for (const RunNode* node : NodesOf(nodes, receiver)) {
      if (node->type == ChakraProtoMsg::COMM_RECV_NODE) receive = node;
    }
    ASSERT_NE(send, nullptr);
    ASSERT_NE(receive, nullptr);
    for (const RunNode* node : {send, receive}) {
      EXPECT_EQ(node->name, "ppermute.1");
      EXPECT_EQ(node->communication->source, sender);
      EXPECT_EQ(node->communication->target, receiver);
      EXPECT_EQ(node->communication->bytes, 256);
      EXPECT_EQ(node->instance, send->instance);
      EXPECT_EQ(node->communication->tag, send->communication->tag);
      EXPECT_EQ(node->duration_ns, (200 - begins_us[sender]) * 1000);
    }
  }
  // The two nodes of a rank are one kernel.
  EXPECT_EQ(NodesOf(nodes, 0)[0]->work, NodesOf(nodes, 0)[1]->work);
  EXPECT_THAT(nodes.dropped.at(0), IsEmpty());
  EXPECT_THAT(nodes.notes, IsEmpty());
}

// A shift without wrapping: the first only sends, the last only receives.
TEST(WorkNodesTest, TheEndsOfAChainOnlySendOrReceive) {
  const MadeUpRun run(PermuteRun({100, 100, 100}, {{0, 1}, {1, 2}}));
  const WorkNodes nodes = Make(run);
  ASSERT_THAT(NodesOf(nodes, 0), SizeIs(1));
  EXPECT_EQ(NodesOf(nodes, 0)[0]->type, ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_THAT(NodesOf(nodes, 1), SizeIs(2));
  ASSERT_THAT(NodesOf(nodes, 2), SizeIs(1));
  EXPECT_EQ(NodesOf(nodes, 2)[0]->type, ChakraProtoMsg::COMM_RECV_NODE);
}

TEST(WorkNodesTest, ARankThatSendsToItselfOrToNobodyComputes) {
  const MadeUpRun run(PermuteRun({100, 100, 100, 100}, {{0, 0}, {1, 2}}));
  const WorkNodes nodes = Make(run);
  for (const int64_t rank : {0, 3}) {
    ASSERT_THAT(NodesOf(nodes, rank), SizeIs(1)) << rank;
    EXPECT_EQ(NodesOf(nodes, rank)[0]->type, ChakraProtoMsg::COMP_NODE) << rank;
    EXPECT_EQ(NodesOf(nodes, rank)[0]->op_kind, kLocalOpKind) << rank;
    EXPECT_EQ(NodesOf(nodes, rank)[0]->duration_ns, 100000) << rank;
  }
}

// Two executions of one permute must not take each other's messages.
TEST(WorkNodesTest, ExecutionsHaveTagsOfTheirOwn) {
  HloModuleBuilder program = PartitionedProgram(2);
  auto* x = program.Add("x", "parameter", Floats(64));
  AddPermute("ppermute.1", Floats(64), {x}, {{0, 1}}, &program);
  std::vector<XSpaceProto> spaces;
  for (const int64_t partition : {0, 1}) {
    spaces.push_back(
        GpuProfile(partition, program,
                   {{7, 10, {{kSendRecv, "ppermute.1", 14, 100000, 200000, ""}}},
                    {8, 210000, {{kSendRecv, "ppermute.1", 14, 300000, 400000, ""}}}}));
  }
  const MadeUpRun run(spaces);
  const WorkNodes nodes = Make(run);
  const std::vector<const RunNode*> sends = NodesOf(nodes, 0);
  const std::vector<const RunNode*> receives = NodesOf(nodes, 1);
  ASSERT_THAT(sends, SizeIs(2));
  ASSERT_THAT(receives, SizeIs(2));
  EXPECT_NE(sends[0]->communication->tag, sends[1]->communication->tag);
  EXPECT_EQ(sends[0]->communication->tag, receives[0]->communication->tag);
  EXPECT_EQ(sends[1]->communication->tag, receives[1]->communication->tag);
}

// An all-reduce of 64 floats in two groups, as partition i runs it from starts_us[i] to ends_us[i];
// it is two kernels from the middle on.
std::vector<XSpaceProto> AllReduceRun(const std::vector<int64_t>& starts_us,
                                      const std::vector<int64_t>& ends_us,
                                      const std::vector<std::vector<int64_t>>& groups) {
  HloModuleBuilder program = PartitionedProgram(static_cast<int64_t>(starts_us.size()));
  auto* x = program.Add("x", "parameter", Floats(64));
  auto* fusion = program.Add("fusion.1", "fusion", Floats(64), {x});
  AddAllReduce("all-reduce.2", Floats(64), {fusion}, groups, &program);
  std::vector<XSpaceProto> spaces;
  for (size_t i = 0; i < starts_us.size(); ++i) {
    const int64_t middle_us = (starts_us[i] + ends_us[i]) / 2;
    spaces.push_back(
        GpuProfile(static_cast<int64_t>(i), program,
                   {{7,
                     10,
                     {{"fusion", "fusion.1", 14, 20000, 30000, ""},
                      {kNccl, "all-reduce.2", 15, starts_us[i] * 1000, middle_us * 1000, ""},
                      {kNccl, "all-reduce.2", 15, middle_us * 1000, ends_us[i] * 1000, ""}}}}));
  }
  return spaces;
}

TEST(WorkNodesTest, ACollectiveIsOneNodeThatTakesItsTransfer) {
  const MadeUpRun run(AllReduceRun({100, 110, 100, 140}, {180, 184, 190, 190}, {{2, 0}, {1, 3}}));
  const WorkNodes nodes = Make(run);
  ASSERT_THAT(nodes.graph.nodes, SizeIs(8));
  // Group {2, 0} had all members at 100, {1, 3} at 140.
  const int64_t begins_us[] = {100, 140, 100, 140};
  const int64_t ends_us[] = {180, 184, 190, 190};
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(NodesOf(nodes, rank)[0]->name, "fusion");
    EXPECT_EQ(NodesOf(nodes, rank)[0]->type, ChakraProtoMsg::COMP_NODE);
    const RunNode& reduce = *NodesOf(nodes, rank)[1];
    EXPECT_EQ(reduce.type, ChakraProtoMsg::COMM_COLL_NODE);
    EXPECT_EQ(reduce.communication->type, ChakraProtoMsg::ALL_REDUCE);
    EXPECT_EQ(reduce.communication->bytes, 256);
    EXPECT_EQ(reduce.duration_ns, (ends_us[rank] - begins_us[rank]) * 1000) << rank;
    // The last of the group ends at 190.
    EXPECT_EQ(reduce.start_ns - kProfileStartNs, (rank == 1 ? 110 : rank == 3 ? 140 : 100) * 1000);
    // Members in the order of the HLO; that of all ranks comes first and has no name.
    const ProcessGroup& group = nodes.graph.groups[reduce.communication->group];
    EXPECT_THAT(group.ranks, rank % 2 == 0 ? ElementsAre(2, 0) : ElementsAre(1, 3));
    EXPECT_NE(group.name, "");
  }
  EXPECT_EQ(NodesOf(nodes, 0)[1]->instance, NodesOf(nodes, 2)[1]->instance);
  EXPECT_NE(NodesOf(nodes, 0)[1]->instance, NodesOf(nodes, 1)[1]->instance);
  EXPECT_THAT(nodes.dropped.at(0), IsEmpty());
}

TEST(WorkNodesTest, AGroupOfOneRankComputes) {
  const MadeUpRun run(AllReduceRun({100, 100}, {180, 180}, {{0}, {1}}));
  const WorkNodes nodes = Make(run);
  EXPECT_EQ(NodesOf(nodes, 1)[1]->type, ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(NodesOf(nodes, 1)[1]->op_kind, kLocalOpKind);
}

// The second profile ended before the second execution.
TEST(WorkNodesTest, AnExecutionThatAProfileLacksIsComputationWithANote) {
  HloModuleBuilder program = PartitionedProgram(2);
  auto* x = program.Add("x", "parameter", Floats(64));
  AddAllReduce("all-reduce.2", Floats(64), {x}, {{0, 1}}, &program);
  const ProfileRun first{7, 10, {{kNccl, "all-reduce.2", 15, 100000, 200000, ""}}};
  const ProfileRun second{8, 210000, {{kNccl, "all-reduce.2", 15, 300000, 400000, ""}}};
  const MadeUpRun run({GpuProfile(0, program, {first, second}), GpuProfile(1, program, {first})});
  const WorkNodes nodes = Make(run);
  ASSERT_THAT(NodesOf(nodes, 0), SizeIs(2));
  EXPECT_EQ(NodesOf(nodes, 0)[0]->type, ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_EQ(NodesOf(nodes, 0)[1]->type, ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(NodesOf(nodes, 0)[1]->op_kind, kUnmatchedOpKind);
  EXPECT_EQ(NodesOf(nodes, 0)[1]->duration_ns, 100000);
  EXPECT_THAT(nodes.counts, ElementsAre(Pair(HasSubstr(" collective(s) lack members"), 1)));
}

TEST(WorkNodesTest, CopiesAreComputation) {
  HloModuleBuilder program = PartitionedProgram(1);
  program.Add("x", "parameter", Floats(64));
  const MadeUpRun run({GpuProfile(
      0, program,
      {{7,
        10,
        {{"MemcpyH2D", "", 14, 100000, 101000, "kind_src:pinned kind_dst:device size:64"},
         {"MemcpyD2H", "", 14, 110000, 111000, "kind_src:device kind_dst:pageable size:32"},
         {"MemcpyD2D", "", 14, 120000, 121000, "kind_src:device kind_dst:device size:16"},
         {"MemcpyH2D", "", 14, 130000, 131000, "kind_src:pinned kind_dst:device size:0"}}}})});
  for (const RunNode& node : Make(run).graph.nodes) {
    EXPECT_EQ(node.type, ChakraProtoMsg::COMP_NODE);
    EXPECT_EQ(node.op_kind, kMemcpyOpKind);
  }
}

TEST(WorkNodesTest, RanksWithoutAProfileAreNamed) {
  std::vector<XSpaceProto> spaces = AllReduceRun({100, 100, 100}, {180, 180, 180}, {{0, 1, 2}});
  spaces.erase(spaces.begin() + 1);
  const MadeUpRun run(spaces);
  EXPECT_THAT(MakeWorkNodes(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no profile has the work of rank 1 of 3")));
}

TEST(WorkNodesTest, AGpuWithoutEventsIsAnIdleRank) {
  HloModuleBuilder program = PartitionedProgram(3);
  program.Add("x", "parameter", Floats(64));
  XSpaceProto space = GpuProfile(0, program, {{7, 10, {{"kernel", "", 14, 100000, 101000, ""}}}});
  for (int p = 0; p < space.planes_size(); ++p) {
    if (space.planes(p).name() != "/device:GPU:0") continue;
    const tensorflow::profiler::XPlane first = space.planes(p);
    *space.add_planes() = first;
    space.mutable_planes()->rbegin()->set_name("/device:GPU:2");
    space.add_planes()->set_name("/device:GPU:1");
    break;
  }
  const MadeUpRun run({space});
  const WorkNodes made = Make(run);
  std::vector<std::string> nodes;
  for (const RunNode& node : made.graph.nodes) {
    nodes.push_back(absl::StrCat(node.resource.rank, " ", node.name));
  }
  EXPECT_THAT(nodes, ElementsAre("0 kernel", "1 idle", "2 kernel"));
  EXPECT_THAT(made.notes, Contains("rank 1 of 3 did nothing: no event is on its device"));
}

// The device is another process's, and so is the rank.
TEST(WorkNodesTest, ARankThatOthersMeetIsNotIdle) {
  std::vector<XSpaceProto> spaces = AllReduceRun({100, 100}, {180, 180}, {{0, 1}});
  spaces.resize(1);
  spaces[0].add_planes()->set_name("/device:GPU:1");
  const MadeUpRun run(spaces);
  EXPECT_THAT(MakeWorkNodes(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no profile has the work of rank 1 of 2")));
}

TEST(WorkNodesTest, ProfilesThatDisagreeAboutGroupsAreNamed) {
  std::vector<XSpaceProto> spaces =
      AllReduceRun({100, 100, 100, 100}, {180, 180, 180, 180}, {{0, 1}, {2, 3}});
  spaces[3] = AllReduceRun({100, 100, 100, 100}, {180, 180, 180, 180}, {{0, 2}, {1, 3}})[3];
  const MadeUpRun run(spaces);
  EXPECT_THAT(MakeWorkNodes(run.profiles, run.run),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("profile0 and profile3 disagree"),
                             HasSubstr("groups of all-reduce.2 of jit_step"))));
}

}  // namespace
}  // namespace meridian
