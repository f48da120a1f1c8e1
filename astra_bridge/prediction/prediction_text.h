// SPDX-License-Identifier: Apache-2.0
// What predictions say to people.
#ifndef ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_
#define ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_

#include <string>

namespace meridian {

class PredictionReport;  // prediction_report.proto

// Returns where the communication's time goes: of a list of edges the slowest, of a workload the
// kinds; then the sums.
std::string FormatPrediction(const PredictionReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_PREDICTION_TEXT_H_
