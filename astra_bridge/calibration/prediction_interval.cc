#include "astra_bridge/calibration/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// A normal distribution has nine tenths within so many deviations, and so many deviations between
// two draws per mean distance of two.
constexpr double kDeviations = 1.645;
constexpr double kDeviationsPerMeanDistance = 1.2533;

// What one recording does not show of another.
struct Movement {
  // What medians move by from one recording to the next, in the mean.
  double small = 0;
  double large = 0;
  // A logarithm: jobs compute beside their transfers and move data that no cache holds any more.
  // In most jobs their transfers took longer than sweeps let expect, few by more than this.
  double of_jobs = 0;
};
constexpr Movement kOnProcessors = {0.10, 0.07, 0.5};
constexpr Movement kOnDevices = {0.17, 0.10, 0.2};

// What is assumed where nothing was held out.
constexpr double kAssumedWithin = 0.25;
// Runs of more ranks than were fitted meet what no smaller run shows, the end of what a host's
// cores and links can share: eight ranks of one machine took 1.4 times what two and four let
// expect.
constexpr double kLeastPerDoubling = 0.4;
// Of small transfers it is not known either whether their latency follows the steps of a ring,
// which are 7 for eight ranks and 3 for four, or stays as it is, as if all were sent at once: times
// of two and four ranks were seen to be level, and those of eight to grow as a ring's.
constexpr double kLeastPerDoublingOfSmall = 0.85;
// Where all groups have one size, it is not even known how the algorithm grows.
constexpr double kUntoldPerDoubling = 0.8;
// Ratios stay level beyond the sizes that were fitted; real ones do not.
constexpr double kPerDoublingOfSize = 0.1;
// Kinds that were not fitted are right to a factor of two.
constexpr double kNotFitted = 0.7;
// Beyond these no measurement lies.
constexpr double kMaxFactor = 1000;
constexpr double kMaxRanks = 1e9;
// Fewer say nothing about nine of ten.
constexpr size_t kLeastHeldOut = 5;

double NineOfTen(std::vector<double> values, double unless) {
  if (values.size() < kLeastHeldOut) return unless;
  return Quantile(std::move(values), kPromisedShare);
}

// Returns how many times x doubles, or halves, until it is within.
double DoublingsBeyond(double x, double least, double most) {
  if (x < least) return std::log2(least / x);
  return x > most ? std::log2(x / most) : 0;
}

}  // namespace

std::vector<PredictionError> MeasurePredictionErrors(absl::Span<const HeldOutError> errors,
                                                     bool on_processors) {
  const Movement movement = on_processors ? kOnProcessors : kOnDevices;
  std::vector<PredictionError> result;
  for (const bool is_large : {false, true}) {
    std::vector<double> of_sizes, per_doubling;
    for (const HeldOutError& error : errors) {
      if ((error.bytes >= kLargeBytes) != is_large || error.doublings != 0) continue;
      of_sizes.push_back(std::abs(error.log_error));
    }
    const double within = NineOfTen(std::move(of_sizes), kAssumedWithin);
    for (const HeldOutError& error : errors) {
      if ((error.bytes >= kLargeBytes) != is_large || error.doublings.value_or(0) == 0) continue;
      // What the number of ranks adds to what sizes are off by anyway.
      const double added = error.log_error * error.log_error - within * within;
      per_doubling.push_back(std::sqrt(std::max(0.0, added)) / *error.doublings);
    }
    const double of_ranks = NineOfTen(std::move(per_doubling), kUntoldPerDoubling);
    const double moves =
        kDeviations * kDeviationsPerMeanDistance * (is_large ? movement.large : movement.small);
    PredictionError& error = result.emplace_back();
    error.set_from_bytes(is_large ? kLargeBytes : 0);
    error.set_factor(std::exp(std::hypot(within, moves, movement.of_jobs)));
    error.set_factor_per_doubling(
        std::exp(std::max(is_large ? kLeastPerDoubling : kLeastPerDoublingOfSmall, of_ranks)));
  }
  return result;
}

void CountInside(double measured_ns, double low_ns, double high_ns, IntervalCoverage* coverage) {
  coverage->set_promised(kPromisedShare);
  coverage->set_n(coverage->n() + 1);
  const bool is_inside = measured_ns >= low_ns && measured_ns <= high_ns;
  coverage->set_inside(coverage->inside() + (is_inside ? 1 : 0));
}

absl::StatusOr<PredictionIntervals> PredictionIntervals::FromReport(
    const CalibrationReport& report) {
  const auto wrong = [](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the calibration has ", what, "; write the report anew with astra_calibrate"));
  };
  PredictionIntervals intervals;
  for (const PredictionError& error : report.prediction_errors()) {
    for (const double factor : {error.factor(), error.factor_per_doubling()}) {
      if (!(factor >= 1 && factor <= kMaxFactor)) {
        return wrong("a prediction error that is no factor from 1 to 1,000");
      }
    }
    const LogError log_error = {std::log(error.factor()), std::log(error.factor_per_doubling())};
    if (error.from_bytes() < 0 ||
        !intervals.errors_.insert({error.from_bytes(), log_error}).second) {
      return wrong("prediction errors of the same bytes, or of fewer than none");
    }
  }
  for (const CalibratedCorrection& point : report.corrections()) {
    if (point.bytes() <= 0 || !(point.ranks() >= 1 && point.ranks() <= kMaxRanks)) {
      return wrong("a correction of no bytes, or of no number of ranks");
    }
    const Fitted one = {point.bytes(), point.bytes(), point.ranks(), point.ranks()};
    Fitted& fitted = intervals.fitted_.insert({point.kind(), one}).first->second;
    fitted.least_bytes = std::min(fitted.least_bytes, one.least_bytes);
    fitted.most_bytes = std::max(fitted.most_bytes, one.most_bytes);
    fitted.least_ranks = std::min(fitted.least_ranks, one.least_ranks);
    fitted.most_ranks = std::max(fitted.most_ranks, one.most_ranks);
    intervals.most_ranks_ = std::max(intervals.most_ranks_, one.most_ranks);
  }
  return intervals;
}

double PredictionIntervals::LogFactor(const TransferTraits& transfer) const {
  if (errors_.empty()) return 0;
  const auto above = errors_.upper_bound(transfer.bytes);
  const LogError& error =
      above == errors_.begin() ? errors_.begin()->second : std::prev(above)->second;
  auto found = fitted_.find(std::string(CollectiveKindName(transfer.kind)));
  if (transfer.is_one_way && fitted_.count(std::string(kOneWayName)) > 0) {
    found = fitted_.find(std::string(kOneWayName));
  }
  if (found == fitted_.end()) return std::hypot(error.within, kNotFitted);
  const Fitted& fitted = found->second;
  const double of_size = kPerDoublingOfSize *
                         DoublingsBeyond(static_cast<double>(std::max<int64_t>(transfer.bytes, 1)),
                                         static_cast<double>(fitted.least_bytes),
                                         static_cast<double>(fitted.most_bytes));
  // A small group of a run that has more ranks than any fitted one shares their host with all.
  const double doublings = std::max(
      DoublingsBeyond(std::max(transfer.ranks, 1.0), fitted.least_ranks, fitted.most_ranks),
      DoublingsBeyond(static_cast<double>(transfer.ranks_of_run), 1, most_ranks_));
  const double of_ranks = error.per_doubling * doublings;
  return std::min(std::hypot(error.within, of_size, of_ranks), std::log(kMaxFactor));
}

double PredictionIntervals::LogDeviation(const TransferTraits& transfer) const {
  return LogFactor(transfer) / kDeviations;
}

}  // namespace meridian
