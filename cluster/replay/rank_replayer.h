// SPDX-License-Identifier: Apache-2.0
// Runs the nodes of one rank, once or again and again: communication over a transport, computation
// as work or sleep of the length that the trace gives, or on the transport's device. One thread does
// both, as MPI makes progress only while it is called: it looks after the transfers under way every
// few microseconds.
#ifndef CLUSTER_REPLAY_RANK_REPLAYER_H_
#define CLUSTER_REPLAY_RANK_REPLAYER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/issue_order.h"

namespace meridian {

// When something began and ended, in Unix time.
struct ReplayedTimes {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// What carries the communication of a replay: MPI (mpi_transport.h), NCCL (nccl_transport.h), or
// something simple in tests. No call waits for other ranks; a transport makes progress only while it
// is called.
class Transport {
 public:
  struct Finished {
    NodeIndex node = 0;
    // As a device measured it; absent where the replayer's own look at the clock is as good.
    std::optional<ReplayedTimes> times;
  };

  virtual ~Transport() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t rank_count() const = 0;

  // True for nodes that a device runs, in the order of their streams and behind what they wait for:
  // they are started while that is under way.
  virtual bool IsQueued(NodeIndex) const { return false; }

  // Begins a node of this rank: its communication or, of a queued node, its computation.
  virtual absl::Status Start(NodeIndex node, int64_t compute_ns) = 0;

  // Appends the nodes that are over, each once.
  virtual absl::Status Poll(std::vector<Finished>* finished) = 0;

  // True of a queued node once what its end lets the host call for may as well be called for.
  virtual bool IsAboutToEnd(NodeIndex) const { return true; }

  // Leaves the processor to others, when nothing was over and nothing is to be watched closely.
  virtual void Rest();

  // Comes to a barrier of all ranks. Passed returns true once all have come to it, false before.
  virtual void EnterBarrier() = 0;
  virtual absl::StatusOr<bool> Passed() = 0;
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

// One pass over the nodes of a rank.
struct ReplayedStep {
  // From when all ranks had come to the barrier before it, to the end of the rank's last node.
  ReplayedTimes span;
  // When each node ran, by position among the rank's nodes.
  std::vector<ReplayedTimes> nodes;
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
  void Finish(const Transport::Finished& finished, ReplayedStep* step);
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
  // In its first pass a rank holds nothing back: libraries connect then, and wait for others in calls.
  bool is_connected_ = false;
  // How many nodes the transport has under way.
  int64_t transfers_ = 0;
  // On a clock that nobody sets.
  int64_t last_progress_ns_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_RANK_REPLAYER_H_
