// SPDX-License-Identifier: Apache-2.0
// How long the edges of a list take: each alone, or all at once as one batch.
#ifndef ASTRA_BRIDGE_SCHEDULE_EDGE_PREDICTION_H_
#define ASTRA_BRIDGE_SCHEDULE_EDGE_PREDICTION_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/edges/comm_edge_list.h"

namespace meridian {

class PredictionReport;  // prediction_report.proto

// Edges are put on their devices first. All of them start at 0: alone, the iteration lasts as long
// as the longest; as a batch, until the last is done. `progress` is told how many edges have been
// timed.
absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, CommEdgeList list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_EDGE_PREDICTION_H_
