// Whole steps of a run, simulated and measured: the run is exported as Chakra traces, and these are
// scheduled with simulated communication (schedule/iteration_prediction.h).
#ifndef ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/calibration/compute_beside.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct StepCheckOptions {
  XSpaceReaderOptions reader;
  bool allow_violations = false;
  // A folder that exists; what is written there is removed again.
  std::string work_folder = "/tmp";
};

struct StepCheck {
  CheckedStep step;
  ComputeBeside beside;
};

// Returns the step, or everything when none is named. Of the run only folder and profiles count.
absl::StatusOr<StepCheck> CheckStep(FileSystem& file_system, const CalibrationRun& run,
                                    std::optional<int64_t> step, const Fabric& fabric,
                                    const Corrections& corrections,
                                    const StepCheckOptions& options);

// Adds the steps and their summary to the report.
void AddSteps(const std::vector<CheckedStep>& steps, SimulationCheckReport* report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_STEP_CHECK_H_
