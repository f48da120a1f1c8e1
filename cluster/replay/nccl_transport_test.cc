// Replays over NCCL, on stand-ins for NCCL and the driver (testing/stand_in_gpu.c).
#include "cluster/replay/nccl_transport.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "cluster/replay/rank_replayer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Rank 0 of two that are always at the barrier.
class AloneAtBarriers : public Transport {
 public:
  int64_t rank() const override { return 0; }
  int64_t rank_count() const override { return 2; }
  absl::Status Start(NodeIndex, int64_t) override { return absl::InternalError("not NCCL's"); }
  absl::Status Poll(std::vector<Finished>*) override { return absl::InternalError("not NCCL's"); }
  void EnterBarrier() override {}
  absl::StatusOr<bool> Passed() override { return true; }
};

class NcclTransportTest : public ::testing::Test {
 protected:
  ~NcclTransportTest() override {
    unsetenv("STAND_IN_CALLS");
    unsetenv("STAND_IN_FAIL");
    unsetenv("STAND_IN_SPEED");
  }

  absl::Status Open(const std::vector<std::vector<Node>>& ranks, const CommGroups& groups = {}) {
    const EtFiles files = WriteWorkload(directory_, "w", ranks);
    EtGraphReaderOptions options;
    options.groups = groups;
    graph_ = *ReadEtGraph(FileSystem::Posix(), files, options);
    absl::StatusOr<std::unique_ptr<NcclTransport>> made = NcclTransport::Create(graph_, 5, &host_);
    if (!made.ok()) return made.status();
    transport_ = *std::move(made);
    setenv("STAND_IN_CALLS", directory_.PathOf("calls").c_str(), 1);
    return transport_->MakeCommunicators(*transport_->NewIds());
  }

  absl::StatusOr<ReplayedStep> Run() {
    RankReplayer replayer(graph_, ReplayerOptions(), transport_.get());
    return replayer.RunStep();
  }

  // Returns the calls whose names begin so.
  std::vector<std::string> Calls(const std::string& prefix) const {
    std::ifstream file(directory_.PathOf("calls"));
    std::vector<std::string> calls;
    for (std::string line; std::getline(file, line);) {
      if (absl::StartsWith(line, prefix)) calls.push_back(line);
    }
    return calls;
  }

  TemporaryDirectory directory_;
  AloneAtBarriers host_;
  ExecutionGraph graph_;
  std::unique_ptr<NcclTransport> transport_;
};

TEST_F(NcclTransportTest, StreamsWaitForEachOther) {
  // Two computations on one stream; the collective waits for the first, the last for both.
  const std::vector<Node> nodes = {CompNode(1, 2000),
                                   CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 400, {1}),
                                   CompNode(3, 3000, {1}), CompNode(4, 1000, {2, 3})};
  ASSERT_TRUE(Open({nodes, {CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 400)}}).ok());
  const absl::StatusOr<ReplayedStep> step = Run();
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_EQ(step->nodes.size(), 4u);
  const auto took_us = [&](size_t node) {
    return (step->nodes[node].end_ns - step->nodes[node].start_ns + 500) / 1000;
  };
  // What the overhead of kernels was taken for on a busy machine.
  EXPECT_NEAR(took_us(0), 2000, 100);
  EXPECT_NEAR(took_us(1), 300, 2);
  EXPECT_NEAR(took_us(2), 3000, 30);
  // Kernels and events tell the time on clocks that are read one after the other.
  EXPECT_GE(step->nodes[1].start_ns, step->nodes[0].end_ns - 50'000);
  // The collective is over while the third node runs.
  EXPECT_LT(step->nodes[1].end_ns, step->nodes[2].end_ns);
  EXPECT_GE(step->nodes[3].start_ns, step->nodes[2].end_ns);
  EXPECT_EQ(step->span.end_ns, step->nodes[3].end_ns);
  EXPECT_GE((step->span.end_ns - step->span.start_ns) / 1000, 5900);
  // All is on the streams before the first kernel ends: the collective's stream waits, then the
  // computation's.
  EXPECT_EQ(Calls("cuStreamWaitEvent").size(), 2u);
  // The third node follows the first, the last one has waited for another stream.
  std::vector<std::string> kernels = Calls("cuLaunchKernel");
  ASSERT_EQ(kernels.size(), 8u);
  // The barrier's readings of the clocks come before.
  kernels.erase(kernels.begin(), kernels.begin() + 5);
  EXPECT_THAT(kernels[0], EndsWith(" 0"));
  EXPECT_THAT(kernels[1], EndsWith(" 3000000 1"));
  EXPECT_THAT(kernels[2], EndsWith(" 0"));
}

TEST_F(NcclTransportTest, SaysThatAKernelIsAboutToEndWhenACallTakesAsLong) {
  const std::vector<Node> nodes = {CompNode(1, 20'000), CompNode(2, 20'000)};
  ASSERT_TRUE(Open({nodes, nodes}).ok());
  ASSERT_TRUE(*transport_->Passed());
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(transport_->Start(0, 20'000'000).ok());
  ASSERT_TRUE(transport_->Start(1, 20'000'000).ok());
  for (NodeIndex node = 0; node < 2; ++node) {
    while (!transport_->IsAboutToEnd(node)) {
    }
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(19 + 20 * node));
  }
}

TEST_F(NcclTransportTest, TimesLateInAStepAreAsFine) {
  // 100 s on the GPU's clock. In floats of milliseconds from the beginning that is told in 8 us.
  const std::vector<Node> nodes = {CompNode(1, 100'000'000),
                                   CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 400, {1}),
                                   CollectiveNode(3, ChakraProtoMsg::ALL_REDUCE, 400, {2}),
                                   CollectiveNode(4, ChakraProtoMsg::ALL_REDUCE, 400, {3})};
  ASSERT_TRUE(Open({nodes, {CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 400)}}).ok());
  setenv("STAND_IN_SPEED", "1000", 1);
  const absl::StatusOr<ReplayedStep> step = Run();
  ASSERT_TRUE(step.ok()) << step.status();
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_NEAR(step->nodes[i].end_ns - step->nodes[i].start_ns, 300'000, 100);
  }
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_NEAR(step->nodes[i].start_ns, step->nodes[i - 1].end_ns, 100);
  }
}

TEST_F(NcclTransportTest, EveryKindIsACallOfNccl) {
  std::vector<Node> nodes;
  for (int type = ChakraProtoMsg::CollectiveCommType_MIN;
       type <= ChakraProtoMsg::CollectiveCommType_MAX; ++type) {
    const auto kind = static_cast<ChakraProtoMsg::CollectiveCommType>(type);
    nodes.push_back(CollectiveNode(nodes.size() + 1, kind, 402));
  }
  nodes.push_back(CollectiveNode(20, ChakraProtoMsg::REDUCE, 400, {}, "1"));
  ASSERT_TRUE(Open({nodes, nodes}, {{"1", {1, 0}}}).ok());
  // Of two ranks each; in the second group this one is the second.
  EXPECT_THAT(Calls("ncclCommInitRank"),
              ElementsAre("ncclCommInitRank 2 1 0", "ncclCommInitRank 2 2 1"));
  ASSERT_TRUE(Run().ok());
  std::vector<std::string> calls = Calls("nccl");
  calls.erase(calls.begin(), calls.begin() + 4);
  // Count, type (1 bytes, 7 floats), communicator. Gather, scatter and all-to-all are messages.
  EXPECT_THAT(
      calls, ElementsAre("ncclAllReduce 402 1 1", "ncclReduce 402 1 1", "ncclAllGather 402 1 1",
                         "ncclGroupStart 0 0 0", "ncclSend 402 1 1", "ncclRecv 402 1 1",
                         "ncclRecv 402 1 1", "ncclGroupEnd 0 0 0", "ncclGroupStart 0 0 0",
                         "ncclSend 201 1 1", "ncclRecv 201 1 1", "ncclSend 201 1 1",
                         "ncclGroupEnd 0 0 0", "ncclBroadcast 402 1 1", "ncclGroupStart 0 0 0",
                         "ncclSend 201 1 1", "ncclRecv 201 1 1", "ncclSend 201 1 1",
                         "ncclRecv 201 1 1", "ncclGroupEnd 0 0 0", "ncclReduceScatter 201 1 1",
                         "ncclReduceScatter 201 1 1", "ncclAllReduce 1 7 1", "ncclReduce 100 7 2"));
}

TEST_F(NcclTransportTest, MessagesOfAPairHaveACommunicator) {
  ASSERT_TRUE(Open({{SendNode(1, 0, 1, 8, 3), RecvNode(2, 1, 0, 0)},
                    {RecvNode(1, 0, 1, 8, 3), SendNode(2, 1, 0, 0)}})
                  .ok());
  ASSERT_TRUE(Run().ok());
  // The group of all, and one for each direction, whose first is the sender.
  EXPECT_THAT(Calls("ncclCommInitRank"),
              ElementsAre("ncclCommInitRank 2 1 0", "ncclCommInitRank 2 2 1"));
  // A message of nothing is one element.
  EXPECT_THAT(Calls("ncclSend"), ElementsAre("ncclSend 2 7 1"));
  EXPECT_THAT(Calls("ncclRecv"), ElementsAre("ncclRecv 1 7 2"));
}

TEST_F(NcclTransportTest, TagsThatChangeTheOrderAreRefused) {
  EXPECT_THAT(Open({{SendNode(1, 0, 1, 8, 1), SendNode(2, 0, 1, 8, 2)},
                    {RecvNode(1, 0, 1, 8, 2), RecvNode(2, 0, 1, 8, 1)}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 1 receives the messages of rank 0 in another order")));
}

TEST_F(NcclTransportTest, ErrorsSayWhoFailed) {
  const std::vector<std::vector<Node>> ranks = {{SendNode(7, 0, 1, 8)}, {RecvNode(7, 0, 1, 8)}};
  setenv("STAND_IN_FAIL", "cuInit", 1);
  EXPECT_THAT(Open(ranks), StatusIs(absl::StatusCode::kUnavailable, "cuInit: made to fail"));
  setenv("STAND_IN_FAIL", "ncclCommInitRank", 1);
  EXPECT_THAT(Open(ranks), StatusIs(absl::StatusCode::kUnavailable,
                                    "ncclCommInitRank: made to fail (NCCL_DEBUG=WARN says more)"));
  setenv("STAND_IN_FAIL", "ncclSend", 1);
  ASSERT_TRUE(Open(ranks).ok());
  EXPECT_THAT(Run().status(), StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("rank 0 node 7 (n7): ncclSend: made to fail")));
  transport_ = nullptr;
  EXPECT_THAT(Calls("cuDevicePrimaryCtxRelease"), ElementsAre("cuDevicePrimaryCtxRelease 1 0 0"));
}

}  // namespace
}  // namespace meridian
