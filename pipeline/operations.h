// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run spend their time on, operation by operation, and how long they wait for each
// other in a step, by the run's graph.
#ifndef PIPELINE_OPERATIONS_H_
#define PIPELINE_OPERATIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/graph/step_times.h"
#include "report/run_report.pb.h"

namespace meridian {

// Returns the name as pages show it: its beginning, if it is long.
std::string ShownName(absl::string_view name);

// Returns what an event is drawn and counted as. `communicates` is whether time of communication is
// booked on it.
PathKind::Role RoleOfEvent(const PathGraph& graph, const GraphEvent& event, bool communicates);

// Which events communicate.
struct CollectiveEvents {
  explicit CollectiveEvents(const PathGraph& graph);

  // By event: where its rank met the others, or kNoInstant, and whether time of communication is
  // booked on it.
  std::vector<InstantId> meetings;
  std::vector<bool> communicates;
};

// Fills in the report's operations: device work, all executions of one name together, the longest
// first. Of collectives that of one kind and size too, and without waiting for others.
void DescribeOperations(const PathGraph& graph, const GraphSource& source,
                        const CollectiveEvents& collectives, const CriticalPath& path,
                        const StepTimes& steps, RunReport* report);

// Returns how long each rank waited for others, and moved data, in each of the steps; what lies in none
// has no number.
std::vector<CombinedStep> WaitsInSteps(const PathGraph& graph, const CollectiveEvents& collectives,
                                       const StepTimes& steps);

}  // namespace meridian

#endif  // PIPELINE_OPERATIONS_H_
