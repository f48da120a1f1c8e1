// Bytes that choose a random simulation: short cuts give the times of all events.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#include "absl/status/statusor.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/random_workload.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  uint64_t seed = 0;
  if (bytes.size() < 1 + sizeof(seed)) return absl::OkStatus();
  std::memcpy(&seed, bytes.data() + 1, sizeof(seed));
  std::mt19937_64 random(seed);
  RandomSimulationOptions random_options;
  random_options.rings_only = bytes[0] & 1;
  random_options.whole_partitions = bytes[0] & 2;
  random_options.max_dimensions = 1 + (bytes[0] >> 2 & 3);
  random_options.max_npus = 24;
  const RandomSimulation simulation = MakeRandomSimulation(random_options, random);
  SimulationOptions options;
  options.congestion = simulation.congestion;
  options.node_times = true;
  const absl::StatusOr<SimulationResult> result =
      Simulate(simulation.workload, simulation.network, simulation.system, options);
  options.events_only = true;
  const absl::StatusOr<SimulationResult> expected =
      Simulate(simulation.workload, simulation.network, simulation.system, options);
  if (!result.ok() || !expected.ok()) {
    return result.status() == expected.status() ? absl::OkStatus()
                                                : absl::InternalError("one is refused");
  }
  bool same = result->finish_ns == expected->finish_ns;
  for (size_t node = 0; node < expected->nodes.size(); ++node) {
    same = same && result->nodes[node].issue_ns == expected->nodes[node].issue_ns &&
           result->nodes[node].finish_ns == expected->nodes[node].finish_ns;
  }
  return same ? absl::OkStatus() : absl::InternalError("times differ");
}
