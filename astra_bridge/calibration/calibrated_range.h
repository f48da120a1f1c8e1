// What a calibration has seen: beyond it, times are extrapolated.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATED_RANGE_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATED_RANGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {

struct CalibratedRange {
  struct Sizes {
    int64_t smallest = 0;
    int64_t largest = 0;
  };
  // Kinds that are not there were not seen.
  std::map<CollectiveKind, Sizes> sizes;
  // How many ranks the groups of collectives had.
  std::set<int64_t> group_sizes;
  // How far apart the next members of a group were at most: LargestHop.
  int64_t largest_hop = 0;
  // How many pairs of a permute moved their data at once.
  std::set<int64_t> pairs;
  // What kernels were named after, by bytes; those that name nothing are not there.
  std::map<CollectiveKind, std::map<int64_t, std::set<std::string>>> protocols;
  // What the ranks were: "GPU", "TPU", "CPU". Empty: not known.
  std::set<std::string> device_kinds;

  // Returns what of a cell measured on such devices lies outside, e.g. "size outside the
  // calibration"; empty for nothing.
  std::vector<std::string> Beyond(const TransferCell& cell,
                                  const std::set<std::string>& cell_device_kinds) const;
};

// InvalidArgument for a report in which nothing was fitted, for a kind that is none, and for cells
// that do not say how large their groups are or how far apart their members.
absl::StatusOr<CalibratedRange> RangeOf(const CalibrationReport& report);

// Parses the JSON that astra_calibrate --report has written. Errors name the source.
absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATED_RANGE_H_
