// SPDX-License-Identifier: Apache-2.0
// Runs the nodes of one rank, once or again and again: communication over a transport, computation
// as work or sleep of the length that the trace gives. One thread does both, as MPI makes progress
// only while it is called: it looks after the transfers under way every few microseconds.
#ifndef CLUSTER_REPLAY_RANK_REPLAYER_H_
#define CLUSTER_REPLAY_RANK_REPLAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/issue_order.h"

namespace meridian {

// What carries the communication of a replay: MPI (mpi_transport.h), or something simple in tests.
// No call waits for other ranks; a transport makes progress only while it is called.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t rank_count() const = 0;

  // Begins the communication of a node of this rank.
  virtual absl::Status Start(NodeIndex node) = 0;

  // Appends the nodes whose communication is over, each once.
  virtual void Poll(std::vector<NodeIndex>* finished) = 0;

  // Comes to a barrier of all ranks. Passed returns true once all have come to it, false before.
  virtual void EnterBarrier() = 0;
  virtual bool Passed() = 0;
};

enum class ComputeMode : uint8_t {
  // So much work that it takes the node's duration on an idle core: longer beside others.
  kBusy,
  // The core is free meanwhile, but for looking after transfers.
  kSleep,
  // Computation takes no time: only communication is replayed.
  kNone,
};

struct ReplayerOptions {
  ComputeMode compute = ComputeMode::kBusy;
  // Nothing has moved on the rank for so long: a deadlock.
  int64_t timeout_ns = 60'000'000'000;
};

// When something began and ended, in Unix time.
struct NodeTimes {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// One pass over the nodes of a rank.
struct ReplayedStep {
  // From when all ranks had come to the barrier before it, to the end of the rank's last node.
  NodeTimes span;
  // When each node ran, by position among the rank's nodes.
  std::vector<NodeTimes> nodes;
};

class RankReplayer {
 public:
  // Both must outlive the replayer. The graph's communication must match (CommunicationMatch).
  RankReplayer(const ExecutionGraph& graph, const ReplayerOptions& options, Transport* transport);

  // Waits until all ranks begin and runs all nodes. Aborted for a deadlock: says in which node the
  // rank waits.
  absl::StatusOr<ReplayedStep> RunStep();

  // Waits until all ranks are here. Errors as above.
  absl::Status Meet();

 private:
  struct Computation {
    NodeIndex node;
    // What is left to do, or when it is over.
    int64_t rest_ns;
    int64_t deadline_ns;
  };

  absl::Status Issue(NodeIndex node, ReplayedStep* step);
  void Finish(NodeIndex node, ReplayedStep* step);
  // Works on one computation for a moment.
  void Compute(ReplayedStep* step);
  absl::Status Watch() const;

  const ExecutionGraph& graph_;
  const ReplayerOptions options_;
  Transport& transport_;
  IssueOrder issue_order_;
  // Steps of the busy loop that take a microsecond.
  double turns_per_us_ = 1;
  std::vector<Computation> computations_;
  // How many transfers are under way.
  int64_t transfers_ = 0;
  // On a clock that nobody sets.
  int64_t last_progress_ns_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_RANK_REPLAYER_H_
