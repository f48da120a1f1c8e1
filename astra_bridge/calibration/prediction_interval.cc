#include "astra_bridge/calibration/prediction_interval.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Errors of sizes within this factor tell how far a size may be off; fewer than kLeastErrors say
// nothing about nine of ten, and all sizes are asked then.
constexpr double kNearSizes = 4;
constexpr size_t kLeastErrors = 8;
// What is assumed where nothing was held out: predictions are right to a factor of so much.
constexpr double kUntold = 2;
// Beyond these no measurement lies.
constexpr double kMaxFactor = 1000;
constexpr int64_t kMaxRanks = 1'000'000'000;

double NineOfTen(std::vector<double> values, double unless) {
  if (values.empty()) return unless;
  std::sort(values.begin(), values.end());
  // So many of n values, in order, have nine of ten of the next below them; few have not.
  const double rank = std::ceil(kPromisedShare * static_cast<double>(values.size() + 1));
  return values[std::min(values.size(), static_cast<size_t>(rank)) - 1];
}

// Returns a logarithm as a factor that FromReport takes.
double FactorOf(double logarithm) { return std::clamp(std::exp(logarithm), 1.0, kMaxFactor); }

bool IsNear(int64_t bytes, int64_t other) {
  const double times = static_cast<double>(bytes) / static_cast<double>(other);
  return times <= kNearSizes && times >= 1 / kNearSizes;
}

// Returns the values of the sizes near to one; of all where too few are near.
std::vector<double> ValuesNear(const std::vector<std::pair<int64_t, double>>& by_size,
                               int64_t bytes) {
  std::vector<double> near, all;
  for (const auto& [other, value] : by_size) {
    all.push_back(value);
    if (IsNear(bytes, other)) near.push_back(value);
  }
  return near.size() >= kLeastErrors ? near : all;
}

std::string NameOf(CollectiveKind kind, bool is_one_way) {
  return std::string(is_one_way ? kOneWayName : CollectiveKindName(kind));
}

double DoublingsBeyond(double x, int64_t least, int64_t most) {
  const double low = static_cast<double>(least), high = static_cast<double>(most);
  if (x < low) return std::log2(low / x);
  return x > high ? std::log2(x / high) : 0;
}

void DescribeKinds(absl::Span<const TransferCell> cells, CalibrationReport* report) {
  std::map<std::string, CalibratedKind> kinds;
  for (const TransferCell& cell : cells) {
    const std::string name = NameOf(cell.kind, IsOneWay(cell));
    const auto [found, is_new] = kinds.try_emplace(name);
    CalibratedKind& fitted = found->second;
    const int64_t ranks = MovingRanksOf(cell);
    fitted.set_kind(name);
    fitted.set_least_bytes(is_new ? cell.bytes : std::min(fitted.least_bytes(), cell.bytes));
    fitted.set_most_bytes(std::max(fitted.most_bytes(), cell.bytes));
    fitted.set_least_ranks(is_new ? ranks : std::min(fitted.least_ranks(), ranks));
    fitted.set_most_ranks(std::max(fitted.most_ranks(), ranks));
  }
  for (const auto& [name, fitted] : kinds) *report->add_calibrated_kinds() = fitted;
}

// By how much measured over physics changes with a doubling of the size at both ends of each series
// of sizes, as logarithms.
struct ChangesAtEnds {
  std::vector<double> below, above;
};

ChangesAtEnds FindChanges(absl::Span<const TransferCell> cells,
                          absl::Span<const double> physical_ns) {
  std::map<CellKey, std::map<int64_t, double>> ratios;
  for (size_t i = 0; i < cells.size(); ++i) {
    CellKey key = cells[i];
    key.bytes = 0;
    ratios[key][cells[i].bytes] = std::log(cells[i].median_ns / physical_ns[i]);
  }
  ChangesAtEnds changes;
  for (const auto& [key, by_size] : ratios) {
    const int64_t least = by_size.begin()->first, most = by_size.rbegin()->first;
    for (auto next = std::next(by_size.begin()); next != by_size.end(); ++next) {
      const auto last = std::prev(next);
      const double doublings =
          std::log2(static_cast<double>(next->first) / static_cast<double>(last->first));
      const double change = std::abs(next->second - last->second) / std::max(doublings, 1.0);
      if (IsNear(next->first, least)) changes.below.push_back(change);
      if (IsNear(last->first, most)) changes.above.push_back(change);
    }
  }
  return changes;
}

}  // namespace

void CountInside(double measured_ns, double low_ns, double high_ns, IntervalCoverage* coverage) {
  coverage->set_promised(kPromisedShare);
  coverage->set_n(coverage->n() + 1);
  const bool is_inside = measured_ns >= low_ns && measured_ns <= high_ns;
  coverage->set_inside(coverage->inside() + (is_inside ? 1 : 0));
}

void DescribePredictionErrors(absl::Span<const TransferCell> cells,
                              absl::Span<const double> physical_ns,
                              absl::Span<const HeldOutError> errors, CalibrationReport* report) {
  DescribeKinds(cells, report);
  std::vector<double> by_physics;
  std::vector<std::pair<int64_t, double>> of_sizes, halves, means, of_ranks;
  std::set<int64_t> sizes;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_physics.push_back(std::abs(std::log(cells[i].median_ns / physical_ns[i])));
    sizes.insert(cells[i].bytes);
    if (cells[i].transfers_ns.size() < 2) continue;
    means.push_back({cells[i].bytes, Mean(cells[i].transfers_ns) / cells[i].median_ns});
    if (const std::optional<double> floor = NoiseFloor({&cells[i], 1})) {
      halves.push_back({cells[i].bytes, std::log1p(*floor)});
    }
  }
  for (const HeldOutError& error : errors) {
    if (error.doublings == 0) of_sizes.push_back({error.bytes, std::abs(error.log_error)});
  }
  const ChangesAtEnds changes = FindChanges(cells, physical_ns);
  report->set_factor_below_sizes(FactorOf(NineOfTen(changes.below, std::log(kUntold))));
  report->set_factor_above_sizes(FactorOf(NineOfTen(changes.above, std::log(kUntold))));
  report->set_factor_of_other_kinds(FactorOf(NineOfTen(by_physics, std::log(kUntold))));
  const auto within = [&](int64_t bytes) {
    return NineOfTen(ValuesNear(of_sizes, bytes), std::log(kUntold));
  };
  for (const HeldOutError& error : errors) {
    if (error.doublings.value_or(0) == 0) continue;
    // What the number of ranks adds to what sizes are off by anyway.
    const double anyway = within(error.bytes);
    const double added = error.log_error * error.log_error - anyway * anyway;
    of_ranks.push_back(
        {error.bytes, std::sqrt(std::max(0.0, added)) / std::max(*error.doublings, 1.0)});
  }
  int64_t next_bytes = 0;
  for (const int64_t bytes : sizes) {
    if (bytes < next_bytes) continue;
    PredictionError& error = *report->add_prediction_errors();
    error.set_from_bytes(next_bytes == 0 ? 0 : bytes);
    error.set_factor(FactorOf(std::hypot(within(bytes), NineOfTen(ValuesNear(halves, bytes), 0))));
    error.set_factor_per_doubling(
        FactorOf(NineOfTen(ValuesNear(of_ranks, bytes), std::log(kUntold))));
    const std::vector<double> near_means = ValuesNear(means, bytes);
    error.set_mean_over_median(near_means.empty() ? 1 : Mean(near_means));
    next_bytes = 2 * bytes;
  }
}

absl::StatusOr<PredictionIntervals> PredictionIntervals::FromReport(
    const CalibrationReport& report) {
  const auto wrong = [](absl::string_view what) {
    return InvalidArgument("the calibration has ", what,
                           "; write the report anew with astra_calibrate");
  };
  const auto is_factor = [](double factor) { return factor >= 1 && factor <= kMaxFactor; };
  PredictionIntervals intervals;
  for (const PredictionError& error : report.prediction_errors()) {
    if (!is_factor(error.factor()) || !is_factor(error.factor_per_doubling()) ||
        !(error.mean_over_median() >= 1 / kMaxFactor && error.mean_over_median() <= kMaxFactor)) {
      return wrong("a prediction error that is no factor from 1 to 1,000");
    }
    if (error.from_bytes() < 0 || !intervals.errors_.insert({error.from_bytes(), error}).second) {
      return wrong("prediction errors of the same bytes, or of fewer than none");
    }
  }
  for (const CalibratedKind& fitted : report.calibrated_kinds()) {
    if (fitted.least_bytes() <= 0 || fitted.most_bytes() < fitted.least_bytes() ||
        fitted.least_ranks() <= 0 || fitted.most_ranks() < fitted.least_ranks() ||
        fitted.most_ranks() > kMaxRanks) {
      return wrong("a kind of no bytes, or of no number of ranks");
    }
    intervals.fitted_[fitted.kind()] = fitted;
  }
  if (intervals.empty()) return intervals;
  if (!is_factor(report.factor_below_sizes()) || !is_factor(report.factor_above_sizes()) ||
      !is_factor(report.factor_of_other_kinds())) {
    return wrong("a factor of sizes, or of other kinds, that is none from 1 to 1,000");
  }
  intervals.below_sizes_ = std::log(report.factor_below_sizes());
  intervals.above_sizes_ = std::log(report.factor_above_sizes());
  intervals.of_other_kinds_ = std::log(report.factor_of_other_kinds());
  if (report.factor_of_one_way() != 0) {
    if (!is_factor(report.factor_of_one_way())) return wrong("a factor of one way that is none");
    intervals.of_one_way_ = std::log(report.factor_of_one_way());
  }
  return intervals;
}

const PredictionError& PredictionIntervals::ErrorsOf(int64_t bytes) const {
  const auto above = errors_.upper_bound(bytes);
  return above == errors_.begin() ? above->second : std::prev(above)->second;
}

const CalibratedKind* PredictionIntervals::FittedOf(const TransferTraits& transfer) const {
  auto found = fitted_.find(NameOf(transfer.kind, transfer.is_one_way));
  if (found == fitted_.end()) found = fitted_.find(NameOf(transfer.kind, false));
  return found == fitted_.end() ? nullptr : &found->second;
}

double PredictionIntervals::LogFactor(const TransferTraits& transfer) const {
  if (errors_.empty()) return 0;
  const PredictionError& error = ErrorsOf(transfer.bytes);
  const double within = std::log(error.factor());
  const CalibratedKind* fitted = FittedOf(transfer);
  if (fitted == nullptr) return std::hypot(within, of_other_kinds_);
  // Changes from one doubling to the next go up and down, so that they add as squares.
  const int64_t bytes = std::max<int64_t>(transfer.bytes, 1);
  const double of_size = (bytes < fitted->least_bytes() ? below_sizes_ : above_sizes_) *
                         std::sqrt(DoublingsBeyond(static_cast<double>(bytes),
                                                   fitted->least_bytes(), fitted->most_bytes()));
  const double of_ranks =
      std::log(error.factor_per_doubling()) *
      DoublingsBeyond(std::max(transfer.ranks, 1.0), fitted->least_ranks(), fitted->most_ranks());
  const double of_one_way = transfer.is_one_way ? of_one_way_ : 0;
  return std::min(std::hypot(std::hypot(within, of_one_way), of_size, of_ranks),
                  std::log(kMaxFactor));
}

std::vector<std::string> PredictionIntervals::Beyond(const TransferTraits& transfer) const {
  if (errors_.empty()) return {};
  const CalibratedKind* fitted = FittedOf(transfer);
  if (fitted == nullptr) return {"kind not in the calibration"};
  std::vector<std::string> reasons;
  if (transfer.bytes < fitted->least_bytes() || transfer.bytes > fitted->most_bytes()) {
    reasons.push_back("size outside the calibration");
  }
  if (DoublingsBeyond(transfer.ranks, fitted->least_ranks(), fitted->most_ranks()) > 0) {
    reasons.push_back("number of ranks outside the calibration");
  }
  if (transfer.is_one_way && fitted_.count(std::string(kOneWayName)) == 0) {
    reasons.push_back("messages one way not in the calibration");
  }
  return reasons;
}

double PredictionIntervals::MeanOverMedian(int64_t bytes) const {
  return errors_.empty() ? 1 : ErrorsOf(bytes).mean_over_median();
}

}  // namespace meridian
