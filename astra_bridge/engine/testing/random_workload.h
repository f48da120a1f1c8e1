// SPDX-License-Identifier: Apache-2.0
// Random simulations that come to an end: every rank issues what it shares with others in the same
// order.
#ifndef ASTRA_BRIDGE_ENGINE_TESTING_RANDOM_WORKLOAD_H_
#define ASTRA_BRIDGE_ENGINE_TESTING_RANDOM_WORKLOAD_H_

#include <cstdint>
#include <random>

#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct RandomSimulation {
  Congestion congestion = Congestion::kAware;
  NetworkConfig network;
  SystemConfig system;
  Workload workload;
};

struct RandomSimulationOptions {
  int32_t max_dimensions = 1;
  int32_t max_npus = 12;
  // Operations, each a node of some or all ranks.
  int32_t max_operations = 6;
  // Ring algorithms only.
  bool rings_only = false;
  // Groups come as partitions of all ranks, with the same collective in each. AstraSim numbers the
  // chunks of all collectives of a rank in one sequence, and waits forever in a collective of all
  // ranks when they have got to different numbers in their groups.
  bool whole_partitions = false;
  // Some kinds of collectives have custom algorithms, of all ranks or of a part of a partition.
  bool custom = false;
  // Accesses to remote memory. Each rank ends with a computation then: AstraSim crashes when it ends
  // with a message.
  bool memory = false;
};

RandomSimulation MakeRandomSimulation(const RandomSimulationOptions& options,
                                      std::mt19937_64& random);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TESTING_RANDOM_WORKLOAD_H_
