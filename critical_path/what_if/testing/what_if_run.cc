#include "critical_path/what_if/testing/what_if_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/what_if/what_if_edits.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

double Micros(int64_t ps) { return static_cast<double>(ps) / 1e6; }

}  // namespace

MeasuredGraph MeasureGraph(PathGraph graph) {
  MeasuredGraph measured;
  measured.graph = std::move(graph);
  absl::StatusOr<CriticalPath> path = FindLongestPath(measured.graph);
  EXPECT_OK(path);
  if (path.ok()) measured.path = *std::move(path);
  return measured;
}

MeasuredGraph MeasureTrace(const KinetoTrace& trace) {
  absl::StatusOr<TraceAnalysis> analysis = AnalyzeTraceJson(trace.Text(), "test", {});
  EXPECT_OK(analysis);
  return analysis.ok() ? MeasureGraph(std::move(analysis->graph)) : MeasuredGraph();
}

KinetoTrace GradientsTrace() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 5, 5, 2);
  trace.Call("cudaEventRecord", 10, 1, 10);
  trace.Call("cudaStreamWaitEvent", 11, 1, 11);
  trace.Call("cudaLaunchKernel", 12, 5, 3);
  trace.Call("cudaDeviceSynchronize", 17, 148, 4);
  trace.Kernel("x", 10, 40, 7, 1);
  trace.Kernel("y", 52, 40, 7, 2);
  trace.Kernel("ncclDevKernel_AllReduce", 95, 60, 20, 3);
  trace.EventSync("Stream Wait Event", 92, 0, 20, 11, 7, 10);
  trace.Sync("Context Sync", 17, 148, -1, 4);
  return trace;
}

MeasuredGraph Gradients() { return MeasureTrace(GradientsTrace()); }

absl::StatusOr<WhatIfResult> WhatIf(const MeasuredGraph& measured, const std::string& text) {
  ASSIGN_OR_RETURN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits(text));
  return RunWhatIf(measured.graph, measured.path, /*hta_compatible=*/false, edits);
}

int64_t CountChanged(const PathGraph& measured, const WhatIfResult& result) {
  int64_t changed = 0;
  EXPECT_EQ(measured.events.size(), result.edited.graph.events.size());
  for (GraphEventId id = 0; id < measured.events.size(); ++id) {
    const GraphEvent &before = measured.events[id], &after = result.edited.graph.events[id];
    if (before.start_ps != after.start_ps || before.duration_ps != after.duration_ps) ++changed;
  }
  return changed;
}

double MicrosAfter(const MeasuredGraph& measured, const std::string& edits) {
  const absl::StatusOr<WhatIfResult> result = WhatIf(measured, edits);
  EXPECT_OK(result);
  return result.ok() ? Micros(result->path.length_ps) : -1;
}

std::vector<std::string> StepsAfter(const MeasuredGraph& measured, const std::string& edits) {
  const absl::StatusOr<WhatIfResult> result = WhatIf(measured, edits);
  EXPECT_OK(result);
  std::vector<std::string> steps;
  if (!result.ok()) return steps;
  const PathGraph& graph = result->edited.graph;
  for (EdgeId id : result->path.edges) {
    const GraphEdge& edge = graph.edges[id];
    if (edge.weight_ps == 0) continue;
    std::string step(BoundByName(edge.bound_by));
    if (edge.event != kNoEvent) absl::StrAppend(&step, " ", graph.EventName(edge.event));
    steps.push_back(absl::StrCat(step, " ", Micros(edge.weight_ps)));
  }
  return steps;
}

std::string WhatIfError(const MeasuredGraph& measured, const std::string& edits) {
  const absl::Status status = WhatIf(measured, edits).status();
  EXPECT_FALSE(status.ok()) << edits;
  return std::string(status.message());
}

}  // namespace meridian
