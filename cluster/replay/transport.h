// SPDX-License-Identifier: Apache-2.0
// What carries the communication of a replay: MPI (mpi_transport.h), or something simple in tests.
// No call waits for other ranks; a transport makes progress only while it is called.
#ifndef CLUSTER_REPLAY_TRANSPORT_H_
#define CLUSTER_REPLAY_TRANSPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

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

  // A side channel to rank 0. A message that cannot be sent at once, because the one before is
  // still under way, is dropped. Returns what has come in, with the senders.
  virtual void SendToFirst(const std::string& message) = 0;
  virtual std::vector<std::pair<int64_t, std::string>> ReceiveAtFirst() = 0;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_TRANSPORT_H_
