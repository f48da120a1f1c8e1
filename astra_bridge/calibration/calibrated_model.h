// SPDX-License-Identifier: Apache-2.0
// Measured cells turned into what predicts others: the engine's parameters, and corrections of its
// times. A correction is as simple as its data: for each kind and size the ratio of measured to
// engine time, joined by straight lines (corrections.h).
//
// How good that is shows what is held out: the same is fitted without some cells, and predicts
// them. What is held out is always a whole size, kind or group: repeats of a cell, and neighbours
// of it in other kinds, know too much about each other.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

class CalibrationReport;
class ErrorSummary;

struct CalibratedModel {
  ParameterFit parameters;
  Corrections corrections;
};

// Fits to at least one cell.
absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells);

// Returns one point for each kind and size: the geometric mean over its cells, whatever their
// groups, of measured over engine time. Sizes nearer to each other than kSameSizeFactor share a
// point. engine_ns is by cell.
Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns);

// Adds the points to the report, by kind in the order of CollectiveKind.
void ListCorrections(const Corrections& corrections, CalibrationReport* report);

// Returns how long each cell takes by engine and corrections, in nanoseconds.
absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells);

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

// Returns what is held out at a time: positions of cells, ascending. Nothing where there are no
// cells to hold out with others left.
std::vector<std::vector<size_t>> MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout);

struct HeldOutPrediction {
  // Position of the cell.
  size_t cell = 0;
  double predicted_ns = 0;
};

// Fits a model to what each fold leaves and predicts what it holds. Progress, if not null, is told
// how many folds are done.
absl::StatusOr<std::vector<HeldOutPrediction>> PredictHeldOut(
    const Fabric& start, absl::Span<const TransferCell> cells,
    absl::Span<const std::vector<size_t>> folds, const std::function<void(size_t)>& progress);

struct Prediction {
  int64_t bytes = 0;
  // Measured time in nanoseconds; always positive.
  double measured_ns = 0;
  double predicted_ns = 0;

  double signed_error() const { return predicted_ns / measured_ns - 1; }
};

// Returns how far predictions lie from what was measured, also of 1 MiB and more, where bandwidth
// decides, and of less. All zero, with no parts, when there are none.
ErrorSummary SummariseErrors(absl::Span<const Prediction> predictions);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
