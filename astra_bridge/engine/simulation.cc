#include "astra_bridge/engine/simulation.h"

#include <utility>

#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/transfer_log.h"
#include "astra_bridge/engine/workload_check.h"
#include "astra_bridge/engine/workload_runner.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {

absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckWorkload(workload, network, system, options));
  const Topology topology(network);
  ASSIGN_OR_RETURN(const GroupTable groups, GroupTable::Create(workload));
  TransferLog log;
  WorkloadRunner runner(workload, groups, topology, system, options,
                        options.transfers ? &log : nullptr);
  RETURN_IF_ERROR(runner.Run());
  SimulationResult result = runner.TakeResult();
  result.transfers = std::move(log);
  return result;
}

}  // namespace meridian
