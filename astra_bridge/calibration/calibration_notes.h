// SPDX-License-Identifier: Apache-2.0
// What a person should know of a calibration before using its numbers: whether transfers are what
// they are taken for, and notes.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

class ArrivalSpread;
class CalibrationReport;
class ClockCheck;

// Returns whether waiting is left in transfers. The slope, and its error, are 0 where cells have no
// more transfers than it takes to draw a line, or their members all came alike.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells);

// Returns whether the clocks agree, as far as shortest durations tell. At least one run has a
// transfer.
ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs);

// What notes are about and the report does not hold.
struct CalibrationBackground {
  absl::Span<const CalibrationRun> runs;
  // The network that was given; null for none.
  const Fabric* topology = nullptr;
  // The network that the fit started from.
  const Fabric* start = nullptr;
  absl::Span<const FittedParameter> parameters;
};

// Returns notes on a report that is complete but for these.
std::vector<std::string> CalibrationNotes(const CalibrationBackground& background,
                                          const CalibrationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
