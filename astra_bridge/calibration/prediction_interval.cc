#include "astra_bridge/calibration/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// A normal distribution has nine tenths within so many deviations, and so many deviations between
// two draws per mean distance of two.
constexpr double kDeviations = 1.645;
constexpr double kDeviationsPerDistance = 1.2533;

// What medians move by from one recording to the next, in the mean.
struct Movement {
  double small = 0;
  double large = 0;
};
constexpr Movement kOnProcessors = {0.10, 0.07};
constexpr Movement kOnDevices = {0.17, 0.10};
// Processors that move data compute, too: in jobs of two machines transfers took up to this much
// (a logarithm) longer than in sweeps, where nothing computes.
constexpr double kComputingProcessors = 0.3;

// What is assumed where nothing was held out.
constexpr double kAssumedWithin = 0.25;
// Runs of more ranks than were fitted meet what no smaller run shows, the end of what a host's cores
// and links can share: eight ranks of one machine took 1.4 times what two and four let expect.
constexpr double kLeastPerDoubling = 0.4;
// Where all groups have one size, it is not even known how the algorithm grows.
constexpr double kUntoldPerDoubling = 0.8;
// Ratios stay level beyond the sizes that were fitted; real ones do not.
constexpr double kPerDoublingOfSize = 0.1;
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
      if ((error.bytes >= kLargeBytes) != is_large) continue;
      if (error.doublings > 0) {
        per_doubling.push_back(std::abs(error.log_error) / error.doublings);
      } else {
        of_sizes.push_back(std::abs(error.log_error));
      }
    }
    const double within = NineOfTen(std::move(of_sizes), kAssumedWithin);
    const double of_ranks = NineOfTen(std::move(per_doubling), kUntoldPerDoubling);
    const double moves =
        kDeviations * kDeviationsPerDistance * (is_large ? movement.large : movement.small);
    const double computing = on_processors ? kComputingProcessors : 0;
    PredictionError& error = result.emplace_back();
    error.set_from_bytes(is_large ? kLargeBytes : 0);
    error.set_factor(std::exp(std::hypot(within, moves, computing)));
    error.set_factor_per_doubling(std::exp(std::max(
        kLeastPerDoubling, std::sqrt(std::max(0.0, of_ranks * of_ranks - within * within)))));
  }
  return result;
}

TransferTraits TraitsOf(const CommEdge& edge, int64_t ranks) {
  return {edge.kind, edge.bytes,
          EffectiveRanks(static_cast<int64_t>(edge.participants.size()), ranks),
          edge.kind == CollectiveKind::kPointToPoint};
}

PredictionIntervals::PredictionIntervals(const CalibrationReport& report) {
  for (const PredictionError& error : report.prediction_errors()) {
    errors_[error.from_bytes()] = {std::log(error.factor()), std::log(error.factor_per_doubling())};
  }
  for (const CalibratedCorrection& point : report.corrections()) {
    const Fitted one = {point.bytes(), point.bytes(), point.ranks(), point.ranks()};
    for (const std::string& key : {point.kind(), std::string()}) {
      Fitted& fitted = fitted_.insert({key, one}).first->second;
      fitted.least_bytes = std::min(fitted.least_bytes, one.least_bytes);
      fitted.most_bytes = std::max(fitted.most_bytes, one.most_bytes);
      fitted.least_ranks = std::min(fitted.least_ranks, one.least_ranks);
      fitted.most_ranks = std::max(fitted.most_ranks, one.most_ranks);
    }
  }
}

double PredictionIntervals::LogFactor(const TransferTraits& transfer) const {
  if (errors_.empty() || fitted_.empty()) return 0;
  const auto above = errors_.upper_bound(transfer.bytes);
  const LogError& error =
      above == errors_.begin() ? errors_.begin()->second : std::prev(above)->second;
  auto found = fitted_.find(transfer.is_one_way ? std::string(kOneWayName)
                                                : std::string(CollectiveKindName(transfer.kind)));
  if (found == fitted_.end()) found = fitted_.find(std::string());
  const Fitted& fitted = found->second;
  const double of_size = kPerDoublingOfSize *
                         DoublingsBeyond(static_cast<double>(std::max<int64_t>(transfer.bytes, 1)),
                                         static_cast<double>(fitted.least_bytes),
                                         static_cast<double>(fitted.most_bytes));
  const double of_ranks =
      error.per_doubling * DoublingsBeyond(transfer.ranks, fitted.least_ranks, fitted.most_ranks);
  return std::hypot(error.within, of_size, of_ranks);
}

}  // namespace meridian
