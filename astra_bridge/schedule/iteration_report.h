// What a prediction of a workload says, for programs and for people.
#ifndef ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_
#define ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_

#include <string>

#include "astra_bridge/prediction_report.pb.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/timing_setup.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match);

// The report for people: where the communication's time goes, what runs at once and what that
// costs.
std::string FormatIteration(const PredictionReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_
