// Runs the nodes of all ranks: issues what is ready and finds its resource free, and goes on when
// it is over.
#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/engine/collective_runner.h"
#include "astra_bridge/engine/deadlock.h"
#include "astra_bridge/engine/dependency_graph.h"
#include "astra_bridge/engine/event_queue.h"
#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/link_network.h"
#include "astra_bridge/engine/send_matcher.h"
#include "astra_bridge/engine/simulation_options.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/transfer_log.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

class WorkloadRunner : private CollectiveListener {
 public:
  // All must outlive this object. The workload is checked (CheckWorkload). Without a log (null)
  // nothing is written down.
  WorkloadRunner(const Workload& workload, const GroupTable& groups, const Topology& topology,
                 const SystemConfig& system, const SimulationOptions& options, TransferLog* log);

  // Runs to the end; once.
  absl::Status Run();

  // After Run: all but the log of transfers.
  SimulationResult TakeResult();

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // What nodes of a rank need; one at a time, but kComm one per comm stream and kReceive any
  // number.
  enum Resource : size_t { kHost, kDevice, kComm, kReceive, kResources };

  // Priorities of nodes, smallest first.
  using ReadyNodes = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<uint32_t>>;

  struct Rank {
    DependencyGraph graph;
    // By node: dependencies that are not over.
    std::vector<uint32_t> waits_for;
    std::array<ReadyNodes, kResources> ready;
    bool host_busy = false;
    bool device_busy = false;
    // By comm stream: the node that occupies it, or kNone.
    std::vector<uint32_t> comm_streams;
    int32_t free_comm_streams = 0;
    uint32_t issued = 0;
    uint32_t done = 0;
    int64_t finish_ns = -1;
    // By node, if asked for.
    std::vector<int64_t> issue_ns;
    std::vector<int64_t> done_ns;
  };

  // Of a message.
  struct Sender {
    int32_t rank = 0;
    uint32_t node = 0;
    // Its number in the log.
    size_t transfer = 0;
  };

  absl::Status SetUp();
  absl::Status Loop();
  void Handle(const Event& event);

  const WorkloadNode& NodeOf(int32_t rank, uint32_t node) const {
    return workload_.ranks[rank].nodes()[node];
  }
  static Resource ResourceOf(const WorkloadNode& node);

  void MakeReady(int32_t rank, uint32_t node);
  void IssueReady(int32_t rank);
  // Returns the resource whose first ready node is next, or kResources.
  static Resource NextResource(const Rank& rank);
  void Issue(int32_t rank, uint32_t node);
  void IssueCollective(int32_t rank, uint32_t node, int32_t comm_stream);
  void IssueSend(int32_t rank, uint32_t node);
  void DeliverSend(uint32_t message);
  void IssueReceive(int32_t rank, uint32_t node);
  int32_t TakeCommStream(int32_t rank, uint32_t node);
  void Release(int32_t rank, uint32_t node);
  void OnNodeDone(int32_t rank, uint32_t node);
  void OnCollectiveDone(int32_t rank, uint32_t node) override { OnNodeDone(rank, node); }
  void OnSendDone(int32_t rank, uint32_t node);
  int64_t DurationNs(const WorkloadNode& node) const;
  static SendKey KeyOf(int32_t source, int32_t destination, const WorkloadNode& node);

  // Notes the end of a rank that has nothing to do any more.
  void FinishIfIdle(int32_t rank);
  void Fail(int32_t rank, uint32_t node, const absl::Status& reason);
  // What is wrong with a rank whose nodes wait for each other.
  absl::Status Circle(int32_t rank) const;
  // What is wrong when no event is left, but ranks are.
  absl::Status Deadlock() const;

  const Workload& workload_;
  const GroupTable& groups_;
  const Topology& topology_;
  const SystemConfig& system_;
  const SimulationOptions& options_;
  TransferLog* const log_;

  EventQueue events_;
  LinkNetwork network_;
  CollectiveRunner collectives_;
  std::vector<Rank> ranks_;
  SendMatcher sends_;
  // By message.
  std::vector<Sender> senders_;
  int64_t nodes_ = 0;
  int64_t nodes_done_ = 0;
  int32_t ranks_done_ = 0;
  absl::Status status_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_
