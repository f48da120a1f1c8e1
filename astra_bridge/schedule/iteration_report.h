// What a prediction of a workload says, as a message for programs; iteration_text.h has the same
// for people.
#ifndef ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_
#define ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_

#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/schedule/prediction_report.pb.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_ITERATION_REPORT_H_
