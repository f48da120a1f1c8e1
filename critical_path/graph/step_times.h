// SPDX-License-Identifier: Apache-2.0
// When the steps of a run began and ended, and so how long they took: the one answer that every
// report and table gives.
//
//   host     [step 3   ][step 4   ]                        what the host calls its steps
//   device   -before-->|--- work of step 3 --->|--- work of step 4 --->|
//                      begin                   end of step 3           end of step 4
//
// A step ends when the work that it launched has ended, and begins when the step before has ended.
// So its length is the period of its work, also where a host is steps ahead of its device. Ranks
// end a step at different times; what counts is the median of their ends.
//
// The first step begins where its host marks it, or where its first event does if nothing is marked.
// Device work that belongs to no step and still ran when the first step had begun on the host was
// launched before: the first step begins when that has ended, and the time until then is in none.
// So is the time in which a rank had not begun, if that makes the first step an outlier: profilers
// take up to a second to begin, and the others wait.
#ifndef CRITICAL_PATH_GRAPH_STEP_TIMES_H_
#define CRITICAL_PATH_GRAPH_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "critical_path/graph/path_graph.h"

namespace meridian {

struct StepTime {
  int64_t step = 0;
  // Times in ps from the graph's base_ns.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // When the last rank ended the step.
  int64_t last_end_ps = 0;

  int64_t length_ps() const { return end_ps - start_ps; }
};

struct StepTimes {
  // In the order of their ends: each begins where the one before ends. Empty for a graph without
  // steps.
  std::vector<StepTime> steps;
  // When the first step began, if until then work launched before it ran, or a rank had not begun;
  // absent otherwise.
  std::optional<int64_t> before_end_ps;

  // Returns where in `steps` the step is that a time lies in; nullopt for none.
  std::optional<size_t> Find(int64_t time_ps) const;

  // Returns the median length in ps; nullopt without steps.
  std::optional<int64_t> MedianPs() const;

  // Returns from when on the run can be run again with other times: when all ranks have ended the
  // first step if what was before ran into it, since the hosts' part of that step is cut off;
  // absent for the start.
  std::optional<int64_t> ReplayStartPs() const;
  // Returns the mean length in ps of the steps from then on; nullopt without steps. A rank that is
  // late in a few steps shows in the mean, not in the median.
  std::optional<int64_t> MeanPs() const;
};

// Takes the ends of device work; where no device work has a step, those of the host's.
StepTimes FindStepTimes(const PathGraph& graph);

// Returns by rank when its first event starts, in ps from the graph's base_ns.
std::map<int64_t, int64_t> FindBegins(const PathGraph& graph);

// Sets graph->first_step_waits_for_all if the first step takes over twice what the others take, of
// which there are at least two, and a rank began during it.
void FindLateBeginning(PathGraph* graph);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_STEP_TIMES_H_
