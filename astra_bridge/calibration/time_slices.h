// Whether a device was shared in time slices: what runs on it then takes a slice, or several, no
// matter how much it moves.
//
//   measured   2.24 ms  2.25 ms  2.26 ms       alike, and far more than simulated
//   simulated  0.10 ms  0.22 ms  0.53 ms       unlike
//
// On a network that is slower than thought, all that is small takes about the same time, too, and
// more than simulated: what a collective costs whatever it moves. So slices are half a millisecond
// or more, and either the simulated times differ so widely that it would show beside such a cost,
// or something that should take about as long did not.
#ifndef ASTRA_BRIDGE_CALIBRATION_TIME_SLICES_H_
#define ASTRA_BRIDGE_CALIBRATION_TIME_SLICES_H_

#include <cstdint>
#include <map>

#include "absl/types/span.h"
#include "astra_bridge/calibration/transfer_cells.h"

namespace meridian {

// Returns how long the shortest slice is, by the number of ranks of the run; runs that show none
// are not there. Simulated times are by cell.
std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TIME_SLICES_H_
