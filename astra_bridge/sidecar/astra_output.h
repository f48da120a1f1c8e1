// SPDX-License-Identifier: Apache-2.0
// What AstraSim says, and what its end means. On standard output, one line per rank in the order in
// which they finish (wrapped here):
//
//   [date time] [workload] [info] sys[3] finished, 33829 cycles,
//       exposed communication 33829 cycles.
//
// and with "trace-enabled" in its log, for each node:
//
//   ... issue,sys->id=3, tick=0, node->id=1, node->name=AR, node->type=7
//   ... callback,sys->id=3, tick=33829, node->id=1, node->name=AR, node->type=7
//
// A cycle is a nanosecond. The exit code says little: AstraSim exits with 0 when ranks are stuck,
// and crashes after all is done. What counts is whether every rank has finished.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_OUTPUT_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/sidecar/child_process.h"

namespace meridian {

// Reads standard output as it comes, and keeps no more of it than it needs.
class AstraOutput {
 public:
  explicit AstraOutput(int64_t ranks) : finish_ns_(ranks) {}

  // Takes any piece of the output, not only whole lines. A last line without its end does not
  // count: a program that crashes may leave half a number.
  void Append(absl::string_view piece);

  // Returns when each rank finished, by rank; absent for ranks that have not.
  const std::vector<std::optional<int64_t>>& finish_ns() const { return finish_ns_; }
  int64_t finished_ranks() const { return finished_ranks_; }

  // Returns the first lines that tell of a problem, shortened.
  const std::vector<std::string>& complaints() const { return complaints_; }

  // Not OK when a rank that does not exist finished, or one finished twice at different times: the
  // output is not that of the run.
  const absl::Status& status() const { return status_; }

 private:
  void ReadLine(absl::string_view line);

  std::vector<std::optional<int64_t>> finish_ns_;
  int64_t finished_ranks_ = 0;
  std::vector<std::string> complaints_;
  absl::Status status_;
  std::string partial_line_;
  bool skip_to_line_end_ = false;
};

// Reads the times of nodes from the parts of the log, in the order in which they were written, each
// of whole lines. Returns the nodes by rank and id. DataLoss when one was issued and did not
// finish, finished without being issued, or occurs twice: lines are missing.
absl::StatusOr<std::vector<NodeTime>> ParseAstraNodeTimes(
    absl::Span<const absl::string_view> log_parts, int64_t ranks);

// Returns OK when every rank has finished, however the process ended. Otherwise
//   InvalidArgument   it refused a configuration file (exit 255)
//   DeadlineExceeded  it took longer than `timeout`
//   Aborted           all other: stuck ranks, a crash, output that makes no sense
// with what is known about such ends. Runs are deterministic, so none is worth another try.
absl::Status CheckAstraRun(const ChildProcessResult& end, const AstraOutput& output,
                           absl::Duration timeout);

// Returns e.g. "crashed (signal 6) after all ranks had finished", or "" after a clean end. For runs
// that CheckAstraRun accepts.
std::string EndAfterFinish(const ChildProcessResult& end);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_OUTPUT_H_
