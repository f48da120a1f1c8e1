// SPDX-License-Identifier: Apache-2.0
// How far predictions of transfers may be off: intervals that nine of ten measured medians lie in.
// They are made of
//
//   * what was off by how much when sizes were left out of the fit,
//   * the same for numbers of ranks, for each doubling beyond what was fitted,
//   * what medians move by from one recording of a machine to the next, which no single recording
//     shows: 10 % at 1 MiB and more and 17 % below on devices, 7 and 10 % on processors, where what
//     computes beside costs more still,
//   * for sizes beyond those that were fitted, an allowance for each doubling,
//
// each a logarithm that covers nine of ten, added as squares. Kinds that were not fitted are taken
// to be right to a factor of two.
#ifndef ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_
#define ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/corrections/corrections.h"

namespace meridian {

class CalibrationReport;
class IntervalCoverage;
class PredictionError;

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
  // seen, so that it is 0 for other sizes and places of as many; nullopt where it had seen none of
  // its kind.
  std::optional<double> doublings = 0;
};

// Returns them for transfers below 1 MiB and for others. Where nothing was held out, what
// recordings of several machines showed is assumed.
std::vector<PredictionError> MeasurePredictionErrors(absl::Span<const HeldOutError> errors,
                                                     bool on_processors);

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
  // Returns the standard deviation of a normal distribution of logarithms with these intervals.
  double LogDeviation(const TransferTraits& transfer) const;

 private:
  struct Fitted {
    int64_t least_bytes = 0, most_bytes = 0;
    double least_ranks = 0, most_ranks = 0;
  };
  struct LogError {
    double within = 0;
    double per_doubling = 0;
  };

  // Errors of transfers by the bytes from which on they hold.
  std::map<int64_t, LogError> errors_;
  // What was fitted, by the name of the kind as corrections have it (CalibratedCorrection.kind).
  std::map<std::string, Fitted> fitted_;
  // The most ranks that any kind was fitted with.
  double most_ranks_ = 1;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_PREDICTION_INTERVAL_H_
