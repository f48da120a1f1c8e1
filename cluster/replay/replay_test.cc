// The parts of a replay that need no MPI.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "cluster/replay/gpu_libraries.h"
#include "cluster/replay/issue_order.h"
#include "cluster/replay/rank_replayer.h"
#include "cluster/replay/replay_output.h"
#include "cluster/replay/transfer_buffers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "third_party/hlo/hlo.pb.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplayTest : public ::testing::Test {
 protected:
  ExecutionGraph Read(const std::vector<std::vector<Node>>& ranks, const CommGroups& groups = {}) {
    const EtFiles files = WriteWorkload(directory_, "w", ranks);
    EtGraphReaderOptions options;
    options.groups = groups;
    absl::StatusOr<ExecutionGraph> graph = ReadEtGraph(FileSystem::Posix(), files, options);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  TemporaryDirectory directory_;
};

using IssueOrderTest = ReplayTest;

TEST_F(IssueOrderTest, IssuesWhatIsReadyWhenItsResourceIsFree) {
  // Nodes 0 to 3; two computations share a resource, the collective has another.
  const ExecutionGraph graph =
      Read({{CompNode(7, 1), CompNode(5, 1), CollectiveNode(9, ChakraProtoMsg::ALL_REDUCE, 8),
             CompNode(11, 1, {5, 9})}});
  IssueOrder order(graph, 0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(1, 2));
    EXPECT_THAT(order.TakeIssuable(), IsEmpty());
    order.Finish(1);
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(0));
    order.Finish(2);
    EXPECT_THAT(order.TakeIssuable(), IsEmpty());
    order.Finish(0);
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(3));
    EXPECT_FALSE(order.done());
    order.Finish(3);
    EXPECT_TRUE(order.done());
    order.Restart();
  }
}

TEST_F(IssueOrderTest, CollectivesOfAGroupBeginInTheOrderOfIds) {
  // Collective 2 is ready at once, but 1, of the same group, is not; 3 is of another group.
  std::vector<Node> nodes = {CompNode(0, 1),
                             CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {0}, "1"),
                             CollectiveNode(2, ChakraProtoMsg::ALL_GATHER, 64, {}, "1"),
                             CollectiveNode(3, ChakraProtoMsg::ALL_REDUCE, 8, {}, "2")};
  const ExecutionGraph graph = Read({nodes}, {{"1", {0}}, {"2", {0}}});
  IssueOrder order(graph, 0);
  EXPECT_THAT(order.TakeIssuable(), ElementsAre(0, 3));
  order.Finish(3);
  EXPECT_THAT(order.TakeIssuable(), IsEmpty());
  order.Finish(0);
  EXPECT_THAT(order.TakeIssuable(), ElementsAre(1));
  order.Finish(1);
  EXPECT_THAT(order.TakeIssuable(), ElementsAre(2));
}

TEST_F(IssueOrderTest, ReceivesOccupyNothingAndFollowEachOther) {
  const ExecutionGraph graph =
      Read({{RecvNode(1, 1, 0, 8), RecvNode(2, 1, 0, 8), SendNode(3, 0, 1, 8)},
            {SendNode(1, 1, 0, 8), SendNode(2, 1, 0, 8), RecvNode(3, 0, 1, 8)}});
  IssueOrder first(graph, 0);
  EXPECT_THAT(first.TakeIssuable(), ElementsAre(0, 2, 1));
  IssueOrder second(graph, 1);
  EXPECT_EQ(second.first_node(), 3u);
  EXPECT_THAT(second.TakeIssuable(), ElementsAre(3, 5));
}

TEST_F(IssueOrderTest, QueuedNodesFollowWhatWasIssued) {
  // Node 4 runs on a thread of the host: it waits for the end of 3, and 5 for its end.
  Node host = CompNode(4, 1, {3});
  SetBoolAttribute(kIsCpuOpAttribute, true, host.mutable_attr());
  const ExecutionGraph graph =
      Read({{CompNode(2, 1), CompNode(1, 1, {2}),
             CollectiveNode(3, ChakraProtoMsg::ALL_REDUCE, 8, {1}), host, CompNode(5, 1, {4})}});
  IssueOrder order(graph, 0, [&](NodeIndex node) {
    return graph.resource(node).kind != ResourceKind::kHostThread;
  });
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(0, 1, 2));
    order.Finish(0);
    order.Finish(1);
    EXPECT_THAT(order.TakeIssuable(), IsEmpty());
    order.Finish(2);
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(3));
    order.Finish(3);
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(4));
    order.Finish(4);
    EXPECT_TRUE(order.done());
    order.Restart();
  }
}

TEST_F(IssueOrderTest, QueuesAreNotFilledWithoutEnd) {
  std::vector<Node> nodes;
  for (uint64_t id = 0; id < 1000; ++id) nodes.push_back(CompNode(id, 1));
  const ExecutionGraph graph = Read({nodes});
  IssueOrder order(graph, 0, [](NodeIndex) { return true; });
  EXPECT_EQ(order.TakeIssuable().size(), 400u);
  order.Finish(0);
  EXPECT_THAT(order.TakeIssuable(), ElementsAre(400));
}

TEST_F(IssueOrderTest, CommunicationWaitsForTheHostGapsBeforeIt) {
  const auto gap = [](uint64_t id, int64_t duration_us, const EtIds& waits_for) {
    Node node = CompNode(id, duration_us, waits_for);
    node.set_name(std::string(kHostGapOpKind));
    return node;
  };
  // Nodes 0 to 6: the gap of node 2 is what a launch takes. Behind the collective all is called for.
  const ExecutionGraph graph =
      Read({{gap(1, 21, {}), CompNode(2, 1, {1}), gap(3, 20, {2}),
             CollectiveNode(4, ChakraProtoMsg::ALL_REDUCE, 8, {3}), CompNode(5, 1, {4}),
             CollectiveNode(6, ChakraProtoMsg::ALL_REDUCE, 8, {5}), CompNode(7, 1)}});
  IssueOrder order(graph, 0, [](NodeIndex) { return true; });
  for (const bool finishes : {false, true}) {
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(0, 1, 2));
    EXPECT_EQ(order.awaited_gap(), 0u);
    finishes ? order.Finish(0) : order.Pass(0);
    EXPECT_THAT(order.TakeIssuable(), ElementsAre(3, 4, 5, 6));
    EXPECT_EQ(order.awaited_gap(), kNoNodeIndex);
    order.Restart();
  }
  order.Restart(/*waits_for_gaps=*/false);
  EXPECT_THAT(order.TakeIssuable(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

using TransferShapeTest = ReplayTest;

TEST_F(TransferShapeTest, CountsSharesOfMembers) {
  const auto shape = [&](ChakraProtoMsg::CollectiveCommType type, int64_t bytes) {
    std::vector<std::vector<Node>> ranks(3, {CollectiveNode(1, type, bytes)});
    const absl::StatusOr<TransferShape> found = ShapeOf(Read(ranks), 0);
    EXPECT_TRUE(found.ok());
    return std::vector<int64_t>{found->element_bytes, found->count, found->send_bytes,
                                found->receive_bytes};
  };
  EXPECT_THAT(shape(ChakraProtoMsg::ALL_REDUCE, 400), ElementsAre(4, 100, 400, 400));
  EXPECT_THAT(shape(ChakraProtoMsg::ALL_REDUCE, 401), ElementsAre(1, 401, 401, 401));
  EXPECT_THAT(shape(ChakraProtoMsg::ALL_GATHER, 400), ElementsAre(4, 100, 400, 1200));
  // A third of 100 floats is 34 when rounded up.
  EXPECT_THAT(shape(ChakraProtoMsg::REDUCE_SCATTER, 400), ElementsAre(4, 34, 408, 136));
  EXPECT_THAT(shape(ChakraProtoMsg::ALL_TO_ALL, 400), ElementsAre(4, 34, 408, 408));
  EXPECT_THAT(shape(ChakraProtoMsg::BROADCAST, 400), ElementsAre(4, 100, 400, 0));
  EXPECT_THAT(shape(ChakraProtoMsg::BARRIER, 400), ElementsAre(4, 0, 0, 0));
}

TEST_F(TransferShapeTest, RefusesWhatMpiCannotDo) {
  const auto message = [&](const Node& node) {
    return std::string(ShapeOf(Read({{node}}), 0).status().message());
  };
  EXPECT_THAT(message(SendNode(1, 0, 0, 8)), HasSubstr("is a message to its own rank"));
  EXPECT_THAT(message(SendNode(1, 0, 1, 8, -2)), HasSubstr("has the tag -2"));
  EXPECT_THAT(
      message(CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, int64_t{1} << 40)),
      HasSubstr("rank 0 node 1 (n1) moves 274877906944 elements; a replay counts to 2147483647"));
}

// Machines that build may have the one library or the other.
TEST(GpuLibrariesTest, AMissingLibraryIsNamedWithWhatToInstall) {
  const absl::Status cuda = LoadCudaDriver().status();
  const absl::Status nccl = LoadNccl().status();
  if (cuda.ok() && nccl.ok()) GTEST_SKIP() << "the libraries are here";
  for (const auto& [status, text] :
       {std::pair(cuda,
                  "libcuda.so.1: cannot open shared object file: No such file or directory; "
                  "install NVIDIA's driver"),
        std::pair(nccl,
                  "libnccl.so.2: cannot open shared object file: No such file or directory; "
                  "install NCCL")}) {
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(text)));
    }
  }
}

TEST(BufferPoolTest, UsesBuffersAgain) {
  BufferPool pool;
  BufferPool::Buffer buffer = *pool.Take(1000);
  EXPECT_EQ(buffer.size, 1024u);
  const char* place = buffer.bytes.get();
  pool.GiveBack(std::move(buffer));
  buffer = *pool.Take(600);
  EXPECT_EQ(buffer.bytes.get(), place);
  EXPECT_EQ(pool.Take(1024)->size, 1024u);
  EXPECT_EQ(pool.Take(0)->bytes, nullptr);
  // More than any machine has.
  EXPECT_THAT(
      pool.Take(int64_t{1} << 60).status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no memory for a buffer of")));
  EXPECT_EQ(pool.allocated_bytes(), 2048);
}

// Two ranks that call the collectives of two groups in opposite orders.
std::vector<std::vector<Node>> Crossed() {
  return {{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "1"),
           CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}, "2")},
          {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "2"),
           CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}, "1")}};
}

// Communication is over at the second look, or never.
class FakeTransport : public Transport {
 public:
  explicit FakeTransport(int64_t rank_count) : rank_count_(rank_count) {}

  int64_t rank() const override { return 0; }
  int64_t rank_count() const override { return rank_count_; }
  absl::Status Start(NodeIndex node, int64_t /*compute_ns*/) override {
    started.push_back(node);
    pending_.push_back(node);
    return absl::OkStatus();
  }
  absl::Status Poll(std::vector<Finished>* finished) override {
    if (hangs || ++looks_ % 2 != 0) return absl::OkStatus();
    for (const NodeIndex node : pending_) finished->push_back({node, std::nullopt});
    pending_.clear();
    return absl::OkStatus();
  }
  void EnterBarrier() override {}
  absl::StatusOr<bool> Passed() override { return true; }

  bool hangs = false;
  std::vector<NodeIndex> started;

 private:
  const int64_t rank_count_;
  int64_t looks_ = 0;
  std::vector<NodeIndex> pending_;
};

using RankReplayerTest = ReplayTest;

TEST_F(RankReplayerTest, RunsEveryNodeInItsTurn) {
  const ExecutionGraph graph =
      Read({{CompNode(1, 2000), CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}),
             CompNode(3, 1000, {2})}});
  for (const ComputeMode mode : {ComputeMode::kBusy, ComputeMode::kSleep, ComputeMode::kNone}) {
    FakeTransport transport(1);
    ReplayerOptions options;
    options.compute = mode;
    RankReplayer replayer(graph, options, &transport);
    const absl::StatusOr<ReplayedStep> step = replayer.RunStep();
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(step->nodes.size(), 3u);
    EXPECT_THAT(transport.started, ElementsAre(1));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_LE(step->nodes[i].start_ns, step->nodes[i].end_ns);
      EXPECT_LE(i == 0 ? step->span.start_ns : step->nodes[i - 1].end_ns, step->nodes[i].start_ns);
    }
    EXPECT_EQ(step->span.end_ns, step->nodes[2].end_ns);
    // Busy cores change their speed, but not by half.
    if (mode != ComputeMode::kNone) {
      EXPECT_GT(step->nodes[0].end_ns - step->nodes[0].start_ns, 1'000'000);
    }
  }
}

// A device that says of gaps at once that they are about to end.
class QueueingTransport : public FakeTransport {
 public:
  QueueingTransport() : FakeTransport(1) {}
  bool IsQueued(NodeIndex) const override { return true; }
  bool IsAboutToEnd(NodeIndex gap) const override {
    asked.push_back({gap, started.size()});
    return true;
  }

  // The gaps, and how many nodes had been started by then.
  mutable std::vector<std::pair<NodeIndex, size_t>> asked;
};

TEST_F(RankReplayerTest, HoldsCommunicationBackOnceItHasConnected) {
  Node gap = CompNode(1, 2000);
  gap.set_name(std::string(kHostGapOpKind));
  const ExecutionGraph graph =
      Read({{gap, CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 8, {1}), CompNode(3, 1000, {2})}});
  QueueingTransport transport;
  RankReplayer replayer(graph, ReplayerOptions(), &transport);
  ASSERT_TRUE(replayer.RunStep().ok());
  EXPECT_THAT(transport.started, ElementsAre(0, 1, 2));
  EXPECT_THAT(transport.asked, IsEmpty());
  ASSERT_TRUE(replayer.RunStep().ok());
  EXPECT_THAT(transport.started, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(transport.asked, ElementsAre(std::pair(0u, size_t{4})));
}

TEST_F(RankReplayerTest, ADeadlockNamesTheNodeThatWaits) {
  const ExecutionGraph graph = Read(Crossed());
  FakeTransport transport(2);
  transport.hangs = true;
  ReplayerOptions options;
  options.timeout_ns = 50'000'000;
  RankReplayer replayer(graph, options, &transport);
  const absl::Status status = replayer.RunStep().status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("deadlock: nothing has moved for 0 s: rank 0 node 1 (n1) waits"));
}

using ReplayProfileTest = ReplayTest;

TEST_F(ReplayProfileTest, HasAProgramAndLinesWithoutOverlap) {
  // Two receives are under way at once.
  const ExecutionGraph graph =
      Read({{CompNode(1, 1), RecvNode(2, 1, 0, 16, 1), RecvNode(3, 1, 0, 32, 2, {1}),
             CollectiveNode(4, ChakraProtoMsg::ALL_GATHER, 64)},
            {SendNode(1, 1, 0, 16, 1), SendNode(2, 1, 0, 32, 2),
             CollectiveNode(3, ChakraProtoMsg::ALL_GATHER, 64)}});
  const CommunicationMatch match(graph);
  ReplayedStep step;
  step.span = {1000, 1100};
  step.nodes = {{1000, 1010}, {1005, 1050}, {1010, 1040}, {1050, 1100}};
  tensorflow::profiler::XSpace space;
  ASSERT_TRUE(space.ParseFromString(ReplayProfile(graph, match, 0, "host", {step})));
  ASSERT_EQ(space.planes_size(), 3);
  const tensorflow::profiler::XPlane& host = space.planes(1);
  std::vector<std::string> lines;
  for (const auto& line : host.lines()) lines.push_back(line.name());
  EXPECT_THAT(lines, ElementsAre("steps", "compute", "communication", "communication, 2"));
  // The receive that begins while the other is under way has a line of its own.
  EXPECT_EQ(host.lines(2).events_size(), 2);
  EXPECT_EQ(host.lines(3).events(0).offset_ps(), 10'000);
  EXPECT_EQ(host.lines(3).events(0).duration_ps(), 30'000);

  xla::HloProto hlo;
  ASSERT_TRUE(
      hlo.ParseFromString(space.planes(0).event_metadata().begin()->second.stats(0).bytes_value()));
  std::vector<std::string> instructions;
  for (const auto& instruction : hlo.hlo_module().computations(0).instructions()) {
    instructions.push_back(instruction.opcode() + " " +
                           std::to_string(instruction.shape().dimensions(0)) + " after " +
                           std::to_string(instruction.control_predecessor_ids_size()));
  }
  // Members of an all-gather of two get twice what they put in; the second receive waits.
  EXPECT_THAT(instructions,
              ElementsAre("parameter 64 after 0", "all-gather 128 after 0", "parameter 16 after 0",
                          "collective-permute 16 after 0", "parameter 32 after 0",
                          "collective-permute 32 after 1", "custom-call 0 after 0"));
}

using MeasuredTraceTest = ReplayTest;

TEST_F(MeasuredTraceTest, CommunicationLastsFromTheLastMembersStart) {
  ExecutionGraph graph = Read({{CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)},
                               {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8)}});
  const CommunicationMatch match(graph);
  const std::vector<ReplayedTimes> times = {{5000, 9000}, {7000, 9500}};
  const std::string prefix = directory_.PathOf("measured");
  ASSERT_TRUE(WriteMeasuredTrace(FileSystem::Posix(), match, times, {{}, {}}, prefix, &graph).ok());
  const absl::StatusOr<EtFiles> files = FindEtFiles(FileSystem::Posix(), prefix);
  ASSERT_TRUE(files.ok());
  const absl::StatusOr<ExecutionGraph> read = ReadEtGraph(FileSystem::Posix(), *files);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->start_ns(0), 5000);
  EXPECT_EQ(read->duration_ns(0), 2000);
  EXPECT_EQ(read->duration_ns(1), 2500);
}

}  // namespace
}  // namespace meridian
