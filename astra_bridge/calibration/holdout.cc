#include "astra_bridge/calibration/holdout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Names in the order of Holdout.
constexpr absl::string_view kHoldoutNames[] = {"size", "op", "group"};

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

// Returns how many times the number of ranks doubles from the nearest of its kind; nullopt where
// there is none.
std::optional<double> DoublingsFrom(absl::Span<const TransferCell> seen, const TransferCell& cell) {
  std::optional<double> nearest;
  for (const TransferCell& other : seen) {
    if (other.kind != cell.kind) continue;
    const double doublings =
        std::abs(std::log2(static_cast<double>(MovingRanksOf(other)) / MovingRanksOf(cell)));
    nearest = std::min(nearest.value_or(doublings), doublings);
  }
  return nearest;
}

// Returns how long the held cells take by a model that is fitted to others, in nanoseconds.
absl::StatusOr<std::vector<double>> PredictFrom(const Fabric& start,
                                                absl::Span<const TransferCell> seen,
                                                absl::Span<const TransferCell> held) {
  ModelOptions options;
  for (const TransferCell& cell : held) {
    options.most_ranks = std::max(options.most_ranks, MovingRanksOf(cell));
  }
  ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start, seen, options));
  return PredictCellsNs(model.physics.fabric, model.corrections, held);
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
  if (by_key.size() < 2) return folds;
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
    ASSIGN_OR_RETURN(const std::vector<double> held_ns, PredictFrom(start, rest, held));
    for (size_t i = 0; i < held_ns.size(); ++i) predicted_ns[folds[f][i]] = held_ns[i];
  }
  return predicted_ns;
}

absl::StatusOr<std::vector<HeldOutError>> FindHeldOutErrors(
    const Fabric& start, absl::Span<const TransferCell> cells,
    const std::map<size_t, double>& by_size_ns) {
  std::vector<HeldOutError> errors;
  for (const auto& [i, ns] : by_size_ns) {
    errors.push_back({cells[i].bytes, std::log(ns / cells[i].median_ns), 0});
  }
  // Each number of ranks by those that are smaller.
  Folds by_ranks = MakeFolds(cells, Holdout::kGroup);
  std::vector<TransferCell> smaller;
  for (const std::vector<size_t>& fold : by_ranks) {
    std::vector<TransferCell> held;
    for (const size_t i : fold) held.push_back(cells[i]);
    if (!smaller.empty()) {
      ASSIGN_OR_RETURN(const std::vector<double> held_ns, PredictFrom(start, smaller, held));
      for (size_t i = 0; i < held.size(); ++i) {
        errors.push_back({held[i].bytes, std::log(held_ns[i] / held[i].median_ns),
                          DoublingsFrom(smaller, held[i])});
      }
    }
    smaller.insert(smaller.end(), held.begin(), held.end());
  }
  return errors;
}

}  // namespace meridian
