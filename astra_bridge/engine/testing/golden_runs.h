// SPDX-License-Identifier: Apache-2.0
// Runs of the real AstraSim with the times it gave (testdata/), made into workloads in memory.
#ifndef ASTRA_BRIDGE_ENGINE_TESTING_GOLDEN_RUNS_H_
#define ASTRA_BRIDGE_ENGINE_TESTING_GOLDEN_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct GoldenRun {
  std::string id;
  Congestion congestion = Congestion::kAware;
  NetworkConfig network;
  SystemConfig system;
  Workload workload;
  // By rank; -1 where AstraSim's answer is not known.
  std::vector<int64_t> finish_ns;
  // By rank and id; empty where not known.
  std::vector<NodeTime> nodes;
};

// What a run cost AstraSim.
struct GoldenCost {
  std::string name;
  // Without times but that of the last rank.
  GoldenRun run;
  int64_t makespan_ns = 0;
  double cpu_s = 0;
};

// One collective or send each.
std::vector<GoldenRun> SingleGoldenRuns();

// Several at once, with computation.
std::vector<GoldenRun> ConcurrentGoldenRuns();

// From small runs to large.
std::vector<GoldenCost> GoldenCosts();

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TESTING_GOLDEN_RUNS_H_
