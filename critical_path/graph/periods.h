// SPDX-License-Identifier: Apache-2.0
// Steps of runs that mark none, from work that repeats: decoding token by token, graphs that are
// replayed, benchmarks.
//
//   kernels    prologue | a b c c d | a b c c d | a b c c d | a
//   periods             |     0     |     1     |     2     |
//
// The busiest stream of each rank tells: the names of its work repeat from some place to its end,
// or from its start to some place. A period begins where the streams were idle longest.
#ifndef CRITICAL_PATH_GRAPH_PERIODS_H_
#define CRITICAL_PATH_GRAPH_PERIODS_H_

#include "critical_path/graph/path_graph.h"

namespace meridian {

// Gives the device work and the meetings of a graph without steps those of the periods, numbered
// from 0. Returns false, and leaves the graph as it is, when the work of some rank does not repeat
// at least three times over most of its length (so that there are at least two whole periods), when
// ranks do not repeat equally often and together, or when it is one collective of a job that shows
// nothing else: a call is no step.
bool MarkPeriods(PathGraph* graph);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_PERIODS_H_
