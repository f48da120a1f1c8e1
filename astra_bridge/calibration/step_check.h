// SPDX-License-Identifier: Apache-2.0
// Whole steps of a run, simulated and measured: the graph of the run, as it is exported, is
// replayed with its communication on a network (prediction/shared_transfers.h).
#ifndef ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"
#include "chakra_export/xspace/device_work.h"

namespace meridian {

// What steps are simulated with. Steps add transfers up, so these take what repeats take in the
// mean, not their median.
struct StepModel {
  const Fabric& fabric;
  const Corrections& corrections;
  const PredictionIntervals& intervals;
};

// Adds the step, or everything when none is named, to the report's steps. The profiles of the run
// lie in the folder.
absl::Status CheckStep(const ProfiledRun& profiles, const std::string& folder,
                       std::optional<int64_t> step, const StepModel& model, bool allow_violations,
                       SimulationCheckReport* report);

// Sums up the report's steps, those that took time.
void SummariseSteps(SimulationCheckReport* report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
