// SPDX-License-Identifier: Apache-2.0
// The order in which one rank of a workload issues its nodes. A node is issued when
//
//   - all that it waits for has finished,
//   - its thread or stream is free (a receive occupies nothing, it only waits), and
//   - what comes before it in its sequence has been issued: the collectives of a group, and the
//     messages of one source, target and tag, which all members must begin in the order of ids.
//
// Of nodes that are ready for one resource the smallest id goes first. Knows nothing of time.
//
// Queued nodes go to a device that keeps their order itself: they are issued when the queued nodes
// that they wait for have been issued, on a stream that is not free, too, the smallest id first.
// As NCCL has no tags, the messages of one source and target are one sequence there.
//
// A host gap is the job's host, which had not called for what follows. Communication behind one that
// is longer than a launch takes, and queued nodes of greater ids, are not issued before the gap has
// passed: NCCL's threads receive from the call on, not from when the stream comes to it.
#ifndef CLUSTER_REPLAY_ISSUE_ORDER_H_
#define CLUSTER_REPLAY_ISSUE_ORDER_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class IssueOrder {
 public:
  // The graph, which must outlive the order, holds the nodes of a rank one behind the other, as
  // ReadEtGraph does.
  IssueOrder(
      const ExecutionGraph& graph, int64_t rank,
      absl::FunctionRef<bool(NodeIndex)> is_queued = [](NodeIndex) { return false; });

  // The nodes of the rank are those from first_node() on.
  NodeIndex first_node() const { return first_node_; }
  size_t node_count() const { return node_count_; }

  // Begins from the start: nothing is issued. Host gaps hold communication back if asked for.
  void Restart(bool waits_for_gaps = true);

  // Returns the nodes that can be issued now, in the order in which to do it; they count as issued.
  std::vector<NodeIndex> TakeIssuable();

  // The node was issued and is over.
  void Finish(NodeIndex node);

  // The host gap that holds the next communication back, or kNoNodeIndex. Pass says that it is over,
  // or as good as over.
  NodeIndex awaited_gap() const { return awaited_gap_; }
  void Pass(NodeIndex gap);

  bool done() const { return finished_count_ == node_count_; }
  // The nodes that were issued and are not over.
  const std::set<NodeIndex>& under_way() const { return under_way_; }

 private:
  using ReadyNode = std::pair<uint64_t, NodeIndex>;
  using ReadyNodes =
      std::priority_queue<ReadyNode, std::vector<ReadyNode>, std::greater<ReadyNode>>;
  // What nodes of one thread or stream queue for.
  struct Slot {
    bool is_free = true;
    ReadyNodes queue;
  };

  void LinkSequences();
  bool IsQueued(NodeIndex node) const { return is_queued_[node - first_node_]; }
  bool Occupies(NodeIndex node) const;
  // The host gap, or kNoNodeIndex, behind which the host calls for a queued node that is ready.
  NodeIndex LastGapBefore(NodeIndex node) const;
  // One of the things that the node waits for is there.
  void Approach(NodeIndex node);
  void MarkIssued(NodeIndex node);

  const ExecutionGraph& graph_;
  const SuccessorIndex successors_;
  NodeIndex first_node_ = 0;
  size_t node_count_ = 0;
  // By position of the node: the next of its sequence or kNoNodeIndex; whether one is before it.
  std::vector<NodeIndex> next_in_sequence_;
  std::vector<bool> has_predecessor_;
  // By position.
  std::vector<bool> is_queued_;

  bool waits_for_gaps_ = true;
  // By position: how many things the node still waits for.
  std::vector<uint32_t> waiting_;
  std::set<NodeIndex> under_way_;
  size_t finished_count_ = 0;
  // What queues for each resource of the graph.
  std::vector<Slot> slots_;
  std::vector<ResourceIndex> touched_slots_;
  std::vector<NodeIndex> issuable_;
  // By position: of queued nodes, the last host gap up to it since communication; whether it, a gap,
  // has passed.
  std::vector<NodeIndex> last_gap_;
  std::vector<bool> has_passed_;
  NodeIndex awaited_gap_ = kNoNodeIndex;
  // Queued nodes that can be issued, and how many are under way.
  ReadyNodes ready_;
  size_t queued_count_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_ISSUE_ORDER_H_
