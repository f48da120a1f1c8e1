#include "astra_bridge/engine/simulation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "astra_bridge/engine/collective_recorder.h"
#include "astra_bridge/engine/collective_runner.h"
#include "astra_bridge/engine/group_table.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload_check.h"
#include "astra_bridge/engine/workload_runner.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

using FixedDurations = absl::flat_hash_map<CollectiveId, std::vector<int64_t>>;

// Returns how long the collectives last that met no others, corrected.
FixedDurations CorrectedDurations(const DurationCorrection& correction,
                                  const std::vector<CollectiveRecord>& records) {
  FixedDurations durations;
  for (const CollectiveRecord& record : records) {
    if (!record.was_alone) continue;
    std::vector<int64_t> members;
    for (const int64_t engine_ns : record.durations_ns) {
      const std::optional<int64_t> corrected_ns = correction(record.op, record.bytes, engine_ns);
      if (!corrected_ns.has_value()) break;
      members.push_back(std::clamp<int64_t>(*corrected_ns, 0, kMaxDurationNs));
    }
    if (members.size() == record.durations_ns.size()) durations[record.id] = std::move(members);
  }
  return durations;
}

}  // namespace

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
  CollectiveRecorder recorder;
  if (options.correction != nullptr) collective_options.recorder = &recorder;
  WorkloadRunner runner(workload, groups, topology, system, options, collective_options);
  RETURN_IF_ERROR(runner.Run());
  if (options.correction == nullptr) return runner.TakeResult();

  // Which collectives are alone shows in the run without corrections. Those then last what the
  // corrections say.
  const FixedDurations durations = CorrectedDurations(options.correction, recorder.records());
  collective_options.recorder = nullptr;
  collective_options.fixed_durations_ns = &durations;
  WorkloadRunner corrected(workload, groups, topology, system, options, collective_options);
  RETURN_IF_ERROR(corrected.Run());
  SimulationResult result = corrected.TakeResult();
  result.corrected_collectives = static_cast<int64_t>(durations.size());
  result.uncorrected_collectives =
      static_cast<int64_t>(recorder.records().size() - durations.size());
  return result;
}

}  // namespace meridian
