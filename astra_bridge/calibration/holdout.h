// SPDX-License-Identifier: Apache-2.0
// What a fit leaves out in turn, to see how well it predicts what it has not seen.
#ifndef ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_
#define ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

enum class Holdout {
  // Each size but the smallest and the largest in turn, of all kinds and groups. Every fold costs
  // as much as the whole fit: of more than kMaxSizes sizes, kMaxSizeFolds ranges of neighbouring
  // ones are held out, of about as many sizes each.
  kSize,
  // Leaves out each kind in turn; the kind left out then has no corrections.
  kKind,
  // Each number of ranks in turn: of the run where there are several, else of the group, which
  // point-to-point transfers have none of.
  kGroup,
};
inline constexpr size_t kMaxSizes = 48;
inline constexpr size_t kMaxSizeFolds = 24;

// Return "size", "op" and "group", and the other way round.
absl::string_view HoldoutName(Holdout holdout);
std::optional<Holdout> HoldoutFromName(absl::string_view name);

// What is held out at a time: positions of cells, ascending.
using Folds = std::vector<std::vector<size_t>>;

// Returns no folds where there are no cells to hold out with others left.
Folds MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout);

// Told how many models of how many are fitted; may be null.
using FitProgress = std::function<void(size_t done, size_t models)>;

// Fits a model to what each fold leaves and returns how long what the folds hold takes by it, in
// nanoseconds by the position of the cell.
absl::StatusOr<std::map<size_t, double>> PredictHeldOut(const Fabric& start,
                                                        absl::Span<const TransferCell> cells,
                                                        absl::Span<const std::vector<size_t>> folds,
                                                        const FitProgress& progress);

// Returns what sizes left out were off by, given how long models without them say that they take
// (PredictHeldOut of Holdout::kSize); and what numbers of ranks were off by that are predicted from
// smaller ones.
absl::StatusOr<std::vector<HeldOutError>> FindHeldOutErrors(
    const Fabric& start, absl::Span<const TransferCell> cells,
    const std::map<size_t, double>& by_size_ns);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_
