// SPDX-License-Identifier: Apache-2.0
// What predictions say, as messages for programs; prediction_text.h has the same for people.
#ifndef ASTRA_BRIDGE_PREDICTION_PREDICTION_REPORT_H_
#define ASTRA_BRIDGE_PREDICTION_PREDICTION_REPORT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class PredictionReport;  // prediction_report.proto

// Returns the report of a workload's prediction, without its times beside the measured ones.
PredictionReport MakeIterationReport(const IterationPrediction& prediction, TimingMode mode,
                                     const TimingSetup& setup, const ExecutionGraph& graph);

// Times the edges of a list, each alone or all together from 0 on, and returns the report. The
// iteration lasts as long as the longest. `progress` is told how many edges have been timed alone.
absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, const CommEdgeList& list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_PREDICTION_REPORT_H_
