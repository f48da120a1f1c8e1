// SPDX-License-Identifier: Apache-2.0
// What runs of a code at several places (machines, size, threads) measured: how often it went from one
// callsite to the next, how long that took each time, how many bytes moved.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_MEASUREMENTS_H_
#define WORKLOAD_MODEL_MEASUREMENTS_MEASUREMENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/measurements/call_traces.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// What the name of a file tells.
struct RunName {
  WorkloadCell cell;
  int64_t rank = 0;
  // The name without the rank: the same for all ranks of one run.
  std::string run;
};

// Returns what a file's name tells: by named groups of a pattern (RE2: nodes, size and, if there are
// such, threads, ranks_per_node and rank) or, without one, in the form of the published data,
// bfs_exectrace_16-16-1-20-0.txt for 16 nodes, 16 ranks, 1 thread, size 20 and rank 0. A rank that the
// pattern does not name is a number at the end, as of A-mpiP: NAME_3. The name of a job need not tell
// nodes, which are its ranks.
absl::StatusOr<RunName> ReadRunName(const std::string& path, const std::string& pattern,
                                    bool is_job = false);

// The callsites between which a code went: source and destination.
using Transition = std::pair<int64_t, int64_t>;

// What one rank of one run measured.
struct RunMeasurements : RunName {
  std::string file;
  // In order of occurrence; empty where only the values of each transition are known.
  std::vector<TracedCall> calls;
  // Times by transition, in us and in order of occurrence. What comes from callsite 0 is no
  // transition: its time counts from 1970.
  std::map<Transition, std::vector<double>> times;
  // The same without the calls at their ends; empty where nobody knows how long these took.
  std::map<Transition, std::vector<double>> computes;
  // Bytes by callsite, in order of occurrence.
  std::map<int64_t, std::vector<double>> messages;
  // How many times were below 0, of clocks that stepped back; they are 0 above.
  int64_t negative_times = 0;
  // How many calls do not begin where the one before ended: lines are missing.
  int64_t breaks = 0;
};

// A transition, or a callsite's messages, in one cell: the runs and ranks together.
struct CellValue {
  double count = 0;
  double first = 0;
  // The mean of all but the first; the first where there is one.
  double steady = 0;
  // By which part of their middle these grow from the beginning of a run to its end; 0 where there are
  // too few to tell.
  double drift = 0;

  double Sum() const { return count >= 1 ? first + (count - 1) * steady : count * first; }
};

struct Measurements {
  // In order; at most one of each.
  std::vector<WorkloadCell> cells;
  // Times, and times without calls, by transition and bytes by callsite, in those cells that have them.
  std::map<Transition, std::map<WorkloadCell, CellValue>> times;
  std::map<Transition, std::map<WorkloadCell, CellValue>> computes;
  std::map<int64_t, std::map<WorkloadCell, CellValue>> messages;
  std::vector<std::string> notes;
};

// Reads call traces (call_traces.h) and the motif's trace models, whose rows are TRACE or CONSTANT.
// Traces are checked against the callsites of a report, unless there are none, and get their times.
absl::StatusOr<RunMeasurements> ParseMeasurements(
    absl::string_view text, const std::string& file, const RunName& name,
    const std::map<int64_t, Callsite>& callsites = {});

// Returns what the calls of one rank measured. InvalidArgument for times that cannot be.
absl::StatusOr<RunMeasurements> MeasureCalls(std::vector<TracedCall> calls, const std::string& file,
                                             const RunName& name);

// Puts runs and ranks of one cell together: the median of their counts and times.
Measurements Aggregate(const std::vector<RunMeasurements>& runs);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_MEASUREMENTS_H_
