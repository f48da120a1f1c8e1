// SPDX-License-Identifier: Apache-2.0
// What sets measured transfers apart from those that a network was calibrated with, so that their
// error is not the network's alone: what the calibration had not seen, and how they came about.
#ifndef ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_
#define ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/timed_kind.h"

namespace meridian {

class CalibrationReport;

// What a calibration has seen: beyond it, times are extrapolated.
struct CalibratedRange {
  struct Sizes {
    int64_t smallest = 0;
    int64_t largest = 0;
  };
  // Kinds that are not there were not seen.
  std::map<CollectiveKind, Sizes> sizes;
  // How many ranks the runs, and the groups of collectives, had.
  std::set<int64_t> run_sizes;
  std::set<int64_t> group_sizes;
  // How far apart the next members of a group were at most: LargestHop.
  int64_t largest_hop = 0;
  // How many pairs of a permute moved their data at once, and whether some went one way, and some
  // both ways.
  std::set<int64_t> pairs;
  bool has_one_way = false;
  bool has_both_ways = false;
  // What kernels were named after; kinds whose kernels name nothing are not there.
  std::map<CollectiveKind, std::set<std::string>> protocols;
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

// Returns a note for each run that the calibration used: those that its report names with as many
// ranks and transfers. Folders are compared as they were written, so one that was moved or is named
// in another way is not recognised.
std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs);

// Returns a note when the corrections are others than those that the calibration has fitted.
std::vector<std::string> NotesOnCorrections(const CalibrationReport& calibration,
                                            const Corrections& corrections);

inline constexpr char kMetOthers[] = "met other collectives";

// How the transfers of a cell came about.
struct CellCircumstances {
  // How many met another collective of the same rank.
  int64_t overlapped = 0;
  // What the ranks are: "GPU", "TPU", "CPU".
  std::set<std::string> device_kinds;
  // The shares of the cell's time in which its ranks also computed, and in which ranks outside of
  // its group did; absent when not known.
  std::optional<double> compute_share;
  std::optional<double> others_compute_share;
  // How many transfers of other groups were under way meanwhile, in the mean over the time of the
  // cell's.
  double beside = 0;
};

// What a reason is about: what comes before its details, which follow a colon.
absl::string_view ReasonTopic(absl::string_view reason);

// Returns e.g. "size outside the calibration", or "beside other groups: on average 0.9 of them under
// way"; nothing for a fair test. Without a range, what was calibrated is not known.
std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::optional<CalibratedRange>& range);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_
