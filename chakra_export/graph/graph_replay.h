// SPDX-License-Identifier: Apache-2.0
// Runs a graph again, event by event: a node is issued when everything it waits for has finished
// and its resource is free, and ends when it has taken its time. Ranks meet in communication.
//
//   collective   each member waits from its issue until the last one is issued; then it takes what
//                the pricer says
//   message      rendezvous: the same between send and receive. Eager: the send takes its time at
//                once, the receive ends when that is over, or when it is issued if that is later
//
// Time is integer nanoseconds from 0, when all ranks begin.
#ifndef CHAKRA_EXPORT_GRAPH_GRAPH_REPLAY_H_
#define CHAKRA_EXPORT_GRAPH_GRAPH_REPLAY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// How many nodes run at once. Of those that are ready, the smallest id of the rank goes first.
// Receives never occupy anything: they only wait.
enum class ReplayResources : uint8_t {
  // Every node that is ready runs at once.
  kUnlimited,
  // Each thread and each stream runs one node at a time.
  kPerResource,
  // As in ASTRA-sim: per rank one host node, one device computation, one communication.
  kSimulator,
};

enum class SendMode : uint8_t {
  // A send waits for its receive, as in NCCL, and in ASTRA-sim with --rendezvous-protocol.
  kRendezvous,
  // A send does not wait for its receive, as in ASTRA-sim by default.
  kEager,
  // Rendezvous, but eager for workloads in which ranks would wait for each other for ever then.
  kRendezvousIfPossible,
};

// Says how long a communication takes. `members` are as in CommunicationMatch (an eager send is
// priced with its receive) and begin at start_ns; the pricer fills in how long each takes from
// then, in the same order. An error ends the replay.
using CommunicationPricer = std::function<absl::Status(
    absl::Span<const NodeIndex> members, int64_t start_ns, absl::Span<int64_t> durations_ns)>;

struct ReplayOptions {
  ReplayResources resources = ReplayResources::kPerResource;
  SendMode send_mode = SendMode::kRendezvous;
  // Prices communication; when null, every member takes its own duration.
  CommunicationPricer pricer;
};

struct GraphReplay {
  // When each node was issued and when it ended, in nanoseconds, indexed by node.
  std::vector<int64_t> starts_ns;
  std::vector<int64_t> ends_ns;
  // By node: the node whose end let it be issued, which is the last of its dependencies or what
  // occupied its resource. kNoNodeIndex for those issued at 0 without waiting.
  std::vector<NodeIndex> causes;
  // When the last node ended.
  int64_t makespan_ns = 0;
};

// FailedPrecondition when nodes wait for each other for ever, naming them, and for a match with
// problems; OutOfRange when the time does not fit.
absl::StatusOr<GraphReplay> ReplayGraph(const ExecutionGraph& graph,
                                        const CommunicationMatch& match,
                                        const ReplayOptions& options = {});

// Runs the graph as ASTRA-sim would, but with the nodes' own durations.
absl::StatusOr<GraphReplay> ReplayAsSimulator(const ExecutionGraph& graph,
                                              const CommunicationMatch& match,
                                              SendMode send_mode = SendMode::kEager);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_GRAPH_REPLAY_H_
