#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "workload_model/calls/control_flow.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/measurements/rank_classes.h"
#include "workload_model/models/curve_fit.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A deviation of log(total) is at least this.
constexpr double kLeastDeviation = 0.02;
// Powers of two of larger sizes are no numbers of anything.
constexpr double kMaxLogSize = 60;
// A transition in fewer cells than this is constant where there are more.
constexpr size_t kLeastCells = 8;
// Bytes that differ by no more than this are what a header or an average adds.
constexpr double kNegligibleBytes = 16;

using CellValues = std::map<WorkloadCell, CellValue>;

// The values of those cells that have one.
std::vector<MeasuredPoint> PointsOf(const CellValues& values, const CellSet& cells,
                                    double CellValue::*value) {
  std::vector<MeasuredPoint> points;
  for (const auto& [cell, measured] : values) {
    if (cells.count(cell) > 0) points.push_back({cell, measured.*value});
  }
  return points;
}

// How often: also in those cells in which it did not happen.
std::vector<MeasuredPoint> CountPoints(const CellValues& values, const CellSet& cells) {
  std::vector<MeasuredPoint> points;
  for (const WorkloadCell& cell : cells) {
    const auto it = values.find(cell);
    points.push_back({cell, it == values.end() ? 0 : it->second.count});
  }
  return points;
}

// Adds |predicted / measured - 1|; measured zeros are left out.
void AddError(double predicted, double measured, std::vector<double>* errors) {
  if (measured > 0) errors->push_back(std::abs(predicted / measured - 1));
}

// Returns the drift of a transition: the median of those cells, where nearly all agree on its direction
// and it is no small one.
std::optional<double> CommonDrift(const CellValues& values, const CellSet& cells) {
  constexpr size_t kLeast = 3;
  constexpr double kAgreeing = 0.8, kSmall = 0.1;
  std::vector<double> drifts;
  for (const MeasuredPoint& point : PointsOf(values, cells, &CellValue::drift)) {
    drifts.push_back(point.value);
  }
  if (drifts.size() < kLeast) return std::nullopt;
  const double drift = std::clamp(Median(drifts), -kMaxDrift, kMaxDrift);
  const auto agreeing =
      std::count_if(drifts.begin(), drifts.end(), [&](double other) { return other * drift > 0; });
  if (std::abs(drift) < kSmall ||
      static_cast<double>(agreeing) < kAgreeing * static_cast<double>(drifts.size())) {
    return std::nullopt;
  }
  return drift;
}

// Writes down where the cells lie, of which there is at least one.
FittedKind RangeOf(const CellSet& cells, bool linear_size) {
  FittedKind range;
  const auto [few, many] =
      std::minmax_element(cells.begin(), cells.end(),
                          [](const auto& a, const auto& b) { return a.machines < b.machines; });
  const auto [small, large] = std::minmax_element(
      cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  range.set_least_nodes(few->machines);
  range.set_most_nodes(many->machines);
  range.set_least_size(small->size);
  range.set_most_size(large->size);
  range.set_linear_size(linear_size);
  return range;
}

// The form of a model that was chosen, fitted to other cells; nullopt where these do not bear it.
std::optional<Model> Refit(const Model& form, absl::Span<const MeasuredPoint> points, int order,
                           bool linear_size) {
  if (form.type() == kNormal) {
    return FitNormal(points, std::vector<std::string>(form.terms().begin(), form.terms().end()),
                     linear_size);
  }
  // That of the chosen polynomial, which has (order + 1) (order + 2) / 2 terms.
  if (form.type() == kPolynomial) {
    order = static_cast<int>(std::lround((std::sqrt(8.0 * form.terms_size() + 1) - 3) / 2));
  }
  absl::StatusOr<Model> model = FitType(points, form.type(), order, linear_size);
  if (!model.ok()) return std::nullopt;
  return *std::move(model);
}

double PredictTotal(const std::vector<CallModel>& models, const WorkloadCell& cell) {
  double total = 0;
  for (const CallModel& call : models) total += PredictCall(call, cell).Sum();
  return total;
}

double MeasuredTotal(const Measurements& measurements, const WorkloadCell& cell) {
  double total = 0;
  for (const auto& [transition, values] : measurements.times) {
    const auto it = values.find(cell);
    if (it != values.end()) total += it->second.Sum();
  }
  return total;
}

// Names the transition that drifts most.
void AddDriftNote(const std::vector<CallModel>& models, WorkloadModel* model) {
  const auto most = std::max_element(
      models.begin(), models.end(),
      [](const auto& a, const auto& b) { return std::abs(a.drift()) < std::abs(b.drift()); });
  if (most == models.end() || !most->has_drift()) return;
  const auto count = std::count_if(models.begin(), models.end(),
                                   [](const CallModel& call) { return call.has_drift(); });
  model->add_notes(absl::StrFormat("%s within a run, most from callsite %d to %d: by %+.0f %%",
                                   count == 1
                                       ? "times of 1 transition drift"
                                       : absl::StrCat("times of ", count, " transitions drift"),
                                   most->source(), most->destination(), 100 * most->drift()));
}

// How far totals are off in all cells: fitted ones, and those left out that lie between others, or
// beyond.
struct TotalErrors {
  std::vector<double> in_sample, between, beyond;
  // Whether how far larger runs are off is assumed for some kind.
  bool is_assumed = false;
};

// Fits the times of one kind: one number of threads and ranks per machine, one class of ranks.
class KindFitter {
 public:
  KindFitter(const Measurements& measurements, const std::string& models, int order, CellKind kind)
      : measurements_(measurements), models_(models), order_(order), kind_(std::move(kind)) {
    for (const WorkloadCell& cell : measurements.cells) {
      if (cell.kind == kind_) cells_.insert(cell);
    }
  }

  absl::Status AddTo(WorkloadModel* model, TotalErrors* errors) {
    FittedKind& fitted = *model->add_kinds();
    fitted = RangeOf(cells_, false);
    fitted.set_linear_size(fitted.most_size() > kMaxLogSize);
    SetKind(kind_, &fitted);
    std::vector<double> near_errors, far_rates;
    if (!measurements_.times.empty()) {
      ASSIGN_OR_RETURN(const std::vector<CallModel> models, Fit(fitted.most_size()));
      fitted.set_linear_size(linear_size_);
      for (const WorkloadCell& cell : cells_) {
        AddError(PredictTotal(models, cell), MeasuredTotal(measurements_, cell),
                 &errors->in_sample);
      }
      LeaveOut(models, errors, &near_errors, &far_rates);
      for (const std::string& reason : lower_orders_) model->add_notes(reason);
      for (const CallModel& call : models) *model->add_models() = call;
      AddDriftNote(models, model);
    }
    const auto deviation = [](const std::vector<double>& of) {
      if (of.empty()) return kAssumedDeviation;
      return std::max(kLeastDeviation, kDeviationsPerMedianDistance * Median(of));
    };
    fitted.set_log_deviation(deviation(near_errors));
    fitted.set_log_deviation_beyond(deviation(far_rates));
    errors->is_assumed |= far_rates.empty();
    return absl::OkStatus();
  }

 private:
  // A machine's share is that of a power of two, or of the size itself: what is left out of the fit
  // decides.
  absl::StatusOr<std::vector<CallModel>> Fit(double most_size) {
    std::vector<CallModel> best;
    double least_error = std::numeric_limits<double>::max();
    bool best_is_linear = false;
    for (const bool linear : {false, true}) {
      if (!linear && most_size > kMaxLogSize) continue;
      linear_size_ = linear;
      double error = 0;
      ASSIGN_OR_RETURN(std::vector<CallModel> models, FitAll(&error));
      if (error >= least_error) continue;
      least_error = error;
      best = std::move(models);
      best_is_linear = linear;
    }
    linear_size_ = best_is_linear;
    return best;
  }

  // Fits all transitions; `error` becomes the mean error of what is left out, weighted by time.
  absl::StatusOr<std::vector<CallModel>> FitAll(double* error) const {
    std::vector<CallModel> models;
    double weighted = 0, weight = 0;
    for (const auto& [transition, values] : measurements_.times) {
      if (PointsOf(values, cells_, &CellValue::steady).empty()) continue;
      ASSIGN_OR_RETURN(const CallModel call, FitCall(transition, values));
      models.push_back(call);
      if (!call.has_left_out_error()) continue;
      double time = 0;
      for (const auto& [cell, value] : values) time += cells_.count(cell) > 0 ? value.Sum() : 0;
      weighted += time * call.left_out_error();
      weight += time;
    }
    *error = weight > 0 ? weighted / weight : 0;
    return models;
  }

  absl::StatusOr<CallModel> FitCall(const Transition& transition, const CellValues& values) const {
    const std::vector<MeasuredPoint> steady = PointsOf(values, cells_, &CellValue::steady);
    const std::vector<MeasuredPoint> first = PointsOf(values, cells_, &CellValue::first);
    static const auto& of_first = *new std::vector<std::string>{"1", "u"};
    CallModel call;
    call.set_source(transition.first);
    call.set_destination(transition.second);
    SetKind(kind_, &call);
    call.set_cells(static_cast<int64_t>(steady.size()));
    ASSIGN_OR_RETURN(const ChosenModel chosen, Choose(transition, steady));
    *call.mutable_value() = chosen.model;
    *call.mutable_first() =
        first.size() < 4 ? FitConstant(first) : FitNormal(first, of_first, linear_size_);
    *call.mutable_count() = FitCount(CountPoints(values, cells_), linear_size_);
    const auto computes = measurements_.computes.find(transition);
    if (computes != measurements_.computes.end()) {
      const std::vector<MeasuredPoint> points =
          PointsOf(computes->second, cells_, &CellValue::steady);
      if (points.size() == steady.size()) {
        ASSIGN_OR_RETURN(const ChosenModel compute, Choose(transition, points));
        *call.mutable_compute() = compute.model;
      }
    }
    const CellValues& drifting = call.has_compute() ? computes->second : values;
    if (const auto drift = CommonDrift(drifting, cells_)) call.set_drift(*drift);
    std::vector<double> in_sample;
    for (const auto& [cell, value] : values) {
      if (cells_.count(cell) == 0) continue;
      AddError(PredictCall(call, cell).Sum(), value.Sum(), &in_sample);
    }
    if (!in_sample.empty()) call.set_in_sample_error(Mean(in_sample));
    if (chosen.left_out.has_value()) call.set_left_out_error(*chosen.left_out);
    return call;
  }

  absl::StatusOr<ChosenModel> Choose(const Transition& transition,
                                     const std::vector<MeasuredPoint>& points) const {
    if (models_ != "auto") {
      absl::StatusOr<Model> model = FitType(points, models_, order_, linear_size_);
      for (int order = order_ - 1; order > 0 && !model.ok() && models_ == kPolynomial; --order) {
        const std::string reason(model.status().message());
        model = FitType(points, models_, order, linear_size_);
        if (!model.ok()) continue;
        lower_orders_.insert(
            absl::StrCat("polynomials of order ", order, ", not ", order + 1, ": ", reason));
      }
      if (model.ok()) return ChosenModel{*std::move(model), std::nullopt};
      return InvalidArgument("from callsite ", transition.first, " to ", transition.second, ": ",
                             model.status().message());
    }
    if (points.size() < kLeastCells && cells_.size() >= kLeastCells) {
      return ChosenModel{FitConstant(points), std::nullopt};
    }
    return ChooseModel(points, linear_size_);
  }

  // Fits the same forms without each number of machines, each size, and the two and three largest of
  // each. `near_errors` are |log(measured / predicted)| of the totals left out between others,
  // `far_rates` those beyond for each doubling.
  void LeaveOut(const std::vector<CallModel>& models, TotalErrors* errors,
                std::vector<double>* near_errors, std::vector<double>* far_rates) const {
    for (const CellSet& left : CellsToLeaveOut(cells_, /*most_together=*/3)) {
      CellSet fitted;
      std::set_difference(cells_.begin(), cells_.end(), left.begin(), left.end(),
                          std::inserter(fitted, fitted.end()));
      if (fitted.size() < 2) continue;
      const std::optional<std::vector<CallModel>> refitted = RefitAll(models, fitted);
      if (!refitted.has_value()) continue;
      const FittedKind range = RangeOf(fitted, linear_size_);
      for (const WorkloadCell& cell : left) {
        const double predicted = PredictTotal(*refitted, cell);
        const double measured = MeasuredTotal(measurements_, cell);
        if (!(predicted > 0) || !(measured > 0)) continue;
        const double log_error = std::abs(std::log(measured / predicted));
        if (const double outside = DoublingsOutside(cell, range); outside > 0) {
          AddError(predicted, measured, &errors->beyond);
          far_rates->push_back(log_error / outside);
        } else {
          AddError(predicted, measured, &errors->between);
          near_errors->push_back(log_error);
        }
      }
    }
  }

  // The same forms, fitted to fewer cells, without transitions that do not occur in these. Nullopt
  // where a form needs more of them.
  std::optional<std::vector<CallModel>> RefitAll(const std::vector<CallModel>& models,
                                                 const CellSet& fitted) const {
    std::vector<CallModel> result;
    for (const CallModel& call : models) {
      const CellValues& values = measurements_.times.at({call.source(), call.destination()});
      const std::vector<MeasuredPoint> points = PointsOf(values, fitted, &CellValue::steady);
      if (points.empty()) continue;
      const std::optional<Model> value = Refit(call.value(), points, order_, linear_size_);
      const std::optional<Model> first =
          Refit(call.first(), PointsOf(values, fitted, &CellValue::first), order_, linear_size_);
      if (!value.has_value() || !first.has_value()) return std::nullopt;
      CallModel& copy = result.emplace_back(call);
      *copy.mutable_value() = *value;
      *copy.mutable_first() = *first;
      *copy.mutable_count() = FitCount(CountPoints(values, fitted), linear_size_);
    }
    return result;
  }

  const Measurements& measurements_;
  const std::string& models_;
  const int order_;
  const CellKind kind_;
  // Whether the size itself is what machines share, not its power of two.
  bool linear_size_ = false;
  // Why polynomials have a lower order than was asked for.
  mutable std::set<std::string> lower_orders_;
  CellSet cells_;
};

// Returns the form that is the bytes of every cell, as programs compute them: by powers of the size, or
// of the ranks. Nullopt where there is none, or too few cells to tell.
std::optional<Model> FindExactMessages(const std::vector<MeasuredPoint>& points) {
  constexpr double kSame = 1e-6;
  constexpr int kOrder = 2;
  for (const absl::string_view type : {kExponential, kPolynomial}) {
    const absl::StatusOr<Model> model =
        FitType(points, std::string(type), kOrder, /*linear_size=*/false);
    if (!model.ok() || points.size() < static_cast<size_t>(model->coefficients_size()) + 2)
      continue;
    const bool is_exact = std::all_of(points.begin(), points.end(), [&](const auto& point) {
      return std::abs(EvaluateModel(*model, point.cell) - point.value) <= kSame * point.value;
    });
    if (is_exact) return *model;
  }
  return std::nullopt;
}

// Messages vary when some form is better than a constant on what is left out, by more than the
// standard error of that; what differs by a few bytes does not.
ChosenModel ChooseMessages(const std::vector<MeasuredPoint>& points, bool linear_size) {
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  if (most->value - least->value <= kNegligibleBytes) return {FitConstant(points), std::nullopt};
  if (const auto exact = FindExactMessages(points); exact.has_value())
    return {*exact, std::nullopt};
  return ChooseModel(points, linear_size);
}

// Sizes are linear as they are for the times of the kind.
void FitMessages(const Measurements& measurements, WorkloadModel* model) {
  std::map<CellKind, bool> linear_sizes;
  for (const FittedKind& kind : model->kinds()) linear_sizes[KindOf(kind)] = kind.linear_size();
  for (const auto& [callsite, values] : measurements.messages) {
    std::map<CellKind, std::vector<MeasuredPoint>> by_kind;
    for (const auto& [cell, value] : values) {
      // The mean of all: messages have no first one of their own.
      by_kind[cell.kind].push_back({cell, value.Sum() / std::max(1.0, value.count)});
    }
    for (const auto& [kind, points] : by_kind) {
      CallModel& call = *model->add_messages();
      call.set_source(callsite);
      SetKind(kind, &call);
      call.set_cells(static_cast<int64_t>(points.size()));
      const ChosenModel chosen = ChooseMessages(points, linear_sizes[kind]);
      *call.mutable_value() = chosen.model;
      std::vector<double> in_sample;
      for (const MeasuredPoint& point : points) {
        AddError(EvaluateModel(chosen.model, point.cell), point.value, &in_sample);
      }
      if (!in_sample.empty()) call.set_in_sample_error(Mean(in_sample));
      if (chosen.left_out.has_value()) call.set_left_out_error(*chosen.left_out);
    }
  }
}

// Returns whether all ranks of all runs were traced; notes it if not.
bool CheckTracedRanks(const std::vector<RunMeasurements>& runs, WorkloadModel* model) {
  std::map<std::pair<double, std::string>, std::set<int64_t>> traced;
  for (const RunMeasurements& run : runs) {
    if (!run.calls.empty()) traced[{run.cell.Ranks(), run.run}].insert(run.rank);
  }
  for (const auto& [run, ranks] : traced) {
    if (static_cast<double>(ranks.size()) >= run.first) continue;
    model->add_notes(absl::StrCat(Printable(run.second), ": ", ranks.size(), " of ", run.first,
                                  " ranks were traced; the others are taken to do the same"));
    return false;
  }
  return true;
}

// Adds how the ranks of one class go from call to call, and what they do there.
absl::Status AddFlow(const std::string& rank_class, const std::vector<const RunMeasurements*>& runs,
                     bool all_traced, WorkloadModel* model) {
  // Ranks of one run do the same, and count once.
  CallSequences sequences;
  std::set<std::pair<WorkloadCell, std::string>> seen;
  std::set<int64_t> starts;
  for (const RunMeasurements* run : runs) {
    starts.insert(run->calls.front().source);
    if (!seen.insert({run->cell, run->run}).second) continue;
    std::vector<int64_t>& sequence = sequences[run->cell.InRanks()].emplace_back();
    for (const TracedCall& call : run->calls) sequence.push_back(call.destination);
  }
  ControlFlow& flow = *model->add_flows();
  ASSIGN_OR_RETURN(flow, LearnControlFlow(sequences));
  flow.set_rank_class(rank_class);
  if (starts.size() == 1) {
    flow.set_start(*starts.begin());
  } else {
    model->add_notes(absl::StrCat("runs of ranks '", rank_class, "' come to their first call from ",
                                  "different callsites (", absl::StrJoin(starts, ", "),
                                  "): generated ones have nothing before it"));
  }
  for (CallsiteModel& callsite : LearnCallsites(runs, all_traced)) {
    *flow.add_callsites() = std::move(callsite);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const std::string& models, int order) {
  if (order < 1 || order > 4) {
    return InvalidArgument("--order=", order, " is none of 1, 2, 3, 4");
  }
  if (measurements.times.empty() && measurements.messages.empty()) {
    return InvalidArgument("there is nothing to fit: no transition was measured");
  }
  WorkloadModel model;
  model.set_format(std::string(kWorkloadModelFormat));
  model.set_cells(static_cast<int64_t>(measurements.cells.size()));
  for (const std::string& note : measurements.notes) model.add_notes(note);
  std::set<CellKind> kinds;
  for (const WorkloadCell& cell : measurements.cells) kinds.insert(cell.kind);
  TotalErrors errors;
  for (const CellKind& kind : kinds) {
    RETURN_IF_ERROR(KindFitter(measurements, models, order, kind).AddTo(&model, &errors));
  }
  FitMessages(measurements, &model);
  const auto& [in_sample, between, beyond, is_assumed] = errors;
  if (!in_sample.empty()) model.mutable_errors()->set_in_sample(Mean(in_sample));
  if (!between.empty()) model.mutable_errors()->set_interpolation(Mean(between));
  if (!beyond.empty()) model.mutable_errors()->set_extrapolation(Mean(beyond));
  if (is_assumed) {
    model.add_notes(
        "nothing can be left out to see how far larger runs are off: 20 % for each doubling is "
        "assumed");
  }
  return model;
}

absl::StatusOr<WorkloadModel> FitRuns(std::vector<RunMeasurements> runs, const std::string& models,
                                      int order) {
  std::vector<std::string> notes;
  const std::optional<std::string> rule = ClassifyRanks(&runs, &notes);
  ASSIGN_OR_RETURN(WorkloadModel model, FitWorkload(Aggregate(runs), models, order));
  for (const std::string& note : notes) model.add_notes(note);
  if (!rule.has_value()) return model;
  model.set_rank_classes(*rule);
  std::map<std::string, std::vector<const RunMeasurements*>> classes;
  for (const RunMeasurements& run : runs) {
    if (!run.calls.empty()) classes[run.cell.kind.rank_class].push_back(&run);
  }
  const bool all_traced = CheckTracedRanks(runs, &model);
  for (const auto& [name, of_class] : classes) {
    RETURN_IF_ERROR(AddFlow(name, of_class, all_traced, &model));
  }
  return model;
}

}  // namespace meridian
