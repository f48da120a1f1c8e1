// SPDX-License-Identifier: Apache-2.0
// A simulation in which transfers (collectives, and messages of sends) last what the corrections of
// a calibration make of them:
//
//   1. run      without corrections: when each transfer was under way, and beside which others
//   2. alone    transfers are timed with the network to themselves, all members beginning at once
//   3. correct  by the rule of corrections.h
//   4. run      with these durations in place of messages on the network
//
// Who is beside whom is that of the first run. Transfers of a kind without corrections keep being
// simulated, unless they were under way together with others that have some (or with others that
// were, and so on): those are no longer on the network to share it, so what the transfer waited for
// them becomes part of its duration.
//
// Collectives that do not tie all their members together (engine/simulation_result.h) have no
// duration from the last join on. They keep being simulated, beside those that have no corrections;
// what others waited for them lasts as long as in the first run.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTED_SIMULATION_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTED_SIMULATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/corrections/isolated_transfers.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct CorrectedSimulation {
  // Links are those of the first run, since all messages are on them there.
  SimulationResult result;
  // Transfers of kinds with corrections, and all others.
  int64_t corrected = 0;
  int64_t uncorrected = 0;
};

// The first run of a workload, to be run again with corrections, as often as there are some.
class CorrectedSimulator {
 public:
  // Runs the workload (Simulate of engine/simulation.h). All must outlive this object; `options`
  // has no fixed durations.
  static absl::StatusOr<CorrectedSimulator> Create(const Workload& workload,
                                                   const NetworkConfig& network,
                                                   const SystemConfig& system,
                                                   const SimulationOptions& options);

  absl::StatusOr<CorrectedSimulation> Run(const Corrections& corrections);

 private:
  CorrectedSimulator(const Workload& workload, const NetworkConfig& network,
                     const SystemConfig& system, const SimulationOptions& options);

  const Workload* workload_;
  const NetworkConfig* network_;
  const SystemConfig* system_;
  // Options of the runs with corrections, which record no links.
  SimulationOptions options_;
  SimulationResult uncorrected_;
  TransferLog log_;
  std::unique_ptr<IsolatedTransfers> isolated_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTED_SIMULATION_H_
