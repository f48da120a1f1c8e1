// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI job. All call the same functions in the same order, since each waits for the
// others.
//
//   int main(int argc, char** argv) {
//     MpiProcesses processes;
//     return RunMpiCommand(&processes, command, argc, argv);
//   }
#ifndef CLUSTER_MPI_MPI_PROCESSES_H_
#define CLUSTER_MPI_MPI_PROCESSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/command.h"

namespace meridian {

class MpiProcesses {
 public:
  // From MPI_Init to MPI_Finalize: there is one object, and all output comes before its end.
  MpiProcesses();
  ~MpiProcesses();

  int64_t rank() const { return rank_; }
  int64_t rank_count() const { return ranks_; }
  bool is_first() const { return rank_ == 0; }
  // The position among the ranks of this host.
  int64_t rank_on_host() const { return rank_on_host_; }

  // Returns the same everywhere: OK when all are, else the failure of the first rank that has one,
  // which it names "rank 3 (host)".
  absl::Status Agree(const absl::Status& status);

  // Carries bytes from each rank to the first, which takes those of the others, one rank after the
  // other. Returns what they agree on.
  absl::Status Gather(std::string bytes,
                      absl::FunctionRef<absl::Status(absl::string_view bytes)> take);

  // Carries bytes from the first rank to all others.
  void Broadcast(std::string* bytes);

  // Returns the largest of each of the values over all ranks, which have as many.
  std::vector<int64_t> LargestOf(std::vector<int64_t> values);

  // Ends all ranks.
  [[noreturn]] void Abort(int exit_code);

 private:
  int rank_ = 0;
  int ranks_ = 1;
  int rank_on_host_ = 0;
};

// Runs the command, whose body fails on all ranks or on none, or on the first behind all that they do
// together. All have the same flags: the first says
// what is wrong with them, or what they are, and how the body failed. Inside the body every rank may
// write to standard error, the first alone to standard output.
int RunMpiCommand(MpiProcesses* processes, Command command, int argc, char** argv);

}  // namespace meridian

#endif  // CLUSTER_MPI_MPI_PROCESSES_H_
