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
// error of their difference. Beyond what was fitted nothing grows faster than u.
#ifndef WORKLOAD_MODEL_MODELS_CURVE_FIT_H_
#define WORKLOAD_MODEL_MODELS_CURVE_FIT_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

struct FitOptions {
  // The size itself is what machines share, not its power of two.
  bool linear_size = false;
};

// Returns the median of the values, of which there is at least one.
Model FitConstant(absl::Span<const MeasuredPoint> points);

// Returns the normal form of these terms: log least squares with Huber's loss, no coefficient
// negative. There is at least one point; terms that are the same everywhere are left out.
Model FitNormal(absl::Span<const MeasuredPoint> points, absl::Span<const std::string> terms,
                const FitOptions& options);

// Returns how often something happens: 1, size, sqrt(machines) and their product, by relative least
// squares; CONSTANT where it is the same everywhere.
Model FitCount(absl::Span<const MeasuredPoint> points, const FitOptions& options);

// Returns a model of that type: CONSTANT, EXPONENTIAL, BILINEAR, POLYNOMIAL (of that order, up to 4)
// or NORMAL, with all terms. InvalidArgument when there are too few points, or the points do not
// tell its coefficients apart.
absl::StatusOr<Model> FitType(absl::Span<const MeasuredPoint> points, const std::string& type,
                              int order, const FitOptions& options);

// How often a loop is run.
struct TripCount {
  Model model;
  // The term of another rule that says the same about the measured cells; empty when there is none.
  std::string also;
};

// Returns a number, or one number plus another times n, sqrt n, lg n or s, that is what every cell has:
// exactly, or else, of lg n, to the nearest integer. Whole numbers come first. Nullopt when there is
// none.
std::optional<TripCount> FitTrips(absl::Span<const MeasuredPoint> points);

// How often, of so many times, something happened.
struct MeasuredShare {
  WorkloadCell cell;
  double taken = 0;
  double all = 0;
};

// Returns the share: CONSTANT, or LOGISTIC where that says so much more about the cells that it is
// worth its coefficients.
Model FitShare(absl::Span<const MeasuredShare> points);

struct ChosenModel {
  Model model;
  // Mean |log(predicted / measured)|, each at most 1, of what was left out; nullopt where nothing
  // can be.
  std::optional<double> left_out;
};

// Returns the form that the ladder leads to.
ChosenModel ChooseModel(absl::Span<const MeasuredPoint> points, const FitOptions& options);

// Returns c threads^a ranks_per_machine^b for the asked kind, through, or as near as possible to, the
// values of others; powers of numbers that are the same everywhere are 0.
double PowerOfKinds(absl::Span<const std::pair<CellKind, double>> values, const CellKind& asked);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MODELS_CURVE_FIT_H_
