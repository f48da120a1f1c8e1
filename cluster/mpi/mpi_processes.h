// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI job as the processes of a run: trace n is that of rank n modulo their number.
//
//   int main(int argc, char** argv) {
//     MpiProcesses processes;
//     return RunMpiCommand(&processes, command, argc, argv);
//   }
#ifndef CLUSTER_MPI_MPI_PROCESSES_H_
#define CLUSTER_MPI_MPI_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/command.h"
#include "trace_alignment/run/run_processes.h"

namespace meridian {

class MpiProcesses : public RunProcesses {
 public:
  // From MPI_Init to MPI_Finalize: there is one object, and all output comes before its end.
  MpiProcesses();
  ~MpiProcesses() override;

  int64_t rank() const { return rank_; }
  int64_t rank_count() const { return ranks_; }

  // A single rank, too, writes as several do.
  bool is_alone() const override { return false; }
  bool is_first() const override { return rank_ == 0; }
  bool Has(size_t trace) const override { return OwnerOf(trace) == rank_; }
  // Names the process "rank 3 (host)".
  absl::Status Agree(const absl::Status& status) override;
  void Broadcast(std::string* bytes) override;
  absl::Status Gather(size_t traces, MakeBytes make, TakeBytes take) override;
  absl::Status Scatter(size_t traces, MakeBytes make, TakeBytes take) override;

  // Returns the largest of each of the values over all ranks, which have as many.
  std::vector<int64_t> LargestOf(std::vector<int64_t> values);

  // Ends all ranks.
  [[noreturn]] void Abort(int exit_code);

 private:
  int OwnerOf(size_t trace) const { return static_cast<int>(trace % ranks_); }
  void BroadcastFrom(int root, std::string* bytes);

  int rank_ = 0;
  int ranks_ = 1;
};

// Runs the command, whose body fails on all ranks or on none, or on the first behind all that they do
// together. All have the same flags: the first says
// what is wrong with them, or what they are, and how the body failed. Inside the body every rank may
// write to standard error, the first alone to standard output.
int RunMpiCommand(MpiProcesses* processes, Command command, int argc, char** argv);

}  // namespace meridian

#endif  // CLUSTER_MPI_MPI_PROCESSES_H_
