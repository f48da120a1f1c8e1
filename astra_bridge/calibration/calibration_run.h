// SPDX-License-Identifier: Apache-2.0
// The runs that a calibration uses: which files are one run, and what their collectives show.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/calibration/transfers.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct CalibrationRun {
  // The folder of the profiles, for messages, and the paths of the profiles.
  std::string folder;
  std::vector<std::string> traces;
  TransferSamples transfers;
  // What the ranks are: "GPU", "TPU", "CPU".
  std::set<std::string> device_kinds;
  // Whether groups lie within one node, and whether they lie across several: different fabrics.
  bool within_nodes = false;
  bool across_nodes = false;
  // The steps that the program marks: see WholeSteps.
  std::vector<int64_t> steps;
  // What a person should know before using the run.
  std::vector<std::string> notes;
};

// Returns the steps that events of every profile lie in, ascending; profiles that mark none do not
// count. Ranks do not begin and end profiling at the same step, nor between steps: of at least
// three steps that all have, the first and the last are left out. One or two are returned though
// they may be cut off, since nothing else is there to look at; none means that the run is one
// piece.
std::vector<int64_t> WholeSteps(const CollectiveRun& run);

struct CalibrationRunOptions {
  XSpaceReaderOptions reader;
  // Take transfers from clocks that show violations, too, with a note.
  bool allow_violations = false;
  // Called before each file with its position; may be null.
  std::function<void(size_t file)> progress;
};

// InvalidArgument when the profiles are not of one run, FailedPrecondition when their clocks show
// an end before a start that it waited for.
absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options = {});

// Reads profiles; those of one folder are one run, in the order of their first files.
absl::StatusOr<std::vector<CalibrationRun>> ReadCalibrationRuns(
    FileSystem& file_system, const std::vector<std::string>& traces,
    const CalibrationRunOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_RUN_H_
