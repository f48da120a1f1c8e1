// SPDX-License-Identifier: Apache-2.0
// What a simulation found, as a report for people and programs.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_

#include <string>

#include "astra_bridge/engine/simulation_result.h"

namespace meridian {

class SimulationReport;  // simulation_report.proto

// Returns the report without engine, congestion and notes, which the result does not tell.
SimulationReport MakeSimulationReport(const SimulationResult& result);

// Returns the report as tables: finish times, and nodes where there are any.
std::string FormatSimulationReport(const SimulationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
