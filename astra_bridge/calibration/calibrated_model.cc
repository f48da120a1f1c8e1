#include "astra_bridge/calibration/calibrated_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

constexpr Holdout kHoldouts[] = {Holdout::kSize, Holdout::kKind, Holdout::kGroup};
constexpr int64_t kLargeBytes = int64_t{1} << 20;

using Folds = std::vector<std::vector<size_t>>;

double LogOf(int64_t bytes) { return std::log(static_cast<double>(bytes)); }

// The cells of one point: their logarithms.
struct PointSums {
  int64_t smallest_bytes = 0;
  std::vector<double> log_bytes;
  std::vector<double> log_ratios;
};

bool HasRunsOfSeveralSizes(absl::Span<const TransferCell> cells) {
  return std::any_of(cells.begin(), cells.end(),
                     [&](const TransferCell& cell) { return cell.ranks != cells[0].ranks; });
}

// Returns the folds of all sizes but the smallest and the largest, from the cells of each size.
Folds MakeSizeFolds(const std::map<int64_t, std::vector<size_t>>& by_size) {
  if (by_size.size() < 3) return {};
  const std::vector<std::pair<int64_t, std::vector<size_t>>> between(std::next(by_size.begin()),
                                                                     std::prev(by_size.end()));
  Folds folds(by_size.size() > kMaxSizes ? kMaxSizeFolds : between.size());
  for (size_t f = 0; f < folds.size(); ++f) {
    for (size_t i = f * between.size() / folds.size(); i < (f + 1) * between.size() / folds.size();
         ++i) {
      folds[f].insert(folds[f].end(), between[i].second.begin(), between[i].second.end());
    }
    std::sort(folds[f].begin(), folds[f].end());
  }
  return folds;
}

}  // namespace

absl::StatusOr<CalibratedModel> FitModel(const Fabric& start,
                                         absl::Span<const TransferCell> cells) {
  CalibratedModel model;
  ASSIGN_OR_RETURN(model.parameters, FitParameters(start, cells));
  ASSIGN_OR_RETURN(const std::vector<double> engine_ns,
                   EngineTimesNs(model.parameters.fabric, cells));
  model.corrections = FitCorrections(cells, engine_ns);
  return model;
}

Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns) {
  std::map<std::pair<CollectiveKind, int64_t>, std::vector<size_t>> by_size;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_size[{cells[i].kind, cells[i].bytes}].push_back(i);
  }
  std::array<std::vector<PointSums>, kTimedKinds> sums;
  for (const auto& [kind_and_bytes, positions] : by_size) {
    const auto [kind, bytes] = kind_and_bytes;
    std::vector<PointSums>& of_kind = sums[static_cast<size_t>(kind)];
    if (of_kind.empty() ||
        static_cast<double>(bytes) >=
            kSameSizeFactor * static_cast<double>(of_kind.back().smallest_bytes)) {
      of_kind.push_back({bytes, {}, {}});
    }
    for (size_t i : positions) {
      of_kind.back().log_bytes.push_back(LogOf(bytes));
      of_kind.back().log_ratios.push_back(std::log(cells[i].median_ns / engine_ns[i]));
    }
  }
  Corrections corrections;
  for (size_t kind = 0; kind < sums.size(); ++kind) {
    for (const PointSums& point : sums[kind]) {
      corrections.points[kind].push_back(
          {std::llround(std::exp(Mean(point.log_bytes))), std::exp(Mean(point.log_ratios))});
    }
  }
  return corrections;
}

void ListCorrections(const Corrections& corrections, CalibrationReport* report) {
  for (size_t kind = 0; kind < kTimedKinds; ++kind) {
    for (const CorrectionPoint& point : corrections.points[kind]) {
      CalibratedCorrection* listed = report->add_corrections();
      listed->set_kind(std::string(CollectiveKindName(static_cast<CollectiveKind>(kind))));
      listed->set_bytes(point.bytes);
      listed->set_ratio(point.ratio);
    }
  }
}

absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells) {
  ASSIGN_OR_RETURN(std::vector<double> times_ns, EngineTimesNs(fabric, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    times_ns[i] = corrections.CorrectedNs(cells[i].kind, cells[i].bytes, times_ns[i]);
  }
  return times_ns;
}

absl::string_view HoldoutName(Holdout holdout) {
  switch (holdout) {
    case Holdout::kSize:
      return "size";
    case Holdout::kKind:
      return "op";
    case Holdout::kGroup:
      return "group";
  }
  return "";
}

std::optional<Holdout> HoldoutFromName(absl::string_view name) {
  for (Holdout holdout : kHoldouts) {
    if (HoldoutName(holdout) == name) return holdout;
  }
  return std::nullopt;
}

Folds MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout) {
  const bool by_run = HasRunsOfSeveralSizes(cells);
  std::map<int64_t, std::vector<size_t>> by_key;
  for (size_t i = 0; i < cells.size(); ++i) {
    int64_t key = cells[i].bytes;
    if (holdout == Holdout::kKind) key = static_cast<int64_t>(cells[i].kind);
    if (holdout == Holdout::kGroup) {
      // Between two ranks whatever the group: no number of ranks to be left out by.
      if (!by_run && cells[i].kind == CollectiveKind::kPointToPoint) continue;
      key = by_run ? cells[i].ranks : static_cast<int64_t>(cells[i].participants.size());
    }
    by_key[key].push_back(i);
  }
  if (holdout == Holdout::kSize) return MakeSizeFolds(by_key);
  Folds folds;
  if (by_key.size() < 2) return folds;
  for (auto& [key, held] : by_key) folds.push_back(std::move(held));
  return folds;
}

absl::StatusOr<std::vector<HeldOutPrediction>> PredictHeldOut(
    const Fabric& start, absl::Span<const TransferCell> cells,
    absl::Span<const std::vector<size_t>> folds, const std::function<void(size_t)>& progress) {
  std::vector<HeldOutPrediction> predictions;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (progress) progress(f);
    const std::set<size_t> held(folds[f].begin(), folds[f].end());
    std::vector<TransferCell> rest, held_cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      (held.count(i) > 0 ? held_cells : rest).push_back(cells[i]);
    }
    ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start, rest));
    ASSIGN_OR_RETURN(const std::vector<double> times_ns,
                     PredictCellsNs(model.parameters.fabric, model.corrections, held_cells));
    for (size_t i = 0; i < held_cells.size(); ++i) {
      predictions.push_back({folds[f][i], times_ns[i]});
    }
  }
  return predictions;
}

ErrorSummary SummariseErrors(absl::Span<const Prediction> predictions) {
  ErrorSummary summary;
  summary.set_n(static_cast<int64_t>(predictions.size()));
  if (predictions.empty()) return summary;
  std::vector<double> all, signed_errors, small, large;
  for (const Prediction& prediction : predictions) {
    const double error = prediction.signed_error();
    all.push_back(std::abs(error));
    signed_errors.push_back(error);
    (prediction.bytes >= kLargeBytes ? large : small).push_back(std::abs(error));
  }
  summary.set_mape(Mean(all));
  summary.set_mean_signed_error(Mean(signed_errors));
  summary.set_p95(Quantile(all, 0.95));
  if (!large.empty()) summary.set_mape_large(Mean(large));
  if (!small.empty()) summary.set_mape_small(Mean(small));
  return summary;
}

}  // namespace meridian
