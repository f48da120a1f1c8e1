// SPDX-License-Identifier: Apache-2.0
// The critical-path graph that Holistic Trace Analysis 0.6.1 builds of one rank, node by node and
// edge by edge, in the same order. Use it to compare with HTA; trace_graph.h builds a graph without
// the mistakes:
//
// - Streams are told by number alone: those of two devices are chained.
// - Of a CUDA graph only the last kernel is there; the others show as a gap between kernels.
// - The first kernel of a burst of launches has no launch edge.
// - Of several waits before one kernel only the last counts.
// - cudaMemcpy takes no time; calls that overlap on two threads lose the time of one.
// - Time between top-level operators is free, so that the path may be much shorter than the window.
//
// Nodes are numbered as in HTA. The one deviation: where HTA books a negative time, because a child
// ends after its parent, say, 0 is booked; the paths are the same.
#ifndef CRITICAL_PATH_HTA_HTA_GRAPH_H_
#define CRITICAL_PATH_HTA_HTA_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/hta/hta_frame.h"
#include "critical_path/hta/hta_launches.h"

namespace meridian {

// Returns the name of a kernel without template arguments, parameters and return type, as HTA
// shortens it, e.g. "at::f" for "void at::f<int>(float)". Names of copies and sets stay as they
// are.
std::string ShortenKernelName(absl::string_view name);

// True when HTA takes a kernel with this (shortened) name for communication: "nccl", "hip" or
// "hccl" in front or "ncclKernel" anywhere.
bool IsHtaCommunicationName(absl::string_view short_name);

struct HtaGraphOptions {
  // Parts of names of events that load data; as for HTA, they are regular expressions when time is
  // booked.
  std::vector<std::string> data_load_events;
  // Adds a launch edge without time to kernels that have none (HTA's environment variable
  // CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE).
  bool zero_weight_launch_edges = false;
};

// Fails where HTA does: no launches at all, a launch without nodes, a wait of a stream for itself
// (all FailedPrecondition).
absl::StatusOr<PathGraph> BuildHtaGraph(const HtaFrame& frame, const HtaWindow& window,
                                        const HtaLaunches& launches,
                                        const HtaGraphOptions& options);

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_HTA_GRAPH_H_
