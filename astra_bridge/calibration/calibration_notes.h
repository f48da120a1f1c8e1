// SPDX-License-Identifier: Apache-2.0
// What a calibration says besides its numbers: how far repeats scatter, whether waiting is left in
// transfers, whether clocks agree, and notes for people.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Returns how far repeats lie from the medians of their cells, of small transfers and of others, of
// sizes that have any.
std::vector<TransferSpread> MeasureSpreads(absl::Span<const TransferCell> cells);

// Returns whether waiting is left in transfers. The slope, and its error, are 0 where cells have no
// more transfers than it takes to draw a line, or their members all came alike.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells);

// Returns whether the clocks agree, as far as shortest durations tell. At least one run has a
// transfer.
ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs);

// Returns notes on a report that is complete but for these. `topology` is the network that was
// given, `start` the one that the fit started from.
std::vector<std::string> CalibrationNotes(absl::Span<const CalibrationRun> runs,
                                          const std::optional<Fabric>& topology,
                                          const Fabric& start,
                                          absl::Span<const FittedParameter> parameters,
                                          const CalibrationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_NOTES_H_
