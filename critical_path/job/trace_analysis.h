// SPDX-License-Identifier: Apache-2.0
// From the text of a Kineto trace to its graph: ours, or the one that HTA builds.
#ifndef CRITICAL_PATH_JOB_TRACE_ANALYSIS_H_
#define CRITICAL_PATH_JOB_TRACE_ANALYSIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/hta/hta_graph.h"
#include "critical_path/trace/stepped_trace.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

// Our own graph has all launch edges anyway.
struct TraceAnalysisOptions : HtaGraphOptions {
  WindowChoice window;
  // Builds the graph that HTA builds instead of ours.
  bool hta_compatible = false;
  // PyTorch's execution trace of the same run, for the needs of our graph; may be null.
  const InputFile* host_trace = nullptr;
};

// Builds our graph of a trace that was loaded from the text, as one of that rank. The source names
// only what is missing. Errors do not name the trace.
absl::StatusOr<TraceAnalysis> AnalyzeLoadedTrace(const TraceJsonTable& trace,
                                                 absl::string_view text, int64_t rank,
                                                 const TraceAnalysisOptions& options);

// Keeps what such graphs of some of its steps are made of, which needs no execution trace; the folder is for
// temporary files. Adds what is missing to the notes.
absl::StatusOr<SteppedTrace> KeepLoadedTrace(const TraceJsonTable& trace, absl::string_view text,
                                             FileSystem& file_system, const std::string& folder,
                                             const TraceGraphOptions& options,
                                             std::vector<std::string>* notes);

// Errors name the trace; they are those of the builders (trace_graph.h, hta/hta_graph.h) and of the
// window's choice.
absl::StatusOr<TraceAnalysis> AnalyzeTraceJson(absl::string_view text, absl::string_view name,
                                               const TraceAnalysisOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_TRACE_ANALYSIS_H_
