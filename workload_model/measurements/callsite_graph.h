// SPDX-License-Identifier: Apache-2.0
// The graph of callsites as it was measured: what calls, how often control goes from one to the next,
// how long that takes and how many bytes move. For people (DOT) and for other tools (JSON).
#ifndef WORKLOAD_MODEL_MEASUREMENTS_CALLSITE_GRAPH_H_
#define WORKLOAD_MODEL_MEASUREMENTS_CALLSITE_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// Returns the graph of those runs that have calls.
CallsiteGraph MakeCallsiteGraph(const std::vector<RunMeasurements>& runs);

// Returns the graph in the language of Graphviz; edges are as wide as their share of the time.
std::string CallsiteGraphDot(const CallsiteGraph& graph);

// Returns the graph as the file of that name holds it: in the language of Graphviz if it ends in .dot,
// else as JSON. InvalidArgument, which says --graph, when no run has calls.
absl::StatusOr<std::string> CallsiteGraphText(const std::vector<RunMeasurements>& runs,
                                              absl::string_view path);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_CALLSITE_GRAPH_H_
