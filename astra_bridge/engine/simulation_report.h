// SPDX-License-Identifier: Apache-2.0
// What a simulation found, as a report for people and programs, and as a timeline.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/workload.h"
#include "chakra_export/graph/rank_activity.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

class SimulationReport;  // simulation_report.proto
class ActivityReport;    // simulated_times.proto
class SimulatedTimes;

// Returns the report without engine, congestion and notes, which the result does not tell.
SimulationReport MakeSimulationReport(const SimulationResult& result);

// Returns the report as tables: finish times, and nodes where there are any.
std::string FormatSimulationReport(const SimulationReport& report);

// Returns the mean of what ranks do, and when the last is done. There is at least one rank.
ActivityReport ReportActivity(absl::Span<const RankActivity> ranks);

// Returns a table of what was measured and what is simulated.
std::string FormatTimes(const SimulatedTimes& times);

// Writes a Chrome trace, a process per rank (timeline.cc): compute nodes, host compute nodes,
// communication and receives, each on threads of their own: as many as it takes for none to overlap
// another. The simulation was told to keep node times (SimulationOptions::node_times).
absl::Status WriteTimeline(const Workload& workload, const SimulationResult& result,
                           ByteSink* sink);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
