// What sets measured transfers apart from those that a network was calibrated with, so that their
// error is not the network's alone.
#ifndef ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_
#define ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "astra_bridge/calibration/calibrated_range.h"
#include "astra_bridge/calibration/transfer_cells.h"

namespace meridian {

inline constexpr char kMetOthers[] = "met other collectives";

// How the transfers of a cell came about.
struct CellCircumstances {
  // How many met another collective of the same rank.
  int64_t overlapped = 0;
  // What the ranks are: "GPU", "TPU", "CPU".
  std::set<std::string> device_kinds;
  // The share of its time in which its ranks also computed; absent when not known.
  std::optional<double> compute_share;
};

// Returns e.g. "size outside the calibration"; nothing for a fair test. Time slices are those of
// FindTimeSlicesNs; without a range, what was calibrated is not known.
std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::map<int32_t, double>& time_slices_ns,
                                     const std::optional<CalibratedRange>& range);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_
