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
  // What kernels were named after, by bytes; those that name nothing are not there.
  std::map<CollectiveKind, std::map<int64_t, std::set<std::string>>> protocols;
  // What the ranks were: "GPU", "TPU", "CPU". Empty: not known.
  std::set<std::string> device_kinds;
  // The shortest and the longest pause of a cell; none had one where the first is the longer.
  double shortest_pause_ns = 0;
  double longest_pause_ns = -1;
  // When the first and the last run was recorded, Unix time; 0: not known.
  int64_t first_recorded_ns = 0;
  int64_t last_recorded_ns = 0;

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

// Returns how long the shortest time slice of the devices is, in nanoseconds by the number of ranks
// of the run; runs that show none are not there. What runs on a device that is shared in slices
// takes a slice, or several, no matter how much it moves:
//
//   measured   2.24 ms  2.25 ms  2.26 ms       alike, and far more than simulated
//   simulated  0.10 ms  0.22 ms  0.53 ms       unlike
//
// On a network that is slower than thought, all that is small takes about the same time, too, and
// more than simulated: what a collective costs whatever it moves. So slices are half a millisecond
// or more, and either the simulated times differ so widely that it would show beside such a cost,
// or something that should take about as long did not. simulated_ns is by cell.
std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns);

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
  // By transfer: how many of other groups were under way meanwhile, in the mean over its time.
  std::vector<double> beside;
  // Which of them most, e.g. "all-to-all 1,048,576 {2,3} of 4"; empty: none.
  std::string most_beside;
  // When its runs were recorded, Unix time: the first and the last.
  int64_t first_recorded_ns = 0;
  int64_t last_recorded_ns = 0;
};

// What a reason is about: what comes before its details, which follow a colon.
absl::string_view ReasonTopic(absl::string_view reason);

// Returns e.g. "size outside the calibration", or "beside other groups: mostly all-to-all 1,048,576
// {2,3} of 4, on average 0.9 of them under way"; nothing for a fair test. Time slices are those of
// FindTimeSlicesNs; without a range, what was calibrated is not known.
std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::map<int32_t, double>& time_slices_ns,
                                     const std::optional<CalibratedRange>& range);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CHECK_REASONS_H_
