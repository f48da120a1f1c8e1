// SPDX-License-Identifier: Apache-2.0
// Communication over MPI: nonblocking collectives on a communicator for each group of the workload,
// messages on one of their own. An error of MPI ends the program, as MPI has it.
#ifndef CLUSTER_REPLAY_MPI_TRANSPORT_H_
#define CLUSTER_REPLAY_MPI_TRANSPORT_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/mpi/mpi_processes.h"
#include "cluster/replay/rank_replayer.h"
#include "cluster/replay/transfer_buffers.h"

namespace meridian {

class MpiTransport : public Transport {
 public:
  // The ranks of the graph, which must outlive the transport, are those of the processes.
  // InvalidArgument for what ShapeOf refuses, and for tags that this MPI does not have.
  static absl::StatusOr<std::unique_ptr<MpiTransport>> Create(const MpiProcesses& processes,
                                                              const ExecutionGraph& graph);

  int64_t rank() const override { return rank_; }
  int64_t rank_count() const override { return rank_count_; }
  absl::Status Start(NodeIndex node, int64_t compute_ns) override;
  absl::Status Poll(std::vector<Finished>* finished) override;
  void EnterBarrier() override;
  absl::StatusOr<bool> Passed() override;

  // Makes the communicators of the groups; all ranks call this before anything else.
  void MakeCommunicators();

 private:
  struct Transfer {
    NodeIndex node;
    BufferPool::Buffer sent;
    BufferPool::Buffer received;
  };

  MpiTransport(const MpiProcesses& processes, const ExecutionGraph& graph)
      : graph_(graph), rank_(processes.rank()), rank_count_(processes.rank_count()) {}

  const ExecutionGraph& graph_;
  const int64_t rank_;
  const int64_t rank_count_;
  // By group of the graph; MPI_COMM_NULL for those without this rank.
  std::vector<MPI_Comm> groups_;
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm barriers_ = MPI_COMM_NULL;
  BufferPool buffers_;
  // The transfers under way, in two columns.
  std::vector<Transfer> transfers_;
  std::vector<MPI_Request> requests_;
  std::vector<int> done_;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
};

}  // namespace meridian

#endif  // CLUSTER_REPLAY_MPI_TRANSPORT_H_
