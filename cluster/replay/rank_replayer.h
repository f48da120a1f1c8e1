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
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/issue_order.h"
#include "cluster/replay/stall.h"
#include "cluster/replay/transport.h"

namespace meridian {

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
  // Nothing has moved anywhere for so long: a deadlock.
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
  // All must outlive the replayer. The match must have no problems.
  RankReplayer(const ExecutionGraph& graph, const CommunicationMatch& match,
               const ReplayerOptions& options, Transport* transport);

  // Waits until all ranks begin and runs all nodes. On rank 0: Aborted for a deadlock, Unavailable
  // when a rank no longer answers; both say who waits for whom.
  absl::StatusOr<ReplayedStep> RunStep();

  // Waits until all ranks are here. To be called behind the last step, so that rank 0 watches to
  // the end. Errors as above.
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
  // Called all the time: tells rank 0 how this rank is, and there judges how all are.
  absl::Status Watch();
  absl::Status JudgeStall(int64_t now_ns);

  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const ReplayerOptions options_;
  Transport& transport_;
  IssueOrder issue_order_;
  // Steps of the busy loop that take a microsecond.
  double turns_per_us_ = 1;
  std::vector<Computation> computations_;
  // How many transfers are under way.
  int64_t transfers_ = 0;
  // These and what follows on a clock that nobody sets.
  int64_t last_progress_ns_ = 0;
  int64_t next_report_ns_ = 0;
  // At rank 0, by rank: the state, and when it was heard.
  std::vector<RankState> states_;
  std::vector<int64_t> heard_ns_;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_RANK_REPLAYER_H_
