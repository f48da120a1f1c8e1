#ifndef CRITICAL_PATH_JOB_SOURCE_H_
#define CRITICAL_PATH_JOB_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "critical_path/rank_join.h"
#include "critical_path/window_choice.h"
#include "trace_alignment/collectives/collective_run.h"

namespace meridian {

// What all readers of a job's traces are told.
struct JobOptions {
  WindowChoice window;
  // Only this rank is wanted; ranks that others wait for may then be missing.
  std::optional<int64_t> rank;
  // Go on when collectives end before they began elsewhere.
  bool allow_violations = false;
  // Called with how much has been read: files, or bytes of Chakra traces; may be null.
  std::function<void(size_t done)> progress;
};

// The graphs of a job's ranks, and things a person should know of, one sentence each.
struct LoadedJob {
  JobGraph job;
  std::vector<std::string> notes;
};

// FailedPrecondition when the clocks of the ranks disagree, unless that is allowed; then it is
// noted.
absl::Status CheckClocks(const CollectiveRun& run, const JobOptions& options,
                         std::vector<std::string>* notes);

// `there` are the ranks that the traces are of, ascending, of so many. InvalidArgument when several
// are there, but not all, and no rank was chosen; with one rank the missing ones are noted.
absl::Status CheckRanks(const std::vector<int64_t>& there, int64_t rank_count,
                        const JobOptions& options, std::vector<std::string>* notes);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_SOURCE_H_
