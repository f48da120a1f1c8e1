// Which cells are predicted from which others. What is held out is always a whole size, kind or
// group: repeats of a cell, and neighbours of it in other kinds, know too much about each other.
#ifndef ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_
#define ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// A fold costs as much as the whole fit.
inline constexpr size_t kMaxSizeFolds = 24;

enum class Holdout {
  // Each size but the smallest and the largest in turn, of all kinds and groups; of more than
  // kMaxSizes sizes, kMaxSizeFolds ranges of neighbouring ones, of about as many sizes each.
  kSize,
  // Each kind in turn. It then has no corrections.
  kKind,
  // Each number of ranks in turn: of the run where there are several, else of the group, which
  // point-to-point transfers have none of.
  kGroup,
};

// "size", "op" and "group".
absl::string_view HoldoutName(Holdout holdout);
std::optional<Holdout> HoldoutFromName(absl::string_view name);

struct HoldoutFold {
  // E.g. "size 4096" or "sizes 4096 to 5120".
  std::string name;
  // Positions of cells, ascending.
  std::vector<size_t> held;
};

// No folds where there are none to hold out with others left.
std::vector<HoldoutFold> MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout);

struct HeldOutPrediction {
  // Position of the cell.
  size_t cell = 0;
  double predicted_ns = 0;
};

// Fits a model to what each fold leaves and predicts what it holds. Progress, if not null, is told
// how many folds are done.
absl::StatusOr<std::vector<HeldOutPrediction>> PredictHeldOut(
    const Fabric& start, absl::Span<const TransferCell> cells, absl::Span<const HoldoutFold> folds,
    const std::function<void(size_t)>& progress);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_HOLDOUT_H_
