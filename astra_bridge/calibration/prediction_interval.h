// SPDX-License-Identifier: Apache-2.0
// How far predictions of transfers may be off: intervals that nine of ten measured medians lie in,
// made of what the measured runs themselves show:
//
//   * what was off by how much when sizes near the asked one were left out of the fit,
//   * what halves of the repeats differ by,
//   * what numbers of ranks left out were off by, for each doubling beyond what was fitted,
//   * how much neighbouring sizes at an end differ, for sizes beyond it,
//
// each a logarithm that covers nine of ten, added as squares. What moves medians from one recording
// of a machine to the next, no single recording shows; it is not in them.
#ifndef ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_
#define ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"

namespace meridian {

// The share of what is measured that is promised to lie in an interval.
inline constexpr double kPromisedShare = 0.9;

// Counts a measured time, and whether it lies in its interval.
void CountInside(double measured_ns, double low_ns, double high_ns, IntervalCoverage* coverage);

// A cell that was predicted by a model that had not seen it.
struct HeldOutError {
  int64_t bytes = 0;
  // log(predicted / measured).
  double log_error = 0;
  // How many times the number of ranks doubles from the nearest of its kind that the model had
  // seen, so that it is 0 for other sizes of as many; nullopt where it had seen none of its kind.
  std::optional<double> doublings = 0;
};

// Sets prediction errors, fitted kinds and factors of the report. physical_ns is by cell.
void DescribePredictionErrors(absl::Span<const TransferCell> cells,
                              absl::Span<const double> physical_ns,
                              absl::Span<const HeldOutError> errors, CalibrationReport* report);

class PredictionIntervals {
 public:
  // No intervals.
  PredictionIntervals() = default;

  // A report without prediction errors gives no intervals. InvalidArgument for numbers that cannot
  // be meant.
  static absl::StatusOr<PredictionIntervals> FromReport(const CalibrationReport& report);

  bool empty() const { return errors_.empty(); }

  // Returns the logarithm of the factor f: nine of ten measured times lie between t / f and t x f,
  // where t is what is predicted. 0 when there are no intervals.
  double LogFactor(const TransferTraits& transfer) const;

  // Returns what of the transfer lies outside of what was fitted, e.g. "size outside the
  // calibration"; empty for nothing, and when there are no intervals.
  std::vector<std::string> Beyond(const TransferTraits& transfer) const;

  // Returns the mean of repeats over their median at this size; 1 when there are no intervals.
  double MeanOverMedian(int64_t bytes) const;

 private:
  const PredictionError& ErrorsOf(int64_t bytes) const;
  // Returns what was fitted of its kind; null for nothing.
  const CalibratedKind* FittedOf(const TransferTraits& transfer) const;

  // By the bytes from which on they hold.
  std::map<int64_t, PredictionError> errors_;
  std::map<std::string, CalibratedKind> fitted_;
  double below_sizes_ = 0;
  double above_sizes_ = 0;
  double of_other_kinds_ = 0;
  double of_one_way_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_
