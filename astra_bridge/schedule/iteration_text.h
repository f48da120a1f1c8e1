// What a prediction of a workload says to people: where the communication's time goes, what runs at
// once and what that costs.
#ifndef ASTRA_BRIDGE_SCHEDULE_ITERATION_TEXT_H_
#define ASTRA_BRIDGE_SCHEDULE_ITERATION_TEXT_H_

#include <string>

#include "astra_bridge/schedule/prediction_report.pb.h"

namespace meridian {

// The report is one that MakeIterationReport made.
std::string FormatIteration(const PredictionReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_ITERATION_TEXT_H_
