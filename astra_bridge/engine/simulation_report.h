// What a simulation found, as a report for people and programs.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_

#include <string>

#include "astra_bridge/engine/simulation_report.pb.h"
#include "astra_bridge/engine/simulation_result.h"

namespace meridian {

// Without engine, congestion, corrections and notes, which the result does not tell.
SimulationReport MakeSimulationReport(const SimulationResult& result);

// Returns tables: finish times, and nodes and links where there are any.
std::string FormatSimulationReport(const SimulationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_REPORT_H_
