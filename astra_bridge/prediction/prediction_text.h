// SPDX-License-Identifier: Apache-2.0
// What predictions say to people: where the communication's time goes, what runs at once and what
// that costs.
#ifndef ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_
#define ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_

#include <string>
#include <vector>

#include "astra_bridge/engine/simulated_times.h"

namespace meridian {

class PredictionReport;  // prediction_report.proto
class PredictionComparison;

// Returns the slowest edges and the sums of a list of edges, as PredictEdges reports it.
std::string FormatPrediction(const PredictionReport& report);

// Returns the tables of a workload, as MakeIterationReport reports it.
std::string FormatIteration(const PredictionReport& report);

// Returns the workloads of the comparison, which must outlive them.
std::vector<NetworkTimes> NetworksOf(const PredictionComparison& comparison);

// Returns the comparison of a workload on several networks as a table.
std::string FormatPredictionComparison(const PredictionComparison& comparison);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_
