// What-ifs on traces of tests, in one line each.
#ifndef CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_
#define CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"
#include "critical_path/testing/kineto_trace.h"
#include "critical_path/what_if/what_if.h"

namespace meridian {

struct MeasuredGraph {
  PathGraph graph;
  CriticalPath path;
};

// Of the whole trace, which must be sound.
MeasuredGraph MeasureTrace(const KinetoTrace& trace);
// With its path.
MeasuredGraph MeasureGraph(PathGraph graph);

absl::StatusOr<WhatIfResult> WhatIf(const MeasuredGraph& measured, const std::string& edits);

// Returns the path's length in microseconds after the edits, which must succeed.
double MicrosAfter(const MeasuredGraph& measured, const std::string& edits);

// Returns "class name us" of the path's edges that take time, without the name of a gap.
std::vector<std::string> StepsAfter(const MeasuredGraph& measured, const std::string& edits);

// Returns why the edits fail, which they must.
std::string WhatIfError(const MeasuredGraph& measured, const std::string& edits);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_TESTING_WHAT_IF_RUN_H_
