// The runs that a calibration uses: which files are one run, and what their collectives show.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/calibration/transfer_samples.h"
#include "trace_alignment/collectives/collective_run.h"

namespace meridian {

struct CalibrationRun {
  // The folder of its profiles, for messages.
  std::string folder;
  TransferSamples transfers;
  // What its ranks are: "GPU", "TPU", "CPU".
  std::set<std::string> device_kinds;
  // Whether groups lie within one node, and whether they lie across several: different fabrics.
  bool within_nodes = false;
  bool across_nodes = false;
  // Collectives that end before they began somewhere; only where that is allowed.
  size_t violations = 0;
};

struct ProfileFolder {
  std::string folder;
  std::vector<std::string> traces;
};

// Files of one folder are one run. In the order of their first files.
std::vector<ProfileFolder> SplitByFolder(const std::vector<std::string>& traces);

struct CalibrationRunOptions {
  // Take transfers from clocks that show violations, too; they are counted.
  bool allow_violations = false;
};

// InvalidArgument when the profiles are not of one run, and when their clocks show an end before a
// start that it waited for.
absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_
