#include "astra_bridge/calibration/holdout.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/size_ranges.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr Holdout kHoldouts[] = {Holdout::kSize, Holdout::kKind, Holdout::kGroup};

bool HasRunsOfSeveralSizes(absl::Span<const TransferCell> cells) {
  return std::any_of(cells.begin(), cells.end(),
                     [&](const TransferCell& cell) { return cell.ranks != cells[0].ranks; });
}

std::string FoldName(Holdout holdout, int64_t key) {
  if (holdout == Holdout::kKind)
    return std::string(CollectiveKindName(static_cast<CollectiveKind>(key)));
  return absl::StrCat(key, " ranks");
}

std::string SizesName(int64_t first, int64_t last) {
  if (first == last) return absl::StrCat("size ", first);
  return absl::StrCat("sizes ", first, " to ", last);
}

// From the cells of each size, without the smallest and the largest.
std::vector<HoldoutFold> MakeSizeFolds(const std::map<int64_t, std::vector<size_t>>& by_size) {
  if (by_size.size() < 3) return {};
  const std::vector<std::pair<int64_t, std::vector<size_t>>> between(std::next(by_size.begin()),
                                                                     std::prev(by_size.end()));
  const size_t count = by_size.size() > kMaxSizes ? kMaxSizeFolds : between.size();
  std::vector<HoldoutFold> folds;
  for (size_t f = 0; f < count; ++f) {
    const size_t first = f * between.size() / count;
    const size_t end = (f + 1) * between.size() / count;
    HoldoutFold fold{SizesName(between[first].first, between[end - 1].first), {}};
    for (size_t i = first; i < end; ++i) {
      fold.held.insert(fold.held.end(), between[i].second.begin(), between[i].second.end());
    }
    std::sort(fold.held.begin(), fold.held.end());
    folds.push_back(std::move(fold));
  }
  return folds;
}

}  // namespace

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

std::vector<HoldoutFold> MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout) {
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
  std::vector<HoldoutFold> folds;
  if (by_key.size() < 2) return folds;
  for (auto& [key, held] : by_key) {
    folds.push_back({FoldName(holdout, key), std::move(held)});
  }
  return folds;
}

absl::StatusOr<std::vector<HeldOutPrediction>> PredictHeldOut(
    const Fabric& start, absl::Span<const TransferCell> cells, absl::Span<const HoldoutFold> folds,
    const std::function<void(size_t)>& progress) {
  std::vector<HeldOutPrediction> predictions;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (progress) progress(f);
    const std::set<size_t> held(folds[f].held.begin(), folds[f].held.end());
    std::vector<TransferCell> rest, held_cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      (held.count(i) > 0 ? held_cells : rest).push_back(cells[i]);
    }
    ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start, rest));
    ASSIGN_OR_RETURN(const std::vector<double> times_ns,
                     PredictCellsNs(model.parameters.fabric, model.corrections, held_cells));
    for (size_t i = 0; i < held_cells.size(); ++i) {
      predictions.push_back({folds[f].held[i], times_ns[i]});
    }
  }
  return predictions;
}

}  // namespace meridian
