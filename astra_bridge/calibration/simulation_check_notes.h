// Whether what is checked belongs together with the calibration whose report is given.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_NOTES_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_NOTES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/corrections/corrections.h"

namespace meridian {

// Returns a note for each run that the calibration used: those that its report names with as many
// ranks and transfers. Folders are compared as they were written, so one that was moved or is named
// in another way is not recognised.
std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs);

// Returns a note when the corrections are others than those that the calibration has fitted.
std::vector<std::string> NotesOnCorrections(const CalibrationReport& calibration,
                                            const Corrections& corrections);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_NOTES_H_
