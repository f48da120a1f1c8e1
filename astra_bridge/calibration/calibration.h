// SPDX-License-Identifier: Apache-2.0
// From the transfers of runs to a network that gives their times, with what it is worth:
//
//   transfers -> cells -> parameters -> corrections      what is written
//                  \-> the same without some cells       what it would have predicted of them
//
// A correction is as simple as its data: for each kind and size the ratio of measured to engine
// time, joined by straight lines (corrections.h). What is held out is always a whole size, kind or
// group: repeats of a cell, and neighbours of it in other kinds, know too much about each other.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// What predicts cells: the engine's parameters, and corrections of its times.
struct CalibratedModel {
  ParameterFit parameters;
  Corrections corrections;
};

// Fits to at least one cell.
absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells);

// Returns one point for each kind, size and EffectiveRanks: the geometric mean over its cells,
// wherever their groups lie, of measured over engine time; messages one way are a kind of their
// own. Sizes nearer to each other than kSameSizeFactor share a point. engine_ns is by cell.
Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns);

// Adds what messages one way, or both ways, take where only the others were measured: a port that
// sends and receives at once is taken to do each slower, as those of hosts do whose processors move
// the data. Where both were measured, but not of all sizes, the assumption is scaled to what was.
absl::Status AssumeUnmeasuredMessages(const Fabric& fabric, Corrections* corrections);

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
  // Every second step of jobs, then the others: what is predicted is the median of the steps left
  // out. Steps are those that the program marks.
  kStep,
};
inline constexpr size_t kMaxSizes = 48;
inline constexpr size_t kMaxSizeFolds = 24;

// Return "size", "op", "group" and "step", and the other way round.
absl::string_view HoldoutName(Holdout holdout);
std::optional<Holdout> HoldoutFromName(absl::string_view name);

// Returns what is held out at a time: positions of cells, ascending. Nothing where there are no
// cells to hold out with others left, and for steps, which cells do not tell.
std::vector<std::vector<size_t>> MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout);

// Told how many models of how many are fitted; may be null.
using FitProgress = std::function<void(size_t done, size_t models)>;

// Fits a model to what each fold leaves and returns how long what the folds hold takes by it, in
// nanoseconds by the position of the cell.
absl::StatusOr<std::map<size_t, double>> PredictHeldOut(const Fabric& start,
                                                        absl::Span<const TransferCell> cells,
                                                        absl::Span<const std::vector<size_t>> folds,
                                                        const FitProgress& progress);

// How well a shape of the network predicts cells that it was not fitted to.
struct ShapeScore {
  // The shape, and the algorithms that go best with it.
  Fabric start;
  std::vector<HeldOutError> errors;

  // Returns the mean of |log(predicted / measured)|; 0 where nothing was held out.
  double MeanError() const;
};

// Returns the shapes that a network of so many ranks may have, the best first: each pair of ranks
// by itself (FullyConnected), behind a switch, in a ring. Sizes, numbers of ranks and placements
// are held out in turn. Hosts stand behind switches that do not hold messages up, so that each pair
// is taken to be by itself unless another shape is measurably better; a ring is looked at only
// where groups of near and of far ranks were measured, for then neighbours must be cheaper than
// strangers. Each kind has the algorithm whose times change with the number and places of ranks as
// measured.
absl::StatusOr<std::vector<ShapeScore>> CompareShapes(int32_t ranks,
                                                      absl::Span<const TransferCell> cells);

struct CalibrationOptions {
  // Shape of the network, and the values of what the transfers do not tell. Default: the shape that
  // ChooseShape finds.
  std::optional<Fabric> topology;
  Holdout holdout = Holdout::kSize;
  // Fit only to transfers of these bytes, and hold out all others; empty: fit to all.
  std::vector<int64_t> sizes;
  FitProgress progress;
};

struct Calibration {
  // The network is as large as the largest run.
  Fabric fabric;
  Corrections corrections;
  CalibrationReport report;
};

// InvalidArgument when there is nothing to calibrate with: no transfers, a single size, runs on
// different devices, groups within and across nodes without a network of several dimensions, or
// --sizes that do not occur.
absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options = {});

// Returns how far repeats lie from the medians of their cells, of small transfers and of others, of
// sizes that have any.
std::vector<TransferSpread> MeasureSpreads(absl::Span<const TransferCell> cells);

// Returns whether waiting is left in transfers. The slope, and its error, are 0 where cells have no
// more transfers than it takes to draw a line, or their members all came alike.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells);

// Returns whether the clocks agree, as far as shortest durations tell. At least one run has a
// transfer.
ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs);

// Returns notes on a report that is complete but for these. `topology` is the network that was
// given, `start` the one that the fit started from.
std::vector<std::string> CalibrationNotes(absl::Span<const CalibrationRun> runs,
                                          const std::optional<Fabric>& topology,
                                          const Fabric& start,
                                          absl::Span<const FittedParameter> parameters,
                                          const CalibrationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_H_
