#include "workload_model/calls/evaluation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Nine tenths of a normal distribution lie within so many deviations.
constexpr double kDeviations = 1.645;
// A size of 0 is no number of doublings away from others.
constexpr double kLeastLinearSize = 1e-3;
// 30,000 years.
constexpr double kMaxTotalUs = 1e18;

absl::Status UnknownKind(const WorkloadModel& model, const CellKind& asked) {
  std::set<std::string> known;
  for (const CallModel& call : model.models()) known.insert(KindText(KindOf(call)));
  return NotFound("there is no model of ", KindText(asked), "; there are those of ",
                  absl::StrJoin(known, ", "));
}

absl::Status NoFiniteNumber(const CallModel& call, const Model& model, const WorkloadCell& cell) {
  return InvalidArgument("the model of type ", model.type(), " of callsite ", call.source(),
                         call.has_destination() ? absl::StrCat(" to ", call.destination()) : "",
                         " is no finite number for ", NodesText(cell.machines), " and size ",
                         PlainNumber(cell.size));
}

EvaluatedMessage& AddMessage(const CallModel& call, double bytes, WorkloadEvaluation* result) {
  EvaluatedMessage& message = *result->add_messages();
  message.set_callsite(call.source());
  message.set_type(call.value().type());
  message.set_bytes(bytes);
  return message;
}

WorkloadEvaluation EvaluationOf(const WorkloadCell& cell) {
  WorkloadEvaluation result;
  result.set_nodes(cell.machines);
  result.set_size(cell.size);
  result.set_threads(cell.kind.threads);
  return result;
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

// What one class of ranks does in a cell.
using PredictedCalls = std::map<Transition, CellValue>;

// Returns the callsites of the main loop: those that can come after its head.
std::set<int64_t> LoopOf(int64_t head, const PredictedCalls& calls) {
  std::set<int64_t> loop = {head};
  std::vector<int64_t> open = {head};
  while (!open.empty()) {
    const int64_t source = open.back();
    open.pop_back();
    for (auto it = calls.lower_bound({source, 0}); it != calls.end(); ++it) {
      const auto& [transition, value] = *it;
      if (transition.first != source) break;
      if (value.count > 0 && loop.insert(transition.second).second) {
        open.push_back(transition.second);
      }
    }
  }
  return loop;
}

// Each iteration comes to the loop's head and to its last callsite, and to one of them only once. What
// comes to a callsite from itself is a loop of its own within, unless that is all of the iteration.
double IterationsOf(const ControlFlow& flow, const PredictedCalls& calls) {
  const auto entries = [&](int64_t callsite) {
    double count = flow.start() == 0 && flow.first() == callsite ? 1 : 0;
    for (const auto& [transition, value] : calls) {
      const bool is_within = transition.first == callsite && flow.head() != flow.last();
      if (transition.second == callsite && !is_within) count += value.count;
    }
    return count;
  };
  return std::min(entries(flow.head()), entries(flow.last()));
}

// How many iterations the slowest class makes, what one takes, and what comes before the first.
void AddIterations(const WorkloadModel& model, const std::string& rank_class,
                   const WorkloadCell& cell, WorkloadEvaluation* evaluation) {
  PredictedCalls calls;
  for (const CallModel& call : model.models()) {
    const CellKind kind = KindOf(call);
    if (!kind.Answers(cell.kind) || kind.rank_class != rank_class) continue;
    calls[{call.source(), call.destination()}] = PredictCall(call, cell);
  }
  for (const ControlFlow& flow : model.flows()) {
    if (flow.rank_class() != rank_class || flow.head() == 0) continue;
    const double iterations = IterationsOf(flow, calls);
    if (iterations < 1.5) continue;
    const std::set<int64_t> loop = LoopOf(flow.head(), calls);
    double before = 0, all = 0, steady = 0;
    for (const auto& [transition, value] : calls) {
      if (loop.count(transition.first) == 0) {
        before += value.Sum();
        continue;
      }
      all += value.Sum();
      steady += value.count * value.steady;
      // The first iteration is not come back to; as it is for the others.
      const bool is_back = transition == Transition(flow.last(), flow.head());
      if (is_back && flow.start() != flow.last()) steady += value.steady;
    }
    evaluation->set_iterations(iterations);
    evaluation->set_iteration_us(std::min(steady, all) / iterations);
    evaluation->set_before_us(before);
  }
}

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
  std::map<std::string, double> totals;
  for (const CallModel& call : model.models()) {
    const CellKind kind = KindOf(call);
    if (!kind.Answers(cell.kind)) continue;
    const CellValue value = PredictCall(call, cell);
    if (!std::isfinite(value.Sum())) return NoFiniteNumber(call, call.value(), cell);
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.source());
    transition.set_destination(call.destination());
    transition.set_type(call.value().type());
    transition.set_rank_class(kind.rank_class);
    transition.set_count(value.count);
    transition.set_us(value.count > 0 ? value.Sum() / value.count : 0);
    totals[kind.rank_class] += value.Sum();
  }
  // The class of ranks that takes longest, for which the others wait.
  std::string slowest;
  for (const auto& [name, total] : totals) {
    if (total < result.total_us()) continue;
    result.set_total_us(total);
    slowest = name;
  }
  for (const CallModel& call : model.messages()) {
    const CellKind kind = KindOf(call);
    if (!kind.Answers(cell.kind)) continue;
    ASSIGN_OR_RETURN(const double bytes, FiniteValue(call, call.value(), cell));
    AddMessage(call, bytes, &result).set_rank_class(kind.rank_class);
  }
  if (totals.empty() && result.messages_size() == 0) return UnknownKind(model, cell.kind);
  AddIterations(model, slowest, cell, &result);
  const FittedKind& kind = NearestKind(model, cell.kind, slowest);
  const double outside = DoublingsOutside(cell, kind);
  const double deviation = std::hypot(kind.log_deviation(), kind.log_deviation_beyond() * outside);
  result.set_low_us(result.total_us() * std::exp(-kDeviations * deviation));
  result.set_high_us(result.total_us() * std::exp(kDeviations * deviation));
  const std::string measured = absl::StrCat(
      PlainNumber(kind.least_nodes()), " to ", NodesText(kind.most_nodes()), " and sizes ",
      PlainNumber(kind.least_size()), " to ", PlainNumber(kind.most_size()), " were measured");
  if (!(result.high_us() <= kMaxTotalUs)) {
    return InvalidArgument(
        NodesText(cell.machines), " and size ", PlainNumber(cell.size),
        " lie too far from what is known for a prediction that means anything: ", measured);
  }
  result.set_extrapolated(outside > 0);
  if (outside > 0) result.add_notes(absl::StrCat("extrapolated: ", measured));
  return result;
}

absl::StatusOr<WorkloadEvaluation> EvaluateModelFile(const std::vector<CallModel>& models,
                                                     const WorkloadCell& cell, bool as_ember) {
  constexpr double kNsPerUs = 1000;
  WorkloadEvaluation result = EvaluationOf(cell);
  // Rows of all ranks come first in a file; those of a class take the places of some.
  std::map<Transition, double> of_all;
  double sum_of_all = 0;
  std::map<std::string, double> classes;
  for (const CallModel& call : models) {
    if (call.threads() != cell.kind.threads) continue;
    const double scale = as_ember && call.has_destination() ? kNsPerUs : 1;
    // The motif simulates the call at the end of a way.
    const Model& model = as_ember && call.has_compute() ? call.compute() : call.value();
    ASSIGN_OR_RETURN(const double scaled,
                     as_ember ? EmberValue(model, scale, cell) : FiniteValue(call, model, cell));
    if (!call.has_destination()) {
      AddMessage(call, scaled, &result).set_rank_class(call.rank_class());
      continue;
    }
    EvaluatedTransition& transition = *result.add_transitions();
    transition.set_source(call.source());
    transition.set_destination(call.destination());
    transition.set_count(1);
    transition.set_type(model.type());
    transition.set_rank_class(call.rank_class());
    transition.set_us(scaled / scale);
    const Transition key(call.source(), call.destination());
    if (call.rank_class().empty()) {
      of_all[key] = transition.us();
      sum_of_all += transition.us();
    } else {
      const auto replaced = of_all.find(key);
      classes[call.rank_class()] +=
          transition.us() - (replaced == of_all.end() ? 0 : replaced->second);
    }
  }
  double total = classes.empty() ? sum_of_all : 0;
  for (const auto& [name, more] : classes) total = std::max(total, sum_of_all + more);
  if (result.transitions_size() == 0 && result.messages_size() == 0) {
    return NotFound("there is no model of ", cell.kind.threads, " threads in --model");
  }
  if (!std::isfinite(total)) {
    return InvalidArgument("the sum of all transitions is no finite number for ",
                           NodesText(cell.machines), " and size ", PlainNumber(cell.size));
  }
  result.set_total_us(total);
  result.set_low_us(total);
  result.set_high_us(total);
  if (result.transitions_size() > 0) {
    result.add_notes(
        "the file has no counts: the total is that of each transition once, of the ranks that take "
        "longest, and has no interval");
  }
  return result;
}

absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements) {
  WorkloadComparison result;
  std::map<Transition, ComparedTransition> transitions;
  double errors = 0;
  for (const WorkloadCell& cell : measurements.cells) {
    ASSIGN_OR_RETURN(const WorkloadEvaluation evaluation, EvaluateWorkload(model, cell));
    double measured_us = 0;
    for (const auto& [transition, values] : measurements.times) {
      const auto value = values.find(cell);
      if (value == values.end()) continue;
      measured_us += value->second.Sum();
      ComparedTransition& compared = transitions[transition];
      compared.set_measured_us(compared.measured_us() + value->second.Sum());
    }
    for (const EvaluatedTransition& t : evaluation.transitions()) {
      ComparedTransition& compared = transitions[{t.source(), t.destination()}];
      compared.set_predicted_us(compared.predicted_us() + t.count() * t.us());
    }
    if (!(measured_us > 0)) continue;
    ComparedCell& compared = *result.add_cells();
    compared.set_nodes(cell.machines);
    compared.set_size(cell.size);
    compared.set_threads(cell.kind.threads);
    compared.set_rank_class(cell.kind.rank_class);
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
  for (auto& [transition, compared] : transitions) {
    compared.set_source(transition.first);
    compared.set_destination(transition.second);
    *result.add_transitions() = compared;
  }
  absl::c_stable_sort(*result.mutable_transitions(), [](const auto& a, const auto& b) {
    return a.measured_us() > b.measured_us();
  });
  return result;
}

}  // namespace meridian
