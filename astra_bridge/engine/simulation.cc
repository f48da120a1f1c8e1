#include "astra_bridge/engine/simulation.h"

#include <utility>

#include "astra_bridge/engine/collective_runner.h"
#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/transfer_log.h"
#include "astra_bridge/engine/workload_check.h"
#include "astra_bridge/engine/workload_runner.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckWorkload(workload, network, system, options));
  const Topology topology(network);
  ASSIGN_OR_RETURN(const GroupTable groups, GroupTable::Create(workload));
  CollectiveRunner::Options collective_options;
  collective_options.comm_streams = options.comm_streams;
  // Short cuts leave no trace on links.
  collective_options.events_only = options.events_only || options.link_use;
  collective_options.fixed_durations = options.fixed_durations;
  TransferLog log;
  if (options.transfers) collective_options.log = &log;
  WorkloadRunner runner(workload, groups, topology, system, options, collective_options);
  RETURN_IF_ERROR(runner.Run());
  SimulationResult result = runner.TakeResult();
  result.transfers = std::move(log);
  return result;
}

}  // namespace meridian
