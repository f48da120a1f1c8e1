// SPDX-License-Identifier: Apache-2.0
// What predictions say to people: where the communication's time goes, what runs at once and what
// that costs.
#ifndef ASTRA_BRIDGE_SCHEDULE_PREDICTION_TEXT_H_
#define ASTRA_BRIDGE_SCHEDULE_PREDICTION_TEXT_H_

#include <string>

namespace meridian {

class PredictionReport;  // prediction_report.proto

// Returns the slowest edges and the sums of a list of edges, as PredictEdges reports it.
std::string FormatPrediction(const PredictionReport& report);

// Returns the tables of a workload, as MakeIterationReport reports it.
std::string FormatIteration(const PredictionReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_PREDICTION_TEXT_H_
