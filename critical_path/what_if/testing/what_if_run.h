// SPDX-License-Identifier: Apache-2.0
// What-ifs on traces of tests, in one line each.
#ifndef CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_
#define CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/what_if.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {

struct MeasuredGraph {
  PathGraph graph;
  CriticalPath path;
};

// Returns the graph and path of the whole trace, which must be sound.
MeasuredGraph MeasureTrace(const KinetoTrace& trace);
// Returns the graph with its path.
MeasuredGraph MeasureGraph(PathGraph graph);

// Communication on a stream of its own waits for y; the host waits for both streams.
//
//   stream 7      |-- x: 10 .. 50 --|  |-- y: 52 .. 92 --|
//   stream 20                                               |--- nccl: 95 .. 155 ---|
//   host     launches of x 0, y 5, nccl 12; cudaDeviceSynchronize 17 .. 165
//
// Launching takes 10 us where it shows, at x; so it does hidden, at y and nccl.
KinetoTrace GradientsTrace();
MeasuredGraph Gradients();

absl::StatusOr<WhatIfResult> WhatIf(const MeasuredGraph& measured, const std::string& edits);

// Returns how many events start at another time than measured, or last another time.
int64_t CountChanged(const PathGraph& measured, const WhatIfResult& result);

// Returns the path's length in microseconds after the edits, which must succeed.
double MicrosAfter(const MeasuredGraph& measured, const std::string& edits);

// Returns "class name us" of the path's edges that take time, without the name of a gap.
std::vector<std::string> StepsAfter(const MeasuredGraph& measured, const std::string& edits);

// Returns why the edits fail, which they must.
std::string WhatIfError(const MeasuredGraph& measured, const std::string& edits);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_
