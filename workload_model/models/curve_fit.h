// SPDX-License-Identifier: Apache-2.0
// Models fitted to values at several places, and the choice between them.
//
// Values span decades and single runs are wild, so that what counts is log(predicted / measured),
// with Huber's loss. The normal form has terms with a reason behind them, none of them negative:
//
//   1 + lg n + u^0.5 + u + u^1.5      u = 2^size / machines, what one has to do; the logarithm is
//                                     that of trees of messages, u^1.5 is work that leaves the cache
//
// Forms are a ladder from CONSTANT to all five terms. Each number of machines, and each size, is left
// out in turn; the simplest form counts that is not worse than the best by more than one standard
// error of their difference. Beyond what was fitted nothing grows faster than u. Where `linear_size`
// is set, u is size / machines.
#ifndef WORKLOAD_MODEL_MODELS_CURVE_FIT_H_
#define WORKLOAD_MODEL_MODELS_CURVE_FIT_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

struct MeasuredPoint {
  WorkloadCell cell;
  double value = 0;
};

using CellSet = std::set<WorkloadCell>;

// Returns the cells that are left out of a fit in turn: those of each number of machines, and of each
// size, neighbours together where there are very many; and, of each, the largest together, up to so
// many where two others remain. Empty where all have one number and one size.
std::vector<CellSet> CellsToLeaveOut(const CellSet& cells, size_t most_together);

// Returns the median of the values, of which there is at least one.
Model FitConstant(absl::Span<const MeasuredPoint> points);

// Returns the normal form of these terms: log least squares with Huber's loss, no coefficient
// negative. There is at least one point; terms that are the same everywhere are left out.
Model FitNormal(absl::Span<const MeasuredPoint> points, absl::Span<const std::string> terms,
                bool linear_size);

// Returns how often something happens: 1, size, sqrt(machines) and their product, fitted likewise;
// CONSTANT where it is the same everywhere.
Model FitCount(absl::Span<const MeasuredPoint> points, bool linear_size);

// Returns a model of that type: CONSTANT, EXPONENTIAL, BILINEAR, POLYNOMIAL (of that order, up to 4)
// or NORMAL, with all terms. InvalidArgument when there are too few points, or the points do not
// tell its coefficients apart.
absl::StatusOr<Model> FitType(absl::Span<const MeasuredPoint> points, const std::string& type,
                              int order, bool linear_size);

// Returns how often a loop is run: a number, or one number plus another times n, sqrt n, lg n or s, that
// is what every cell has:
// exactly, or else, of lg n, to the nearest integer. Whole numbers come first. Nullopt when there is
// none.
std::optional<Model> FitTrips(absl::Span<const MeasuredPoint> points);

struct ChosenModel {
  Model model;
  // Mean |log(predicted / measured)|, each at most 1, of what was left out; nullopt where nothing
  // can be.
  std::optional<double> left_out;
};

// Returns the form that the ladder leads to.
ChosenModel ChooseModel(absl::Span<const MeasuredPoint> points, bool linear_size);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_CURVE_FIT_H_
