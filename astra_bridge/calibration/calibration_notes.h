// What a person should know of a calibration before using its numbers.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// What the report does not hold.
struct CalibrationBackground {
  absl::Span<const CalibrationRun> runs;
  // The network that was given; null for none.
  const Fabric* topology = nullptr;
  // The one that the fit started from.
  const Fabric* start = nullptr;
  absl::Span<const FittedParameter> parameters;
};

// The report is complete but for these notes.
std::vector<std::string> CalibrationNotes(const CalibrationBackground& background,
                                          const CalibrationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
