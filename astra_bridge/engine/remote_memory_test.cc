// Accesses to remote memory in a simulated run, worked by hand.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RemoteMemory::Kind;

class RemoteMemorySimulationTest : public testing::Test {
 protected:
  RemoteMemorySimulationTest() {
    system_.remote_memory.latency_ns = 100;
    system_.remote_memory.bytes_per_ns = 10;
    system_.remote_memory.nodes = 2;
    system_.remote_memory.npus_per_node = 2;
  }

  std::vector<int64_t> FinishNs(Kind kind, const Workload& workload) {
    system_.remote_memory.kind = kind;
    const int32_t ranks = static_cast<int32_t>(workload.ranks.size());
    const absl::StatusOr<SimulationResult> result =
        Simulate(workload, Network({Dimension(BlockShape::kFullyConnected, ranks)}), system_, {});
    EXPECT_OK(result.status());
    return result.ok() ? result->finish_ns : std::vector<int64_t>();
  }

  SystemConfig system_ = SystemWith({"direct"});
};

// 1,009 bytes take 100 + 100.9 ns, cut off: 200 ns. A rank asks for its second access when the first
// is over, and waits behind those who asked before.
TEST_F(RemoteMemorySimulationTest, RanksOfOneMemoryTakeTurns) {
  Workload workload = EveryRank(4, MemoryNode(1, 1009));
  for (RankWorkload& rank : workload.ranks) rank.Add(MemoryNode(2, 1009), {1});
  EXPECT_THAT(FinishNs(Kind::kPerNpu, workload), ElementsAre(400, 400, 400, 400));
  EXPECT_THAT(FinishNs(Kind::kPerNode, workload), ElementsAre(600, 800, 600, 800));
  EXPECT_THAT(FinishNs(Kind::kPool, workload), ElementsAre(1000, 1200, 1400, 1600));
}

// The device computes beside it, the host does its own, and a message has to wait: 1 MiB takes
// 20,031 ns.
TEST_F(RemoteMemorySimulationTest, AnAccessOccupiesTheCommStream) {
  Workload workload = EveryRank(2, MemoryNode(1, 10'000));
  workload.ranks[0].Add(ComputeNode(2, 1000));
  EXPECT_THAT(FinishNs(Kind::kPerNpu, workload), ElementsAre(1100, 1100));
  WorkloadNode host = MemoryNode(3, 20'000);
  host.on_host = true;
  workload.ranks[0].Add(host);
  EXPECT_THAT(FinishNs(Kind::kPerNpu, workload), ElementsAre(2100, 1100));
  workload.ranks[0].Add(SendNode(4, 1, 1 << 20, 0));
  workload.ranks[1].Add(ReceiveNode(4, 0, 1 << 20, 0));
  EXPECT_THAT(FinishNs(Kind::kPerNpu, workload), ElementsAre(21131, 21131));
}

TEST_F(RemoteMemorySimulationTest, ReplayedAccessesLastTheirDuration) {
  system_.replay_only = true;
  WorkloadNode node = MemoryNode(1, 1000);
  node.duration_ns = 7000;
  EXPECT_THAT(FinishNs(Kind::kNone, EveryRank(2, node)), ElementsAre(7000, 7000));
}

TEST_F(RemoteMemorySimulationTest, ThereMustBeAMemory) {
  const auto fault = [&](int64_t bytes) {
    return Simulate(EveryRank(2, MemoryNode(1, bytes)),
                    Network({Dimension(BlockShape::kFullyConnected, 2)}), system_, {})
        .status();
  };
  EXPECT_THAT(fault(1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--remote_memory")));
  system_.remote_memory.kind = Kind::kPool;
  EXPECT_THAT(fault(-1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor_size -1")));
  system_.remote_memory.kind = Kind::kPerNode;
  EXPECT_OK(fault(1));
  system_.remote_memory.nodes = system_.remote_memory.npus_per_node = 1;
  EXPECT_THAT(
      fault(1),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr(
              "remote memory: num-nodes 1 x num-npus-per-node 1 are fewer than the 2 NPUs of")));
}

}  // namespace
}  // namespace meridian
