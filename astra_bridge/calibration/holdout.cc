#include "astra_bridge/calibration/holdout.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Names in the order of Holdout.
constexpr absl::string_view kHoldoutNames[] = {"size", "op", "group", "step"};

// Returns the folds of all sizes but the smallest and the largest, from the cells of each size.
Folds MakeSizeFolds(const std::map<int64_t, std::vector<size_t>>& by_size) {
  if (by_size.size() < 3) return {};
  const size_t between = by_size.size() - 2;
  Folds folds(by_size.size() > kMaxSizes ? kMaxSizeFolds : between);
  size_t sizes = 0;
  for (auto size = std::next(by_size.begin()); size != std::prev(by_size.end()); ++size) {
    std::vector<size_t>& fold = folds[(++sizes * folds.size() - 1) / between];
    fold.insert(fold.end(), size->second.begin(), size->second.end());
  }
  for (std::vector<size_t>& fold : folds) std::sort(fold.begin(), fold.end());
  return folds;
}

}  // namespace

absl::string_view HoldoutName(Holdout holdout) {
  return kHoldoutNames[static_cast<size_t>(holdout)];
}

std::optional<Holdout> HoldoutFromName(absl::string_view name) {
  const auto found = std::find(std::begin(kHoldoutNames), std::end(kHoldoutNames), name);
  if (found == std::end(kHoldoutNames)) return std::nullopt;
  return static_cast<Holdout>(found - std::begin(kHoldoutNames));
}

Folds MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout) {
  const bool by_run = std::any_of(cells.begin(), cells.end(), [&](const TransferCell& cell) {
    return cell.ranks != cells[0].ranks;
  });
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
  if (by_key.size() < 2 || holdout == Holdout::kStep) return folds;
  for (auto& [key, held] : by_key) folds.push_back(std::move(held));
  return folds;
}

absl::StatusOr<std::map<size_t, double>> PredictHeldOut(const Fabric& start,
                                                        absl::Span<const TransferCell> cells,
                                                        absl::Span<const std::vector<size_t>> folds,
                                                        const FitProgress& progress) {
  std::map<size_t, double> predicted_ns;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (progress) progress(f, folds.size());
    std::vector<TransferCell> rest, held;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_held = std::binary_search(folds[f].begin(), folds[f].end(), i);
      (is_held ? held : rest).push_back(cells[i]);
    }
    ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start, rest));
    ASSIGN_OR_RETURN(const std::vector<double> held_ns,
                     PredictCellsNs(model.parameters.fabric, model.corrections, held));
    for (size_t i = 0; i < held_ns.size(); ++i) predicted_ns[folds[f][i]] = held_ns[i];
  }
  return predicted_ns;
}

}  // namespace meridian
