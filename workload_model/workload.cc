#include "workload_model/workload.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "workload_model/curve_fit.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Of a total.
constexpr double kNotableShare = 0.01;
constexpr absl::string_view kFormat = "meridian workload model 1";
// Nine tenths of a normal distribution lie within so many deviations.
constexpr double kDeviations = 1.645;
constexpr double kDeviationsPerDistance = 1.4826;
// What is assumed where nothing can be left out.
constexpr double kAssumedDeviation = 0.2;
constexpr double kLeastDeviation = 0.02;
// Powers of two of larger sizes are no numbers of anything.
constexpr double kMaxLogSize = 60;
// A transition in fewer cells than this is constant where there are more.
constexpr size_t kLeastCells = 8;
// Bytes that differ by no more than this are what a header or an average adds.
constexpr double kNegligibleBytes = 16;
// 30,000 years.
constexpr double kMaxTotalUs = 1e18;

using CellValues = std::map<WorkloadCell, CellValue>;

// A transition's part in cells.
using CellSet = std::set<WorkloadCell>;

std::vector<MeasuredPoint> PointsOf(const CellValues& values, const CellSet& cells,
                                    const std::function<double(const CellValue&)>& value) {
  std::vector<MeasuredPoint> points;
  for (const auto& [cell, measured] : values) {
    if (cells.count(cell) > 0) points.push_back({cell, value(measured)});
  }
  return points;
}

double SteadyOf(const CellValue& value) { return value.steady; }
double FirstOf(const CellValue& value) { return value.first; }

// How often: also in those cells in which it did not happen.
std::vector<MeasuredPoint> CountPoints(const CellValues& values, const CellSet& cells) {
  std::vector<MeasuredPoint> points;
  for (const WorkloadCell& cell : cells) {
    const auto it = values.find(cell);
    points.push_back({cell, it == values.end() ? 0 : it->second.count});
  }
  return points;
}

double PredictSum(const CallModel& call, const WorkloadCell& cell, double* count) {
  CellValue value;
  value.count = EvaluateModel(call.count(), cell);
  value.first = EvaluateModel(call.first(), cell);
  value.steady = EvaluateModel(call.value(), cell);
  if (count != nullptr) *count = value.count;
  return value.Sum();
}

// Returns how far a cell lies beyond the most that was fitted: doublings of nodes, and units of size,
// or its doublings where it is linear.
double DoublingsBeyond(const WorkloadCell& cell, double most_nodes, double most_size,
                       bool linear_size) {
  const double of_nodes = std::max(0.0, std::log2(cell.nodes / most_nodes));
  const double of_size = linear_size && most_size > 0
                             ? std::max(0.0, std::log2(cell.size / most_size))
                             : std::max(0.0, cell.size - most_size);
  return of_nodes + of_size;
}

// The form of a model that was chosen, to be fitted to other cells.
Model Refit(const Model& form, absl::Span<const MeasuredPoint> points, const FitOptions& options) {
  if (form.type() == kNormal) {
    return FitNormal(points, std::vector<std::string>(form.terms().begin(), form.terms().end()),
                     options);
  }
  const int order = form.terms_size() > 0 ? form.terms(form.terms_size() - 1)[2] - '0' : 0;
  const absl::StatusOr<Model> model = FitType(points, form.type(), order, options);
  return model.ok() ? *model : form;
}

// One number of threads.
class Fitter {
 public:
  Fitter(const Measurements& measurements, const WorkloadFitOptions& options, int64_t threads)
      : measurements_(measurements), options_(options), threads_(threads) {
    for (const WorkloadCell& cell : measurements.cells) {
      if (cell.threads == threads) cells_.insert(cell);
    }
  }

  // The time of a size is that of its power of two, or of itself: which, what is left out tells.
  absl::StatusOr<std::vector<CallModel>> Fit(bool* linear_size) {
    double most_size = 0;
    for (const WorkloadCell& cell : cells_) most_size = std::max(most_size, cell.size);
    std::optional<std::vector<CallModel>> best;
    double least_error = std::numeric_limits<double>::max();
    for (const bool linear : {false, true}) {
      if (!linear && most_size > kMaxLogSize) continue;
      fit_.linear_size = linear;
      double error = 0;
      ASSIGN_OR_RETURN(std::vector<CallModel> models, FitAll(&error));
      if (best.has_value() && error >= least_error) continue;
      least_error = error;
      best = std::move(models);
      *linear_size = linear;
    }
    fit_.linear_size = *linear_size;
    return *std::move(best);
  }

  // Returns log(predicted / measured) of the total for cells that were left out of a fit of the same
  // forms, and how far beyond the fitted they lie.
  struct LeftOut {
    double log_error = 0;
    double beyond = 0;
    double error = 0;
  };
  std::vector<LeftOut> LeaveOut(const std::vector<CallModel>& models) const {
    std::vector<LeftOut> result;
    for (const CellSet& left : LeftSets()) {
      CellSet fitted;
      for (const WorkloadCell& cell : cells_) {
        if (left.count(cell) == 0) fitted.insert(cell);
      }
      if (fitted.size() < 2) continue;
      std::vector<CallModel> refitted;
      for (const CallModel& call : models) {
        const CellValues& values = measurements_.times.at({call.source(), call.destination()});
        const std::vector<MeasuredPoint> points = PointsOf(values, fitted, SteadyOf);
        CallModel& copy = refitted.emplace_back(call);
        if (points.empty()) continue;
        *copy.mutable_value() = Refit(call.value(), points, fit_);
        *copy.mutable_first() = Refit(call.first(), PointsOf(values, fitted, FirstOf), fit_);
        *copy.mutable_count() = FitCount(CountPoints(values, fitted), fit_);
      }
      for (const WorkloadCell& cell : left) {
        double predicted = 0;
        for (const CallModel& call : refitted) predicted += PredictSum(call, cell, nullptr);
        const double measured = MeasuredTotal(cell);
        if (!(predicted > 0) || !(measured > 0)) continue;
        result.push_back({std::log(measured / predicted), Beyond(fitted, cell),
                          std::abs(predicted / measured - 1)});
      }
    }
    return result;
  }

  double MeasuredTotal(const WorkloadCell& cell) const {
    double total = 0;
    for (const auto& [transition, values] : measurements_.times) {
      const auto it = values.find(cell);
      if (it != values.end()) total += it->second.Sum();
    }
    return total;
  }

  const CellSet& cells() const { return cells_; }

 private:
  absl::StatusOr<std::vector<CallModel>> FitAll(double* error) {
    std::vector<CallModel> models;
    double weighted = 0, weight = 0;
    for (const auto& [transition, values] : measurements_.times) {
      const std::vector<MeasuredPoint> steady = PointsOf(values, cells_, SteadyOf);
      if (steady.empty()) continue;
      CallModel call;
      call.set_source(transition.first);
      call.set_destination(transition.second);
      call.set_threads(threads_);
      call.set_cells(static_cast<int64_t>(steady.size()));
      ASSIGN_OR_RETURN(const ChosenModel chosen, Choose(transition, steady));
      *call.mutable_value() = chosen.model;
      static const auto& of_first = *new std::vector<std::string>{"1", "u"};
      const std::vector<MeasuredPoint> first = PointsOf(values, cells_, FirstOf);
      *call.mutable_first() = first.size() < 4 ? *FitType(first, std::string(kConstant), 0, fit_)
                                               : FitNormal(first, of_first, fit_);
      *call.mutable_count() = FitCount(CountPoints(values, cells_), fit_);
      std::vector<double> spreads;
      double time = 0, off = 0, sums = 0;
      for (const auto& [cell, value] : values) {
        if (cells_.count(cell) == 0) continue;
        spreads.push_back(value.spread);
        time += value.Sum();
        if (!(value.Sum() > 0)) continue;
        off += std::abs(PredictSum(call, cell, nullptr) / value.Sum() - 1);
        ++sums;
      }
      call.set_spread(Median(spreads));
      if (sums > 0) call.set_in_sample_error(off / sums);
      if (chosen.left_out.has_value()) {
        call.set_left_out_error(*chosen.left_out);
        weighted += time * *chosen.left_out;
        weight += time;
      }
      models.push_back(std::move(call));
    }
    *error = weight > 0 ? weighted / weight : 0;
    return models;
  }

  absl::StatusOr<ChosenModel> Choose(const Transition& transition,
                                     const std::vector<MeasuredPoint>& points) const {
    if (options_.models != "auto") {
      absl::StatusOr<Model> model = FitType(points, options_.models, options_.order, fit_);
      if (model.ok()) return ChosenModel{*std::move(model), std::nullopt};
      return absl::InvalidArgumentError(absl::StrCat("from callsite ", transition.first, " to ",
                                                     transition.second, ": ",
                                                     model.status().message()));
    }
    if (points.size() < kLeastCells && cells_.size() >= kLeastCells) {
      return ChosenModel{*FitType(points, std::string(kConstant), 0, fit_), std::nullopt};
    }
    return ChooseModel(points, fit_);
  }

  // Each number of nodes, each size; and the two, and three, largest of each.
  std::vector<CellSet> LeftSets() const {
    std::vector<CellSet> sets;
    const auto add = [&](const std::function<double(const WorkloadCell&)>& key) {
      std::set<double> groups;
      for (const WorkloadCell& cell : cells_) groups.insert(key(cell));
      if (groups.size() < 2) return;
      for (double group : groups) {
        CellSet& set = sets.emplace_back();
        for (const WorkloadCell& cell : cells_) {
          if (key(cell) == group) set.insert(cell);
        }
      }
      for (size_t largest = 2; largest <= 3 && largest + 2 <= groups.size(); ++largest) {
        const double from = *std::prev(groups.end(), static_cast<int64_t>(largest));
        CellSet& set = sets.emplace_back();
        for (const WorkloadCell& cell : cells_) {
          if (key(cell) >= from) set.insert(cell);
        }
      }
    };
    add([](const WorkloadCell& cell) { return cell.nodes; });
    add([](const WorkloadCell& cell) { return cell.size; });
    return sets;
  }

  double Beyond(const CellSet& fitted, const WorkloadCell& cell) const {
    double most_nodes = 0, most_size = 0;
    for (const WorkloadCell& other : fitted) {
      most_nodes = std::max(most_nodes, other.nodes);
      most_size = std::max(most_size, other.size);
    }
    return DoublingsBeyond(cell, most_nodes, most_size, fit_.linear_size);
  }

  const Measurements& measurements_;
  const WorkloadFitOptions& options_;
  const int64_t threads_;
  FitOptions fit_;
  CellSet cells_;
};

// Messages vary when some form is better than a constant on what is left out, by more than the
// standard error of that; what differs by a few bytes does not.
ChosenModel ChooseMessages(const std::vector<MeasuredPoint>& points) {
  double least = points[0].value, most = points[0].value;
  for (const MeasuredPoint& point : points) {
    least = std::min(least, point.value);
    most = std::max(most, point.value);
  }
  if (most - least <= kNegligibleBytes) {
    return {*FitType(points, std::string(kConstant), 0, FitOptions()), std::nullopt};
  }
  return ChooseModel(points, FitOptions());
}

void FitMessages(const Measurements& measurements, WorkloadModel* model) {
  for (const auto& [callsite, values] : measurements.messages) {
    std::map<int64_t, std::vector<MeasuredPoint>> by_threads;
    for (const auto& [cell, value] : values) {
      // The mean of all: messages have no first one of their own.
      by_threads[cell.threads].push_back({cell, value.Sum() / std::max(1.0, value.count)});
    }
    for (const auto& [threads, points] : by_threads) {
      CallModel& call = *model->add_messages();
      call.set_source(callsite);
      call.set_threads(threads);
      call.set_cells(static_cast<int64_t>(points.size()));
      const ChosenModel chosen = ChooseMessages(points);
      *call.mutable_value() = chosen.model;
      call.set_in_sample_error(MeanError(chosen.model, points));
      if (chosen.left_out.has_value()) call.set_left_out_error(*chosen.left_out);
    }
  }
}

}  // namespace

absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const WorkloadFitOptions& options) {
  if (measurements.times.empty() && measurements.messages.empty()) {
    return absl::InvalidArgumentError("there is nothing to fit: no transition was measured");
  }
  WorkloadModel model;
  model.set_format(std::string(kFormat));
  model.set_cells(static_cast<int64_t>(measurements.cells.size()));
  for (const std::string& note : measurements.notes) model.add_notes(note);
  bool is_first = true;
  for (const WorkloadCell& cell : measurements.cells) {
    model.set_least_nodes(is_first ? cell.nodes : std::min(model.least_nodes(), cell.nodes));
    model.set_least_size(is_first ? cell.size : std::min(model.least_size(), cell.size));
    model.set_most_nodes(std::max(model.most_nodes(), cell.nodes));
    model.set_most_size(std::max(model.most_size(), cell.size));
    is_first = false;
  }
  std::set<int64_t> threads;
  for (const WorkloadCell& cell : measurements.cells) threads.insert(cell.threads);
  std::vector<double> in_sample, between, beyond, near_errors, far_rates;
  for (int64_t count : threads) {
    if (measurements.times.empty()) break;
    Fitter fitter(measurements, options, count);
    bool linear_size = false;
    ASSIGN_OR_RETURN(const std::vector<CallModel> models, fitter.Fit(&linear_size));
    for (const WorkloadCell& cell : fitter.cells()) {
      double predicted = 0;
      for (const CallModel& call : models) predicted += PredictSum(call, cell, nullptr);
      const double measured = fitter.MeasuredTotal(cell);
      if (measured > 0) in_sample.push_back(std::abs(predicted / measured - 1));
    }
    for (const Fitter::LeftOut& left : fitter.LeaveOut(models)) {
      (left.beyond > 0 ? beyond : between).push_back(left.error);
      if (left.beyond > 0) {
        far_rates.push_back(std::abs(left.log_error) / left.beyond);
      } else {
        near_errors.push_back(std::abs(left.log_error));
      }
    }
    for (const CallModel& call : models) *model.add_models() = call;
  }
  FitMessages(measurements, &model);
  if (!in_sample.empty()) model.mutable_errors()->set_in_sample(Mean(in_sample));
  if (!between.empty()) model.mutable_errors()->set_interpolation(Mean(between));
  if (!beyond.empty()) model.mutable_errors()->set_extrapolation(Mean(beyond));
  model.set_log_deviation(near_errors.empty() ? kAssumedDeviation
                                              : std::max(kLeastDeviation, kDeviationsPerDistance *
                                                                              Median(near_errors)));
  model.set_log_deviation_beyond(
      far_rates.empty() ? kAssumedDeviation
                        : std::max(kLeastDeviation, kDeviationsPerDistance * Median(far_rates)));
  if (far_rates.empty()) {
    model.add_notes(
        "nothing can be left out to see how far larger runs are off: 20 % for each doubling is "
        "assumed");
  }
  return model;
}

absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell) {
  WorkloadEvaluation result;
  result.set_nodes(cell.nodes);
  result.set_size(cell.size);
  result.set_threads(cell.threads);
  std::set<int64_t> threads;
  bool linear_size = false;
  double total = 0;
  for (const CallModel& call : model.models()) {
    threads.insert(call.threads());
    linear_size |= call.value().linear_size();
    if (call.threads() != cell.threads) continue;
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.source());
    transition.set_destination(call.destination());
    transition.set_type(call.value().type());
    double count = 0;
    const double sum = PredictSum(call, cell, &count);
    if (!std::isfinite(sum)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model of type ", call.value().type(), " from callsite ", call.source(),
                       " to ", call.destination(), " is no finite number for ", cell.nodes,
                       " nodes and size ", cell.size));
    }
    transition.set_count(count);
    transition.set_us(count > 0 ? sum / count : 0);
    total += sum;
  }
  for (const CallModel& call : model.messages()) {
    if (call.threads() != cell.threads) continue;
    EvaluatedMessage& message = *result.add_messages();
    message.set_callsite(call.source());
    message.set_bytes(EvaluateModel(call.value(), cell));
    message.set_type(call.value().type());
  }
  if (result.transitions_size() == 0 && result.messages_size() == 0) {
    std::string known;
    for (int64_t count : threads) absl::StrAppend(&known, known.empty() ? "" : ", ", count);
    return absl::NotFoundError(absl::StrCat("there is no model of ", cell.threads,
                                            " threads; there are those of ", known));
  }
  const double below = std::max(0.0, std::log2(model.least_nodes() / cell.nodes)) +
                       std::max(0.0, model.least_size() - cell.size);
  const double beyond =
      DoublingsBeyond(cell, model.most_nodes(), model.most_size(), linear_size) + below;
  const double deviation = std::hypot(model.log_deviation(), model.log_deviation_beyond() * beyond);
  result.set_total_us(total);
  result.set_low_us(total * std::exp(-kDeviations * deviation));
  result.set_high_us(total * std::exp(kDeviations * deviation));
  if (!(result.high_us() <= kMaxTotalUs)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%g nodes and size %g lie too far beyond what was measured (%g to %g nodes, "
        "sizes %g to %g): the prediction is no time any more",
        cell.nodes, cell.size, model.least_nodes(), model.most_nodes(), model.least_size(),
        model.most_size()));
  }
  result.set_extrapolated(beyond > 0);
  if (beyond > 0) {
    result.add_notes(absl::StrFormat(
        "extrapolated: %g to %g nodes and sizes %g to %g were measured", model.least_nodes(),
        model.most_nodes(), model.least_size(), model.most_size()));
  }
  return result;
}

absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements) {
  WorkloadComparison result;
  std::map<Transition, ComparedTransition> transitions;
  std::set<Transition> unknown, missing;
  double errors = 0;
  for (const WorkloadCell& cell : measurements.cells) {
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
    std::map<Transition, double> predicted;
    for (const EvaluatedTransition& t : evaluation.transitions()) {
      predicted[{t.source(), t.destination()}] = t.count() * t.us();
    }
    double measured_us = 0;
    for (const auto& [transition, values] : measurements.times) {
      const auto value = values.find(cell);
      if (value == values.end()) continue;
      const double sum = value->second.Sum();
      measured_us += sum;
      const auto found = predicted.find(transition);
      if (found == predicted.end()) {
        unknown.insert(transition);
        continue;
      }
      ComparedTransition& compared = transitions[transition];
      compared.set_measured_us(compared.measured_us() + sum);
      compared.set_predicted_us(compared.predicted_us() + found->second);
      if (!(sum > 0)) continue;
      const double error = found->second / sum - 1;
      compared.set_error(compared.error() + std::abs(error));
      compared.set_signed_error(compared.signed_error() + error);
      compared.set_cells(compared.cells() + 1);
    }
    for (const auto& [transition, us] : predicted) {
      const auto values = measurements.times.find(transition);
      const bool was_measured =
          values != measurements.times.end() && values->second.count(cell) > 0;
      // Rare ones do not come in every run.
      if (!was_measured && us > kNotableShare * evaluation.total_us()) missing.insert(transition);
    }
    if (!(measured_us > 0)) continue;
    ComparedCell& compared = *result.add_cells();
    compared.set_nodes(cell.nodes);
    compared.set_size(cell.size);
    compared.set_threads(cell.threads);
    compared.set_measured_us(measured_us);
    compared.set_predicted_us(evaluation.total_us());
    compared.set_low_us(evaluation.low_us());
    compared.set_high_us(evaluation.high_us());
    compared.set_error(evaluation.total_us() / measured_us - 1);
    compared.set_extrapolated(evaluation.extrapolated());
    errors += std::abs(compared.error());
    if (measured_us >= evaluation.low_us() && measured_us <= evaluation.high_us()) {
      result.set_inside(result.inside() + 1);
    }
  }
  if (result.cells_size() == 0) {
    return absl::InvalidArgumentError("there is nothing to compare with: no time was measured");
  }
  result.set_mean_error(errors / result.cells_size());
  std::vector<ComparedTransition> order;
  for (auto& [transition, compared] : transitions) {
    compared.set_source(transition.first);
    compared.set_destination(transition.second);
    const double cells = static_cast<double>(std::max<int64_t>(1, compared.cells()));
    compared.set_error(compared.error() / cells);
    compared.set_signed_error(compared.signed_error() / cells);
    order.push_back(compared);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.measured_us() > b.measured_us(); });
  for (const ComparedTransition& compared : order) *result.add_transitions() = compared;
  for (const Transition& transition : unknown) {
    result.add_notes(absl::StrCat("there is no model from callsite ", transition.first, " to ",
                                  transition.second, ": its time is missing in what is predicted"));
  }
  for (const Transition& transition : missing) {
    result.add_notes(absl::StrCat("from callsite ", transition.first, " to ", transition.second,
                                  " nothing was measured in some run, where the model has time"));
  }
  return result;
}

absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source) {
  WorkloadModel model;
  const absl::Status status = ReportFromJson(json, &model);
  if (!status.ok() || model.format() != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(source), ": this is no model of workload_model fit (",
                     status.ok() ? "its format is another" : status.message(), ")"));
  }
  const auto check = [&](const CallModel& call) -> absl::Status {
    for (const Model* part : {&call.value(), &call.first(), &call.count()}) {
      const bool is_missing = part->type().empty() && !call.has_destination();
      const absl::Status valid = is_missing ? absl::OkStatus() : CheckModel(*part);
      if (!valid.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            Printable(source), ": callsite ", call.source(), ": ", Printable(valid.message())));
      }
    }
    return absl::OkStatus();
  };
  std::set<std::tuple<bool, int64_t, int64_t, int64_t>> seen;
  for (const auto* calls : {&model.models(), &model.messages()}) {
    for (const CallModel& call : *calls) {
      RETURN_IF_ERROR(check(call));
      const bool is_time = calls == &model.models();
      if (call.threads() < 1 || is_time != call.has_destination() ||
          !seen.insert({is_time, call.source(), call.destination(), call.threads()}).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(Printable(source), ": callsite ", call.source(),
                         " has no threads, or no destination, or is there twice"));
      }
    }
  }
  const bool is_range = model.least_nodes() >= 1 && model.most_nodes() >= model.least_nodes() &&
                        model.most_nodes() <= kMaxNodes && model.least_size() >= 0 &&
                        model.most_size() >= model.least_size() && model.most_size() <= kMaxSize;
  const auto is_deviation = [](double number) { return number > 0 && number < 100; };
  if (!is_range || !is_deviation(model.log_deviation()) ||
      !is_deviation(model.log_deviation_beyond())) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(source),
                     ": what was measured, or how far predictions are off, is missing or can "
                     "not be; write it anew with workload_model fit"));
  }
  return model;
}

std::vector<std::pair<int64_t, bool>> FindVaryingMessages(const Measurements& measurements) {
  WorkloadModel model;
  FitMessages(measurements, &model);
  std::vector<std::pair<int64_t, bool>> found;
  for (const CallModel& call : model.messages()) {
    found.push_back({call.source(), call.value().type() != kConstant});
  }
  return found;
}

std::string FormatWorkloadModel(const WorkloadModel& model) {
  using Align = TextTable::Align;
  TextTable table({{"from", Align::kRight},
                   {"to", Align::kRight},
                   {"cells", Align::kRight},
                   {"model", Align::kLeft},
                   {"in sample", Align::kRight},
                   {"left out", Align::kRight}});
  const auto percent = [](double share) { return absl::StrFormat("%.1f %%", 100 * share); };
  for (const CallModel& call : model.models()) {
    std::string form = call.value().type();
    for (const std::string& term : call.value().terms()) absl::StrAppend(&form, " ", term);
    table.AddRow({absl::StrCat(call.source()), absl::StrCat(call.destination()),
                  absl::StrCat(call.cells()), form, percent(call.in_sample_error()),
                  call.has_left_out_error() ? percent(call.left_out_error()) : "?"});
  }
  std::string text = absl::StrFormat("%d transitions in %d cells: %g to %g nodes, sizes %g to %g\n",
                                     model.models_size(), model.cells(), model.least_nodes(),
                                     model.most_nodes(), model.least_size(), model.most_size());
  if (model.models_size() > 0) absl::StrAppend(&text, "\n", table.ToString(), "\n");
  const WorkloadErrors& errors = model.errors();
  absl::StrAppend(&text, "total time is off by ", percent(errors.in_sample()),
                  " in the fitted cells");
  if (errors.has_interpolation()) {
    absl::StrAppend(&text, ", ", percent(errors.interpolation()), " between them");
  }
  if (errors.has_extrapolation()) {
    absl::StrAppend(&text, ", ", percent(errors.extrapolation()), " beyond them");
  }
  absl::StrAppend(&text, "\n");
  if (model.messages_size() > 0) {
    const auto varying =
        std::count_if(model.messages().begin(), model.messages().end(),
                      [](const CallModel& call) { return call.value().type() != kConstant; });
    absl::StrAppend(&text, "messages of ", model.messages_size(), " callsites, of which ", varying,
                    " vary\n");
  }
  for (const std::string& note : model.notes())
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  return text;
}

std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation) {
  using Align = TextTable::Align;
  std::string text = absl::StrFormat("%g nodes, size %g", evaluation.nodes(), evaluation.size());
  if (evaluation.transitions_size() > 0) {
    absl::StrAppend(&text, absl::StrFormat(": %.3f ms", evaluation.total_us() / 1000));
  }
  // Files of the motif have no interval.
  if (evaluation.low_us() < evaluation.high_us()) {
    absl::StrAppend(
        &text, absl::StrFormat("; nine of ten between %.3f and %.3f ms", evaluation.low_us() / 1000,
                               evaluation.high_us() / 1000));
  }
  absl::StrAppend(&text, "\n");
  TextTable table({{"from", Align::kRight},
                   {"to", Align::kRight},
                   {"count", Align::kRight},
                   {"us", Align::kRight},
                   {"share", Align::kRight},
                   {"model", Align::kLeft}});
  std::vector<const EvaluatedTransition*> order;
  for (const EvaluatedTransition& transition : evaluation.transitions()) {
    order.push_back(&transition);
  }
  const auto time = [](const EvaluatedTransition* t) { return t->count() * t->us(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return time(a) > time(b); });
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(order.size(), kShown); ++i) {
    const EvaluatedTransition& t = *order[i];
    table.AddRow(
        {absl::StrCat(t.source()), absl::StrCat(t.destination()),
         absl::StrFormat("%.1f", t.count()), absl::StrFormat("%.3f", t.us()),
         absl::StrFormat("%.1f %%",
                         evaluation.total_us() > 0 ? 100 * time(&t) / evaluation.total_us() : 0),
         t.type()});
  }
  if (!order.empty()) absl::StrAppend(&text, "\n", table.ToString());
  if (order.size() > kShown) {
    absl::StrAppend(&text, "and ", order.size() - kShown, " more\n");
  }
  TextTable messages(
      {{"callsite", Align::kRight}, {"bytes", Align::kRight}, {"model", Align::kLeft}});
  size_t constants = 0;
  for (const EvaluatedMessage& message : evaluation.messages()) {
    constants += message.type() == kConstant ? 1 : 0;
    if (message.type() == kConstant) continue;
    messages.AddRow({absl::StrCat(message.callsite()), absl::StrFormat("%.1f", message.bytes()),
                     message.type()});
  }
  if (evaluation.messages_size() > 0) {
    absl::StrAppend(&text, "\n", messages.ToString(), "and ", constants,
                    " callsites whose messages are constant\n");
  }
  for (const std::string& note : evaluation.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string FormatWorkloadComparison(const WorkloadComparison& comparison) {
  using Align = TextTable::Align;
  const auto ms = [](double us) { return absl::StrFormat("%.3f", us / 1000); };
  const auto percent = [](double share) { return absl::StrFormat("%+.1f %%", 100 * share); };
  TextTable cells({{"nodes", Align::kRight},
                   {"size", Align::kRight},
                   {"measured ms", Align::kRight},
                   {"predicted ms", Align::kRight},
                   {"nine of ten ms", Align::kRight},
                   {"error", Align::kRight},
                   {"", Align::kLeft}});
  for (const ComparedCell& cell : comparison.cells()) {
    cells.AddRow({absl::StrCat(cell.nodes()), absl::StrCat(cell.size()), ms(cell.measured_us()),
                  ms(cell.predicted_us()),
                  absl::StrCat(ms(cell.low_us()), " to ", ms(cell.high_us())),
                  percent(cell.error()), cell.extrapolated() ? "extrapolated" : ""});
  }
  TextTable transitions({{"from", Align::kRight},
                         {"to", Align::kRight},
                         {"measured ms", Align::kRight},
                         {"predicted ms", Align::kRight},
                         {"mean error", Align::kRight},
                         {"signed", Align::kRight}});
  constexpr int kShown = 20;
  for (int i = 0; i < std::min(comparison.transitions_size(), kShown); ++i) {
    const ComparedTransition& t = comparison.transitions(i);
    transitions.AddRow({absl::StrCat(t.source()), absl::StrCat(t.destination()),
                        ms(t.measured_us()), ms(t.predicted_us()),
                        absl::StrFormat("%.1f %%", 100 * t.error()), percent(t.signed_error())});
  }
  std::string text = absl::StrCat(cells.ToString(), "\n", transitions.ToString());
  if (comparison.transitions_size() > kShown) {
    absl::StrAppend(&text, "and ", comparison.transitions_size() - kShown, " more\n");
  }
  absl::StrAppend(&text, absl::StrFormat("\ntotals are off by %.1f %% in the mean; %d of %d lie in "
                                         "their intervals\n",
                                         100 * comparison.mean_error(), comparison.inside(),
                                         comparison.cells_size()));
  for (const std::string& note : comparison.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string WorkloadComparisonCsv(const WorkloadComparison& comparison) {
  std::string csv =
      "nodes,size,threads,measured_us,predicted_us,low_us,high_us,error,extrapolated\n";
  for (const ComparedCell& cell : comparison.cells()) {
    absl::StrAppend(&csv, absl::StrFormat("%g,%g,%d,%.3f,%.3f,%.3f,%.3f,%.6f,%d\n", cell.nodes(),
                                          cell.size(), cell.threads(), cell.measured_us(),
                                          cell.predicted_us(), cell.low_us(), cell.high_us(),
                                          cell.error(), cell.extrapolated() ? 1 : 0));
  }
  return csv;
}

}  // namespace meridian
