// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI job as the processes of a run: trace n is that of rank n modulo their number.
#ifndef TOOLS_CLUSTER_COMBINE_MPI_PROCESSES_H_
#define TOOLS_CLUSTER_COMBINE_MPI_PROCESSES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/pipeline/run_processes.h"

namespace meridian {

class MpiProcesses : public RunProcesses {
 public:
  // From MPI_Init to MPI_Finalize: there is one object, and all output comes before its end.
  MpiProcesses();
  ~MpiProcesses() override;

  // A single rank, too, writes as several do.
  bool is_alone() const override { return false; }
  bool is_first() const override { return rank_ == 0; }
  bool Has(size_t trace) const override { return OwnerOf(trace) == rank_; }
  // Names the process "rank 3 (host)".
  absl::Status Agree(const absl::Status& status) override;
  void Broadcast(std::string* bytes) override;
  absl::Status Gather(size_t traces, MakeBytes make, TakeBytes take) override;
  absl::Status Scatter(size_t traces, MakeBytes make, TakeBytes take) override;

 private:
  int OwnerOf(size_t trace) const { return static_cast<int>(trace % ranks_); }
  void BroadcastFrom(int root, std::string* bytes);

  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace meridian

#endif  // TOOLS_CLUSTER_COMBINE_MPI_PROCESSES_H_
