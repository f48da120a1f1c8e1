// Whether transfers are what they are taken for: without waiting in them, and by clocks that agree.
#ifndef ASTRA_BRIDGE_CALIBRATION_TRANSFER_QUALITY_H_
#define ASTRA_BRIDGE_CALIBRATION_TRANSFER_QUALITY_H_

#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/calibration/transfer_cells.h"

namespace meridian {

// The slope, and its error, are 0 where cells have no more transfers than it takes to draw a line,
// or their members all came alike.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells);

// At least one run has a transfer.
ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TRANSFER_QUALITY_H_
