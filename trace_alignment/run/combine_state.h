// SPDX-License-Identifier: Apache-2.0
// A run while it is combined: what the steps of combine_run.cc hand to each other.
#ifndef TRACE_ALIGNMENT_RUN_COMBINE_STATE_H_
#define TRACE_ALIGNMENT_RUN_COMBINE_STATE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/combine/viewer_planes.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_traces.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

struct CombineState {
  FileSystem& file_system;
  const CombineRequest& request;
  OutputFiles& outputs;

  TraceFiles files = {};
  std::unique_ptr<RunTraces> traces = nullptr;
  // One per trace, in their order.
  std::vector<OpenedTrace> nodes = {};
  AlignmentInputs inputs = {};
  CollectiveRun run = {};
  RunAlignment alignment = {};
  CombineReport report = {};
  // The combined XSpace where only exports of it are wanted; else null.
  std::unique_ptr<WritableFile> unnamed = nullptr;

  // Returns the positions of the nodes in the order of their ids.
  std::vector<size_t> ById() const;
};

// The steps, in their order (combine_run.cc).

// Assigns ids, matches the collectives and puts the nodes on one clock. (run_clocks.cc)
absl::Status FindClocks(CombineState* state);

// Checks all outputs before anything is read, since that may take long. (run_outputs.cc)
absl::Status CheckOutputs(const CombineState& state);
// Writes the aligned files and the combined one.
absl::Status WriteProfiles(CombineState* state);
absl::Status WriteExports(CombineState* state);

// The nodes by id, as viewers show them.
std::vector<ViewedNode> ViewedNodes(const CombineState& state);

// Fills in what the report says. (combine_summary.cc)
void DescribeCombined(CombineState* state);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_COMBINE_STATE_H_
