#include "workload_model/calls/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "workload_model/models/curve_fit.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Nine tenths of a normal distribution lie within so many deviations.
constexpr double kDeviations = 1.645;
// A size of 0 is no number of doublings away from others.
constexpr double kLeastLinearSize = 1e-3;
// 30,000 years.
constexpr double kMaxTotalUs = 1e18;

// A transition in one cell, as predicted: how often it is taken, and its time in all, in us.
struct PredictedCall {
  const CallModel* model = nullptr;
  double count = 0;
  double sum = 0;
};

absl::Status UnknownKind(const WorkloadModel& model, const CellKind& asked) {
  std::map<std::pair<int64_t, int64_t>, std::string> known;
  for (const CallModel& call : model.models()) {
    const CellKind kind = KindOf(call);
    known[{kind.threads, kind.ranks_per_machine}] = KindText(kind);
  }
  const auto text = [](std::string* out, const auto& kind) { out->append(kind.second); };
  return NotFound("there is no model of ", KindText(asked), "; there are those of ",
                  absl::StrJoin(known, ", ", text));
}

absl::Status NoFiniteNumber(const CallModel& call, const Model& model, const WorkloadCell& cell) {
  return InvalidArgument("the model of type ", model.type(), " of callsite ", call.source(),
                         call.has_destination() ? absl::StrCat(" to ", call.destination()) : "",
                         " is no finite number for ", cell.machines, " nodes and size ", cell.size);
}

absl::StatusOr<PredictedCall> Predict(const CallModel& call, const WorkloadCell& cell) {
  const CellValue value = PredictCall(call, cell);
  if (std::isfinite(value.Sum())) return PredictedCall{&call, value.count, value.Sum()};
  return NoFiniteNumber(call, call.value(), cell);
}

// Returns how many doublings a number is away from the nearest that is known; nullopt where only
// another one is known, which tells nothing about it.
std::optional<double> DoublingsFrom(const std::set<int64_t>& known, int64_t asked) {
  if (known.size() < 2 && known.count(asked) == 0) return std::nullopt;
  double least = std::numeric_limits<double>::max();
  for (int64_t number : known) {
    least = std::min(least, std::abs(std::log2(static_cast<double>(asked)) -
                                     std::log2(static_cast<double>(number))));
  }
  return least;
}

// Returns the transitions of a number of threads, or ranks per machine, that was not measured: a power
// of these numbers through those that were. Empty when these do not differ in what is asked for.
absl::StatusOr<std::vector<PredictedCall>> PredictBetweenKinds(const WorkloadModel& model,
                                                               const WorkloadCell& cell,
                                                               double* doublings) {
  std::set<int64_t> threads, ranks;
  std::map<std::tuple<std::string, int64_t, int64_t>, std::vector<PredictedCall>> by_transition;
  for (const CallModel& call : model.models()) {
    const CellKind kind = KindOf(call);
    threads.insert(kind.threads);
    ranks.insert(kind.ranks_per_machine);
    if (!cell.kind.rank_class.empty() && kind.rank_class != cell.kind.rank_class) continue;
    ASSIGN_OR_RETURN(const PredictedCall predicted, Predict(call, cell));
    by_transition[{kind.rank_class, call.source(), call.destination()}].push_back(predicted);
  }
  const std::optional<double> of_threads = DoublingsFrom(threads, cell.kind.threads);
  const std::optional<double> of_ranks = DoublingsFrom(ranks, cell.kind.ranks_per_machine);
  std::vector<PredictedCall> result;
  if (!of_threads.has_value() || !of_ranks.has_value()) return result;
  *doublings = *of_threads + *of_ranks;
  for (const auto& transition_and_calls : by_transition) {
    const std::vector<PredictedCall>& calls = transition_and_calls.second;
    const auto at = [&](double PredictedCall::*value) {
      std::vector<std::pair<CellKind, double>> values;
      for (const PredictedCall& call : calls) {
        values.push_back({KindOf(*call.model), call.*value});
      }
      return PowerOfKinds(values, cell.kind);
    };
    result.push_back({calls[0].model, at(&PredictedCall::count), at(&PredictedCall::sum)});
  }
  return result;
}

// Adds to `deviation` what is not known of a kind that was not measured.
absl::StatusOr<std::vector<PredictedCall>> PredictCalls(const WorkloadModel& model,
                                                        const WorkloadCell& cell, double* deviation,
                                                        WorkloadEvaluation* evaluation) {
  std::vector<PredictedCall> calls;
  for (const CallModel& call : model.models()) {
    if (!KindOf(call).Answers(cell.kind)) continue;
    ASSIGN_OR_RETURN(const PredictedCall predicted, Predict(call, cell));
    calls.push_back(predicted);
  }
  if (!calls.empty()) return calls;
  double doublings = 0;
  ASSIGN_OR_RETURN(calls, PredictBetweenKinds(model, cell, &doublings));
  if (calls.empty()) return calls;
  *deviation = kAssumedDeviation * doublings;
  evaluation->add_notes(absl::StrCat(
      KindText(cell.kind),
      " were not measured: times are taken to be a power of them, and to be off by 20 % for each "
      "doubling"));
  return calls;
}

// Adds the transitions; returns the class of ranks that takes longest, for which the others wait.
std::string AddTransitions(const std::vector<PredictedCall>& calls, WorkloadEvaluation* result) {
  std::map<std::string, double> totals;
  for (const PredictedCall& call : calls) {
    EvaluatedTransition& transition = *result->add_transitions();
    transition.set_source(call.model->source());
    transition.set_destination(call.model->destination());
    transition.set_type(call.model->value().type());
    transition.set_rank_class(KindOf(*call.model).rank_class);
    transition.set_count(call.count);
    transition.set_us(call.count > 0 ? call.sum / call.count : 0);
    totals[transition.rank_class()] += call.sum;
  }
  std::string slowest;
  for (const auto& [name, total] : totals) {
    if (total < result->total_us()) continue;
    result->set_total_us(total);
    slowest = name;
  }
  return slowest;
}

EvaluatedMessage& AddMessage(const CallModel& call, double bytes, WorkloadEvaluation* result) {
  EvaluatedMessage& message = *result->add_messages();
  message.set_callsite(call.source());
  message.set_type(call.value().type());
  message.set_bytes(bytes);
  return message;
}

// Returns what is known of the asked kind, or else of the class of ranks.
const FittedKind& NearestKind(const WorkloadModel& model, const CellKind& asked,
                              const std::string& rank_class) {
  const FittedKind* nearest = &model.kinds(0);
  for (const FittedKind& kind : model.kinds()) {
    if (kind.rank_class() != rank_class) continue;
    nearest = &kind;
    if (KindOf(kind).Answers(asked)) break;
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

WorkloadEvaluation EvaluationOf(const WorkloadCell& cell) {
  WorkloadEvaluation result;
  result.set_nodes(cell.machines);
  result.set_size(cell.size);
  result.set_threads(cell.kind.threads);
  return result;
}

// A transition that was not measured is noted when it is so much of what is predicted in all: rare ones
// do not come in every run.
constexpr double kNotableShare = 0.01;

// The transitions of all cells together.
class TransitionComparison {
 public:
  // Returns what was measured in the cell in all, in us.
  double Add(const Measurements& measurements, const WorkloadCell& cell,
             const WorkloadEvaluation& evaluation) {
    std::map<Transition, double> predicted;
    for (const EvaluatedTransition& t : evaluation.transitions()) {
      predicted[{t.source(), t.destination()}] = t.count() * t.us();
    }
    double measured_us = 0;
    for (const auto& [transition, values] : measurements.times) {
      const auto value = values.find(cell);
      if (value == values.end()) continue;
      measured_us += value->second.Sum();
      const auto found = predicted.find(transition);
      if (found == predicted.end()) {
        unknown_.insert(transition);
      } else {
        AddTimes(value->second.Sum(), found->second, &compared_[transition]);
        predicted.erase(found);
      }
    }
    for (const auto& [transition, us] : predicted) {
      if (us > kNotableShare * evaluation.total_us()) missing_.insert(transition);
    }
    return measured_us;
  }

  // Adds the transitions, the longest first, and what is to be said about others.
  void AddTo(WorkloadComparison* result) {
    for (auto& [transition, compared] : compared_) {
      compared.set_source(transition.first);
      compared.set_destination(transition.second);
      const double cells = static_cast<double>(std::max<int64_t>(1, compared.cells()));
      compared.set_error(compared.error() / cells);
      compared.set_signed_error(compared.signed_error() / cells);
      *result->add_transitions() = compared;
    }
    std::stable_sort(
        result->mutable_transitions()->begin(), result->mutable_transitions()->end(),
        [](const auto& a, const auto& b) { return a.measured_us() > b.measured_us(); });
    for (const auto& [source, destination] : unknown_) {
      result->add_notes(absl::StrCat("there is no model from callsite ", source, " to ",
                                     destination, ": its time is missing in what is predicted"));
    }
    for (const auto& [source, destination] : missing_) {
      result->add_notes(
          absl::StrCat("from callsite ", source, " to ", destination,
                       " nothing was measured in some run, where the model has time"));
    }
  }

 private:
  static void AddTimes(double measured, double predicted, ComparedTransition* compared) {
    compared->set_measured_us(compared->measured_us() + measured);
    compared->set_predicted_us(compared->predicted_us() + predicted);
    if (!(measured > 0)) return;
    const double error = predicted / measured - 1;
    compared->set_error(compared->error() + std::abs(error));
    compared->set_signed_error(compared->signed_error() + error);
    compared->set_cells(compared->cells() + 1);
  }

  // Errors are sums over cells until all are there.
  std::map<Transition, ComparedTransition> compared_;
  // Transitions without a model, and those of the model that were not measured.
  std::set<Transition> unknown_, missing_;
};

}  // namespace

std::string KindText(const CellKind& kind) {
  return absl::StrCat(kind.threads, kind.threads == 1 ? " thread" : " threads",
                      kind.ranks_per_machine > 1
                          ? absl::StrCat(" of each of ", kind.ranks_per_machine, " ranks per node")
                          : "");
}

CellValue PredictCall(const CallModel& call, const WorkloadCell& cell) {
  CellValue value;
  value.count = EvaluateModel(call.count(), cell);
  value.first = EvaluateModel(call.first(), cell);
  value.steady = EvaluateModel(call.value(), cell);
  return value;
}

double DoublingsOutside(const WorkloadCell& cell, const FittedKind& kind) {
  const auto outside = [](double at, double least, double most) {
    return std::max({0.0, at - most, least - at});
  };
  const auto log_size = [&](double size) {
    return kind.linear_size() ? std::log2(std::max(size, kLeastLinearSize)) : size;
  };
  return outside(std::log2(cell.machines), std::log2(kind.least_nodes()),
                 std::log2(kind.most_nodes())) +
         outside(log_size(cell.size), log_size(kind.least_size()), log_size(kind.most_size()));
}

absl::Status CheckAskedCell(const WorkloadCell& cell) {
  if (!(cell.machines >= 1 && cell.machines <= kMaxMachines)) {
    return InvalidArgument("--nodes is no number of nodes; expected e.g. --nodes=64");
  }
  if (!(cell.size >= 0 && cell.size <= kMaxSize)) {
    return InvalidArgument("--size is no size of a problem; expected e.g. --size=24");
  }
  if (cell.kind.threads < 1 || cell.kind.ranks_per_machine < 1) {
    return InvalidArgument("--threads and --ranks_per_node are at least 1");
  }
  return absl::OkStatus();
}

absl::StatusOr<double> FiniteValue(const CallModel& call, const Model& model,
                                   const WorkloadCell& cell) {
  const double value = EvaluateModel(model, cell);
  if (std::isfinite(value)) return value;
  return NoFiniteNumber(call, model, cell);
}

absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell) {
  WorkloadEvaluation result = EvaluationOf(cell);
  result.set_ranks_per_node(cell.kind.ranks_per_machine);
  double deviation_of_kind = 0;
  ASSIGN_OR_RETURN(const std::vector<PredictedCall> calls,
                   PredictCalls(model, cell, &deviation_of_kind, &result));
  const std::string slowest = AddTransitions(calls, &result);
  for (const CallModel& call : model.messages()) {
    const CellKind kind = KindOf(call);
    if (!kind.Answers(cell.kind)) continue;
    ASSIGN_OR_RETURN(const double bytes, FiniteValue(call, call.value(), cell));
    AddMessage(call, bytes, &result).set_rank_class(kind.rank_class);
  }
  if (calls.empty() && result.messages_size() == 0) return UnknownKind(model, cell.kind);
  AddIterations(model, slowest, calls, cell, &result);
  const FittedKind& kind = NearestKind(model, cell.kind, slowest);
  const double outside = DoublingsOutside(cell, kind);
  const double deviation =
      std::hypot(kind.log_deviation(), kind.log_deviation_beyond() * outside, deviation_of_kind);
  result.set_low_us(result.total_us() * std::exp(-kDeviations * deviation));
  result.set_high_us(result.total_us() * std::exp(kDeviations * deviation));
  const std::string measured =
      absl::StrFormat("%g to %g nodes and sizes %g to %g were measured", kind.least_nodes(),
                      kind.most_nodes(), kind.least_size(), kind.most_size());
  if (!(result.high_us() <= kMaxTotalUs)) {
    return InvalidArgument(
        absl::StrFormat("%g nodes and size %g lie too far from what is known for a prediction that "
                        "means anything: %s",
                        cell.machines, cell.size, measured));
  }
  result.set_extrapolated(outside > 0);
  if (outside > 0) result.add_notes(absl::StrCat("extrapolated: ", measured));
  return result;
}

absl::StatusOr<WorkloadEvaluation> EvaluateModelFile(const std::vector<CallModel>& models,
                                                     const WorkloadCell& cell, bool as_ember) {
  constexpr double kNsPerUs = 1000;
  WorkloadEvaluation result = EvaluationOf(cell);
  double total = 0;
  for (const CallModel& call : models) {
    if (call.threads() != cell.kind.threads) continue;
    const double scale = as_ember && call.has_destination() ? kNsPerUs : 1;
    ASSIGN_OR_RETURN(const double scaled, as_ember ? EmberValue(call.value(), scale, cell)
                                                   : FiniteValue(call, call.value(), cell));
    if (!call.has_destination()) {
      AddMessage(call, scaled, &result);
      continue;
    }
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.source());
    transition.set_destination(call.destination());
    transition.set_count(1);
    transition.set_type(call.value().type());
    transition.set_us(scaled / scale);
    total += transition.us();
  }
  if (result.transitions_size() == 0 && result.messages_size() == 0) {
    return NotFound("there is no model of ", cell.kind.threads, " threads in --model");
  }
  if (!std::isfinite(total)) {
    return InvalidArgument("the sum of all transitions is no finite number for ", cell.machines,
                           " nodes and size ", cell.size);
  }
  result.set_total_us(total);
  result.set_low_us(total);
  result.set_high_us(total);
  if (result.transitions_size() > 0) {
    result.add_notes(
        "the file has no counts: the total is that of each transition once, and has no interval");
  }
  return result;
}

absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements) {
  WorkloadComparison result;
  TransitionComparison transitions;
  double errors = 0;
  for (const WorkloadCell& cell : measurements.cells) {
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
    const double measured_us = transitions.Add(measurements, cell, evaluation);
    if (!(measured_us > 0)) continue;
    ComparedCell& compared = *result.add_cells();
    compared.set_nodes(cell.machines);
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
    return InvalidArgument("there is nothing to compare with: no time was measured");
  }
  result.set_mean_error(errors / result.cells_size());
  transitions.AddTo(&result);
  return result;
}

}  // namespace meridian
