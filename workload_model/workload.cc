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
#include "workload_model/control_flow.h"
#include "workload_model/curve_fit.h"
#include "workload_model/rank_classes.h"
#include "workload_model/rank_patterns.h"
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
// What is assumed where nothing can be left out.
constexpr double kAssumedDeviation = 0.2;
constexpr double kLeastDeviation = 0.02;
// Powers of two of larger sizes are no numbers of anything.
constexpr double kMaxLogSize = 60;
// A size of 0 is no number of doublings away from others.
constexpr double kLeastLinearSize = 1e-3;
// A transition in fewer cells than this is constant where there are more.
constexpr size_t kLeastCells = 8;
// Bytes that differ by no more than this are what a header or an average adds.
constexpr double kNegligibleBytes = 16;
// Of bytes, between ranks.
constexpr double kNotableSpread = 0.2;
// 30,000 years.
constexpr double kMaxTotalUs = 1e18;
// Between ranks.
constexpr int64_t kMaxStep = 1000000000;

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

// Returns how far a cell lies outside of what was measured: doublings of nodes and of the problem,
// whose size is a power of two where it is not linear.
double DoublingsOutside(const WorkloadCell& cell, const FittedKind& kind) {
  const auto outside = [](double at, double least, double most) {
    return std::max({0.0, at - most, least - at});
  };
  const auto log_size = [&](double size) {
    return kind.linear_size() ? std::log2(std::max(size, kLeastLinearSize)) : size;
  };
  return outside(std::log2(cell.nodes), std::log2(kind.least_nodes()),
                 std::log2(kind.most_nodes())) +
         outside(log_size(cell.size), log_size(kind.least_size()), log_size(kind.most_size()));
}

void SetRange(const CellSet& cells, FittedKind* kind) {
  const WorkloadCell& first = *cells.begin();
  kind->set_least_nodes(first.nodes);
  kind->set_most_nodes(first.nodes);
  kind->set_least_size(first.size);
  kind->set_most_size(first.size);
  for (const WorkloadCell& cell : cells) {
    kind->set_least_nodes(std::min(kind->least_nodes(), cell.nodes));
    kind->set_most_nodes(std::max(kind->most_nodes(), cell.nodes));
    kind->set_least_size(std::min(kind->least_size(), cell.size));
    kind->set_most_size(std::max(kind->most_size(), cell.size));
  }
}

// The form of a model that was chosen, fitted to other cells; nullopt where these do not bear it.
std::optional<Model> Refit(const Model& form, absl::Span<const MeasuredPoint> points,
                           const FitOptions& options) {
  if (form.type() == kNormal) {
    return FitNormal(points, std::vector<std::string>(form.terms().begin(), form.terms().end()),
                     options);
  }
  const int order = form.terms_size() > 0 ? form.terms(form.terms_size() - 1)[2] - '0' : 0;
  absl::StatusOr<Model> model = FitType(points, form.type(), order, options);
  if (!model.ok()) return std::nullopt;
  return *std::move(model);
}

// Of a CallModel, FittedKind or MeasuredCell.
template <typename Message>
CellKind KindOf(const Message& message) {
  CellKind kind;
  kind.threads = message.threads();
  kind.ranks_per_node = std::max<int64_t>(1, message.ranks_per_node());
  if (!message.rank_class().empty()) kind.rank_class = message.rank_class();
  return kind;
}

template <typename Message>
void SetKind(const CellKind& kind, Message* message) {
  message->set_threads(kind.threads);
  message->set_ranks_per_node(kind.ranks_per_node);
  message->set_rank_class(kind.rank_class);
}

// One number of threads and ranks per node, one class of ranks.
class Fitter {
 public:
  Fitter(const Measurements& measurements, const WorkloadFitOptions& options, const CellKind& kind)
      : measurements_(measurements), options_(options), kind_(kind) {
    for (const WorkloadCell& cell : measurements.cells) {
      if (cell.kind == kind) cells_.insert(cell);
    }
  }

  // A node's share is that of a power of two, or of the size itself: what is left out of the fit
  // decides.
  absl::StatusOr<std::vector<CallModel>> Fit() {
    double most_size = 0;
    for (const WorkloadCell& cell : cells_) most_size = std::max(most_size, cell.size);
    std::optional<std::vector<CallModel>> best;
    double least_error = std::numeric_limits<double>::max();
    bool best_is_linear = false;
    for (const bool linear : {false, true}) {
      if (!linear && most_size > kMaxLogSize) continue;
      fit_.linear_size = linear;
      double error = 0;
      ASSIGN_OR_RETURN(std::vector<CallModel> models, FitAll(&error));
      if (best.has_value() && error >= least_error) continue;
      least_error = error;
      best = std::move(models);
      best_is_linear = linear;
    }
    fit_.linear_size = best_is_linear;
    return *std::move(best);
  }

  // A cell that was left out of a fit of the same forms.
  struct LeftOut {
    // log(measured / predicted) and |predicted / measured - 1| of the total.
    double log_error = 0;
    double error = 0;
    // How far outside of the fitted cells it lies.
    double outside = 0;
  };
  std::vector<LeftOut> LeaveOut(const std::vector<CallModel>& models) const {
    std::vector<LeftOut> result;
    for (const CellSet& left : LeftSets()) {
      CellSet fitted;
      for (const WorkloadCell& cell : cells_) {
        if (left.count(cell) == 0) fitted.insert(cell);
      }
      if (fitted.size() < 2) continue;
      const std::optional<std::vector<CallModel>> refitted = RefitAll(models, fitted);
      if (!refitted.has_value()) continue;
      FittedKind range;
      range.set_linear_size(fit_.linear_size);
      SetRange(fitted, &range);
      for (const WorkloadCell& cell : left) {
        double predicted = 0;
        for (const CallModel& call : *refitted) predicted += PredictSum(call, cell, nullptr);
        const double measured = MeasuredTotal(cell);
        if (!(predicted > 0) || !(measured > 0)) continue;
        result.push_back({std::log(measured / predicted), std::abs(predicted / measured - 1),
                          DoublingsOutside(cell, range)});
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
  bool linear_size() const { return fit_.linear_size; }

 private:
  // The same forms, fitted to fewer cells, without transitions that do not occur in these. Nullopt
  // where a form needs more of them.
  std::optional<std::vector<CallModel>> RefitAll(const std::vector<CallModel>& models,
                                                 const CellSet& fitted) const {
    std::vector<CallModel> result;
    for (const CallModel& call : models) {
      const CellValues& values = measurements_.times.at({call.source(), call.destination()});
      const std::vector<MeasuredPoint> points = PointsOf(values, fitted, SteadyOf);
      if (points.empty()) continue;
      const std::optional<Model> value = Refit(call.value(), points, fit_);
      const std::optional<Model> first =
          Refit(call.first(), PointsOf(values, fitted, FirstOf), fit_);
      if (!value.has_value() || !first.has_value()) return std::nullopt;
      CallModel& copy = result.emplace_back(call);
      *copy.mutable_value() = *value;
      *copy.mutable_first() = *first;
      *copy.mutable_count() = FitCount(CountPoints(values, fitted), fit_);
    }
    return result;
  }

  absl::StatusOr<std::vector<CallModel>> FitAll(double* error) {
    std::vector<CallModel> models;
    double weighted = 0, weight = 0;
    for (const auto& [transition, values] : measurements_.times) {
      const std::vector<MeasuredPoint> steady = PointsOf(values, cells_, SteadyOf);
      if (steady.empty()) continue;
      CallModel call;
      call.set_source(transition.first);
      call.set_destination(transition.second);
      SetKind(kind_, &call);
      call.set_cells(static_cast<int64_t>(steady.size()));
      ASSIGN_OR_RETURN(const ChosenModel chosen, Choose(transition, steady));
      *call.mutable_value() = chosen.model;
      static const auto& of_first = *new std::vector<std::string>{"1", "u"};
      const std::vector<MeasuredPoint> first = PointsOf(values, cells_, FirstOf);
      *call.mutable_first() = first.size() < 4 ? *FitType(first, std::string(kConstant), 0, fit_)
                                               : FitNormal(first, of_first, fit_);
      *call.mutable_count() = FitCount(CountPoints(values, cells_), fit_);
      if (const auto computes = measurements_.computes.find(transition);
          computes != measurements_.computes.end()) {
        const std::vector<MeasuredPoint> points = PointsOf(computes->second, cells_, SteadyOf);
        if (points.size() == steady.size()) {
          ASSIGN_OR_RETURN(const ChosenModel compute, Choose(transition, points));
          *call.mutable_compute() = compute.model;
        }
      }
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
      std::set<double> values;
      for (const WorkloadCell& cell : cells_) values.insert(key(cell));
      if (values.size() < 2) return;
      const std::map<double, size_t> groups = GroupsToLeaveOut(values);
      const size_t count = groups.rbegin()->second + 1;
      const auto leave_out = [&](size_t first, size_t last) {
        CellSet& set = sets.emplace_back();
        for (const WorkloadCell& cell : cells_) {
          const size_t group = groups.at(key(cell));
          if (group >= first && group <= last) set.insert(cell);
        }
      };
      for (size_t group = 0; group < count; ++group) leave_out(group, group);
      for (size_t largest = 2; largest <= 3 && largest + 2 <= count; ++largest) {
        leave_out(count - largest, count - 1);
      }
    };
    add([](const WorkloadCell& cell) { return cell.nodes; });
    add([](const WorkloadCell& cell) { return cell.size; });
    return sets;
  }

  const Measurements& measurements_;
  const WorkloadFitOptions& options_;
  const CellKind kind_;
  FitOptions fit_;
  CellSet cells_;
};

// Messages vary when some form is better than a constant on what is left out, by more than the
// standard error of that; what differs by a few bytes does not.
ChosenModel ChooseMessages(const std::vector<MeasuredPoint>& points, const FitOptions& options) {
  double least = points[0].value, most = points[0].value;
  for (const MeasuredPoint& point : points) {
    least = std::min(least, point.value);
    most = std::max(most, point.value);
  }
  if (most - least <= kNegligibleBytes) {
    return {*FitType(points, std::string(kConstant), 0, options), std::nullopt};
  }
  return ChooseModel(points, options);
}

// As of the times of that kind; where there are none, as far as sizes can be powers of two.
bool IsLinear(const CellKind& kind, const WorkloadModel& model) {
  for (const FittedKind& fitted : model.kinds()) {
    if (KindOf(fitted) == kind) return fitted.linear_size();
  }
  return false;
}

void FitMessages(const Measurements& measurements, WorkloadModel* model) {
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
      const ChosenModel chosen = ChooseMessages(points, {IsLinear(kind, *model)});
      *call.mutable_value() = chosen.model;
      call.set_in_sample_error(MeanError(chosen.model, points));
      for (const auto& [cell, value] : values) {
        const bool varies = value.varies || value.spread > kNotableSpread;
        if (cell.kind == kind && varies) call.set_varies_in_runs(true);
      }
      if (chosen.left_out.has_value()) call.set_left_out_error(*chosen.left_out);
    }
  }
}

// A transition in one cell, as predicted.
struct PredictedCall {
  const CallModel* model = nullptr;
  double count = 0;
  double sum = 0;
};

// Whether models of this kind answer for the asked one; a kind without rank class asks for all.
bool IsAsked(const CellKind& kind, const CellKind& asked) {
  return kind.threads == asked.threads && kind.ranks_per_node == asked.ranks_per_node &&
         (asked.rank_class.empty() || kind.rank_class == asked.rank_class);
}

std::string KindText(int64_t threads, int64_t ranks_per_node) {
  return absl::StrCat(
      threads, threads == 1 ? " thread" : " threads",
      ranks_per_node > 1 ? absl::StrCat(" of each of ", ranks_per_node, " ranks per node") : "");
}

absl::Status UnknownKind(const WorkloadModel& model, const CellKind& asked) {
  std::set<std::pair<int64_t, int64_t>> kinds;
  for (const CallModel& call : model.models()) {
    kinds.insert({KindOf(call).threads, KindOf(call).ranks_per_node});
  }
  std::string known;
  for (const auto& [threads, ranks] : kinds) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", KindText(threads, ranks));
  }
  return absl::NotFoundError(absl::StrCat("there is no model of ",
                                          KindText(asked.threads, asked.ranks_per_node),
                                          "; there are those of ", known));
}

absl::Status NoFiniteNumber(const CallModel& call, const Model& model, const WorkloadCell& cell) {
  return absl::InvalidArgumentError(
      absl::StrCat("the model of type ", model.type(), " of callsite ", call.source(),
                   call.has_destination() ? absl::StrCat(" to ", call.destination()) : "",
                   " is no finite number for ", cell.nodes, " nodes and size ", cell.size));
}

absl::StatusOr<PredictedCall> Predict(const CallModel& call, const WorkloadCell& cell) {
  PredictedCall predicted;
  predicted.model = &call;
  predicted.sum = PredictSum(call, cell, &predicted.count);
  if (std::isfinite(predicted.sum)) return predicted;
  return NoFiniteNumber(call, call.value(), cell);
}

// Returns the transitions of a number of threads, or ranks per node, that was not measured: a power of
// these numbers through those that were. Empty when these do not differ in what is asked for.
absl::StatusOr<std::vector<PredictedCall>> PredictBetweenKinds(const WorkloadModel& model,
                                                               const WorkloadCell& cell,
                                                               double* doublings) {
  std::set<int64_t> threads, ranks;
  for (const CallModel& call : model.models()) {
    threads.insert(KindOf(call).threads);
    ranks.insert(KindOf(call).ranks_per_node);
  }
  const auto can_ask = [](const std::set<int64_t>& known, int64_t asked) {
    return known.size() > 1 || known.count(asked) > 0;
  };
  std::vector<PredictedCall> result;
  if (!can_ask(threads, cell.kind.threads) || !can_ask(ranks, cell.kind.ranks_per_node)) {
    return result;
  }
  const auto distance = [](const std::set<int64_t>& known, int64_t asked) {
    double least = std::numeric_limits<double>::max();
    for (int64_t number : known) {
      least = std::min(least, std::abs(std::log2(static_cast<double>(asked)) -
                                       std::log2(static_cast<double>(number))));
    }
    return least;
  };
  *doublings = distance(threads, cell.kind.threads) + distance(ranks, cell.kind.ranks_per_node);
  std::map<std::tuple<std::string, int64_t, int64_t>, std::vector<PredictedCall>> by_transition;
  for (const CallModel& call : model.models()) {
    const CellKind kind = KindOf(call);
    if (!cell.kind.rank_class.empty() && kind.rank_class != cell.kind.rank_class) continue;
    ASSIGN_OR_RETURN(const PredictedCall predicted, Predict(call, cell));
    by_transition[{kind.rank_class, call.source(), call.destination()}].push_back(predicted);
  }
  for (const auto& transition_and_calls : by_transition) {
    const std::vector<PredictedCall>& calls = transition_and_calls.second;
    const auto at = [&](double PredictedCall::*value) {
      std::vector<KindValue> values;
      for (const PredictedCall& call : calls) {
        const CellKind kind = KindOf(*call.model);
        values.push_back({kind.threads, kind.ranks_per_node, call.*value});
      }
      return PowerOfKinds(values, cell.kind.threads, cell.kind.ranks_per_node);
    };
    result.push_back({calls[0].model, at(&PredictedCall::count), at(&PredictedCall::sum)});
  }
  return result;
}

absl::StatusOr<std::vector<PredictedCall>> PredictCalls(const WorkloadModel& model,
                                                        const WorkloadCell& cell, double* deviation,
                                                        WorkloadEvaluation* evaluation) {
  std::vector<PredictedCall> calls;
  for (const CallModel& call : model.models()) {
    if (!IsAsked(KindOf(call), cell.kind)) continue;
    ASSIGN_OR_RETURN(const PredictedCall predicted, Predict(call, cell));
    calls.push_back(predicted);
  }
  if (!calls.empty()) return calls;
  double doublings = 0;
  ASSIGN_OR_RETURN(calls, PredictBetweenKinds(model, cell, &doublings));
  if (calls.empty()) return calls;
  *deviation = kAssumedDeviation * doublings;
  evaluation->add_notes(absl::StrCat(
      KindText(cell.kind.threads, cell.kind.ranks_per_node),
      " were not measured: times are taken to be a power of them, and to be off by 20 % for each "
      "doubling"));
  return calls;
}

// Returns what is known of the asked kind, or else of the class of ranks.
const FittedKind& NearestKind(const WorkloadModel& model, const CellKind& asked,
                              const std::string& rank_class) {
  const FittedKind* nearest = &model.kinds(0);
  for (const FittedKind& kind : model.kinds()) {
    if (kind.rank_class() != rank_class) continue;
    nearest = &kind;
    if (IsAsked(KindOf(kind), asked)) break;
  }
  return *nearest;
}

// How often the slowest class comes back to where its iterations begin, and what one takes.
void AddIterations(const WorkloadModel& model, const std::string& rank_class,
                   const std::vector<PredictedCall>& calls, const WorkloadCell& cell,
                   WorkloadEvaluation* evaluation) {
  for (const ControlFlow& flow : model.flows()) {
    if (flow.rank_class() != rank_class || flow.head() == 0) continue;
    double iterations = flow.first() == flow.head() ? 1 : 0, steady = 0;
    for (const PredictedCall& call : calls) {
      if (KindOf(*call.model).rank_class != rank_class) continue;
      const double each = EvaluateModel(call.model->value(), cell);
      if (call.model->destination() == flow.head()) iterations += call.count;
      steady += call.count * each;
      // The last iteration does not come back; as it does for the others.
      if (call.model->source() == flow.last() && call.model->destination() == flow.head()) {
        steady += each;
      }
    }
    if (iterations < 1.5) continue;
    evaluation->set_iterations(iterations);
    evaluation->set_iteration_us(steady / iterations);
  }
}

}  // namespace

absl::StatusOr<double> FiniteValue(const CallModel& call, const Model& model,
                                   const WorkloadCell& cell) {
  const double value = EvaluateModel(model, cell);
  if (std::isfinite(value)) return value;
  return NoFiniteNumber(call, model, cell);
}

absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const WorkloadFitOptions& options) {
  if (measurements.times.empty() && measurements.messages.empty()) {
    return absl::InvalidArgumentError("there is nothing to fit: no transition was measured");
  }
  WorkloadModel model;
  model.set_format(std::string(kFormat));
  model.set_cells(static_cast<int64_t>(measurements.cells.size()));
  for (const std::string& note : measurements.notes) model.add_notes(note);
  for (const MeasuredCell& cell : measurements.measured) *model.add_measured() = cell;
  std::set<CellKind> kinds;
  for (const WorkloadCell& cell : measurements.cells) kinds.insert(cell.kind);
  std::vector<double> in_sample, between, beyond;
  bool is_assumed = false;
  for (const CellKind& kind : kinds) {
    FittedKind& fitted = *model.add_kinds();
    SetKind(kind, &fitted);
    Fitter fitter(measurements, options, kind);
    SetRange(fitter.cells(), &fitted);
    fitted.set_linear_size(fitted.most_size() > kMaxLogSize);
    std::vector<double> near_errors, far_rates;
    if (!measurements.times.empty()) {
      ASSIGN_OR_RETURN(const std::vector<CallModel> models, fitter.Fit());
      fitted.set_linear_size(fitter.linear_size());
      for (const WorkloadCell& cell : fitter.cells()) {
        double predicted = 0;
        for (const CallModel& call : models) predicted += PredictSum(call, cell, nullptr);
        const double measured = fitter.MeasuredTotal(cell);
        if (measured > 0) in_sample.push_back(std::abs(predicted / measured - 1));
      }
      for (const Fitter::LeftOut& left : fitter.LeaveOut(models)) {
        (left.outside > 0 ? beyond : between).push_back(left.error);
        if (left.outside > 0) {
          far_rates.push_back(std::abs(left.log_error) / left.outside);
        } else {
          near_errors.push_back(std::abs(left.log_error));
        }
      }
      for (const CallModel& call : models) *model.add_models() = call;
    }
    const auto deviation = [](const std::vector<double>& errors) {
      if (errors.empty()) return kAssumedDeviation;
      return std::max(kLeastDeviation, kDeviationsPerMedianDistance * Median(errors));
    };
    fitted.set_log_deviation(deviation(near_errors));
    fitted.set_log_deviation_beyond(deviation(far_rates));
    is_assumed |= far_rates.empty();
  }
  FitMessages(measurements, &model);
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

namespace {

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

}  // namespace

absl::StatusOr<WorkloadModel> FitRuns(std::vector<RunMeasurements> runs,
                                      const WorkloadFitOptions& options) {
  std::vector<std::string> notes;
  const std::optional<std::string> rule = ClassifyRanks(&runs, &notes);
  ASSIGN_OR_RETURN(WorkloadModel model, FitWorkload(Aggregate(runs), options));
  for (const std::string& note : notes) model.add_notes(note);
  if (!rule.has_value()) return model;
  model.set_rank_classes(*rule);
  std::map<std::string, std::vector<const RunMeasurements*>> classes;
  for (const RunMeasurements& run : runs) {
    if (!run.calls.empty()) classes[run.cell.kind.rank_class].push_back(&run);
  }
  const bool all_traced = CheckTracedRanks(runs, &model);
  for (const auto& [name, of_class] : classes) {
    // Ranks of one run do the same, and count once.
    CallSequences sequences;
    std::set<std::pair<WorkloadCell, std::string>> seen;
    for (const RunMeasurements* run : of_class) {
      if (!seen.insert({run->cell, run->run}).second) continue;
      std::vector<int64_t> sequence;
      for (const TracedCall& call : run->calls) sequence.push_back(call.destination);
      sequences[CellOfRanks(run->cell)].push_back(std::move(sequence));
    }
    ASSIGN_OR_RETURN(ControlFlow flow, LearnControlFlow(sequences));
    flow.set_rank_class(name);
    for (CallsiteModel& callsite : LearnCallsites(of_class, all_traced)) {
      *flow.add_callsites() = std::move(callsite);
    }
    for (const FlowBranch& branch : flow.branches()) {
      for (const FlowSegment& segment : branch.segments()) {
        if (segment.also().empty()) continue;
        model.add_notes(absl::StrCat(
            "how often callsite ", branch.callsite(), " leads on is taken for a rule in ",
            segment.visits().terms(1), ", but one in ", segment.also(),
            " says the same about these runs: measure another number of ranks"));
      }
    }
    *model.add_flows() = std::move(flow);
  }
  return model;
}

absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell) {
  WorkloadEvaluation result;
  result.set_nodes(cell.nodes);
  result.set_size(cell.size);
  result.set_threads(cell.kind.threads);
  result.set_ranks_per_node(cell.kind.ranks_per_node);
  double deviation_of_kind = 0;
  ASSIGN_OR_RETURN(const std::vector<PredictedCall> calls,
                   PredictCalls(model, cell, &deviation_of_kind, &result));
  // Of the class of ranks that takes longest: the others wait for it.
  std::map<std::string, double> totals;
  for (const PredictedCall& call : calls) {
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.model->source());
    transition.set_destination(call.model->destination());
    transition.set_type(call.model->value().type());
    transition.set_rank_class(KindOf(*call.model).rank_class);
    transition.set_count(call.count);
    transition.set_us(call.count > 0 ? call.sum / call.count : 0);
    totals[transition.rank_class()] += call.sum;
  }
  for (const CallModel& call : model.messages()) {
    const CellKind kind = KindOf(call);
    if (!IsAsked(kind, cell.kind)) continue;
    EvaluatedMessage& message = *result.add_messages();
    message.set_callsite(call.source());
    ASSIGN_OR_RETURN(const double bytes, FiniteValue(call, call.value(), cell));
    message.set_bytes(bytes);
    message.set_type(call.value().type());
    message.set_rank_class(kind.rank_class);
  }
  if (calls.empty() && result.messages_size() == 0) return UnknownKind(model, cell.kind);
  double total = 0;
  std::string slowest;
  for (const auto& [name, of_class] : totals) {
    if (of_class < total) continue;
    total = of_class;
    slowest = name;
  }
  AddIterations(model, slowest, calls, cell, &result);
  const FittedKind& kind = NearestKind(model, cell.kind, slowest);
  const double outside = DoublingsOutside(cell, kind);
  const double deviation =
      std::hypot(kind.log_deviation(), kind.log_deviation_beyond() * outside, deviation_of_kind);
  result.set_total_us(total);
  result.set_low_us(total * std::exp(-kDeviations * deviation));
  result.set_high_us(total * std::exp(kDeviations * deviation));
  const std::string measured =
      absl::StrFormat("%g to %g nodes and sizes %g to %g were measured", kind.least_nodes(),
                      kind.most_nodes(), kind.least_size(), kind.most_size());
  if (!(result.high_us() <= kMaxTotalUs)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%g nodes and size %g lie too far from what is known for a prediction that means anything: "
        "%s",
        cell.nodes, cell.size, measured));
  }
  result.set_extrapolated(outside > 0);
  if (outside > 0) result.add_notes(absl::StrCat("extrapolated: ", measured));
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
    compared.set_threads(cell.kind.threads);
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
    std::vector<const Model*> parts = {&call.value()};
    // Messages have a value only, and computation is not always known.
    if (call.has_destination() || call.has_first()) parts.push_back(&call.first());
    if (call.has_destination() || call.has_count()) parts.push_back(&call.count());
    if (call.has_compute()) parts.push_back(&call.compute());
    for (const Model* part : parts) {
      const absl::Status valid = CheckModel(*part);
      if (!valid.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            Printable(source), ": callsite ", call.source(), ": ", Printable(valid.message())));
      }
    }
    return absl::OkStatus();
  };
  std::set<std::tuple<bool, int64_t, int64_t, CellKind>> seen;
  for (const auto* calls : {&model.models(), &model.messages()}) {
    for (const CallModel& call : *calls) {
      RETURN_IF_ERROR(check(call));
      const bool is_time = calls == &model.models();
      if (call.threads() < 1 || is_time != call.has_destination() ||
          !seen.insert({is_time, call.source(), call.destination(), KindOf(call)}).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(Printable(source), ": callsite ", call.source(),
                         " has no threads, or no destination, or is there twice"));
      }
    }
  }
  if (!model.rank_classes().empty() && !IsRankRule(model.rank_classes())) {
    return absl::InvalidArgumentError(absl::StrCat(
        Printable(source), ": '", Printable(model.rank_classes()), "' is no rule of rank classes"));
  }
  for (const ControlFlow& flow : model.flows()) {
    absl::Status valid = CheckControlFlow(flow);
    std::set<int64_t> callsites;
    for (const CallsiteModel& callsite : flow.callsites()) {
      const PeerRule& rule = callsite.peer();
      const auto is_step = [](int64_t step) { return step >= -kMaxStep && step <= kMaxStep; };
      if (!is_step(rule.step()) || !is_step(rule.by_visit())) {
        valid = absl::InvalidArgumentError(
            absl::StrCat("callsite ", callsite.callsite(), " sends farther than there are ranks"));
      }
      if (callsites.insert(callsite.callsite()).second) continue;
      valid = absl::InvalidArgumentError(
          absl::StrCat("callsite ", callsite.callsite(), " is there twice"));
    }
    if (!valid.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Printable(source), ": ", Printable(valid.message())));
    }
  }
  const auto is_deviation = [](double number) { return number > 0 && number < 100; };
  bool is_sound = model.kinds_size() > 0;
  for (const FittedKind& kind : model.kinds()) {
    is_sound &= kind.least_nodes() >= 1 && kind.most_nodes() >= kind.least_nodes() &&
                kind.most_nodes() <= kMaxNodes && kind.least_size() >= 0 &&
                kind.most_size() >= kind.least_size() && kind.most_size() <= kMaxSize &&
                is_deviation(kind.log_deviation()) && is_deviation(kind.log_deviation_beyond());
  }
  if (!is_sound) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(source),
                     ": what was measured, or how far predictions are off, is missing or can "
                     "not be; write it anew with workload_model fit"));
  }
  return model;
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
  std::string text = absl::StrCat(model.models_size(), " transitions in ", model.cells(), " cells");
  for (const FittedKind& kind : model.kinds()) {
    absl::StrAppend(&text, &kind == &model.kinds(0) ? ": " : "; ",
                    model.kinds_size() > 1
                        ? absl::StrCat(KindText(kind.threads(), kind.ranks_per_node()), ", ranks '",
                                       kind.rank_class(), "', ")
                        : "",
                    absl::StrFormat("%g to %g nodes, sizes %g to %g", kind.least_nodes(),
                                    kind.most_nodes(), kind.least_size(), kind.most_size()));
  }
  absl::StrAppend(&text, "\n");
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
  for (const ControlFlow& flow : model.flows()) {
    int64_t branches = 0, draws = 0;
    for (const FlowBranch& branch : flow.branches()) {
      branches += branch.segments_size() > 1 || branch.segments(0).choices_size() > 1 ? 1 : 0;
      for (const FlowSegment& segment : branch.segments()) {
        draws += segment.choices_size() > 1 ? 1 : 0;
      }
    }
    absl::StrAppend(&text, "control flow of ranks '", flow.rank_class(),
                    "': ", flow.branches_size(), " callsites, ", branches, " branches, ", draws,
                    " of their segments drawn\n");
    for (const CallsiteModel& callsite : flow.callsites()) {
      if (callsite.unexplained().empty()) continue;
      absl::StrAppend(&text, "note: callsite ", callsite.callsite(), " (",
                      Printable(callsite.operation()),
                      ") can not be generated: ", Printable(callsite.unexplained()), "\n");
    }
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
  if (evaluation.has_iterations()) {
    absl::StrAppend(&text,
                    absl::StrFormat("%.0f iterations of %.3f ms, the first times aside\n",
                                    evaluation.iterations(), evaluation.iteration_us() / 1000));
  }
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
    cells.AddRow({absl::StrFormat("%.15g", cell.nodes()), absl::StrFormat("%.15g", cell.size()),
                  ms(cell.measured_us()), ms(cell.predicted_us()),
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
    absl::StrAppend(
        &csv,
        absl::StrFormat("%.15g,%.15g,%d,%.3f,%.3f,%.3f,%.3f,%.6f,%d\n", cell.nodes(), cell.size(),
                        cell.threads(), cell.measured_us(), cell.predicted_us(), cell.low_us(),
                        cell.high_us(), cell.error(), cell.extrapolated() ? 1 : 0));
  }
  return csv;
}

}  // namespace meridian
