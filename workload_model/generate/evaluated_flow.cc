#include "workload_model/generate/evaluated_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "workload_model/calls/control_flow.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/measurements/rank_classes.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// A computation longer than 11 days, or a message of more than a terabyte, is taken for that.
constexpr double kMaxComputeUs = 1e12;
constexpr double kMaxBytes = 1e12;

int64_t Nanoseconds(double us) {
  return std::llround(kNsPerUs * std::clamp(us, 0.0, kMaxComputeUs));
}

// Visits are not negative, so that of a finite sum all are finite.
absl::Status CheckFinite(const ControlFlow& flow, const WorkloadCell& cell) {
  double iterations = 0;
  if (flow.has_iterations()) iterations = EvaluateModel(flow.iterations(), cell);
  if (!std::isfinite(iterations)) {
    return InvalidArgument("the number of iterations is no finite number for ",
                           PlainNumber(cell.machines), " ranks and size ", PlainNumber(cell.size));
  }
  for (const FlowBranch& branch : flow.branches()) {
    double visits = 0;
    for (const FlowSegment& segment : branch.segments()) {
      if (segment.has_visits()) visits += EvaluateModel(segment.visits(), cell);
    }
    if (std::isfinite(visits)) continue;
    return InvalidArgument("how the control flow goes on at callsite ", branch.callsite(),
                           " is no finite number for ", PlainNumber(cell.machines),
                           " ranks and size ", PlainNumber(cell.size));
  }
  return absl::OkStatus();
}

// FailedPrecondition for a callsite whose groups or peers are not known for so many ranks.
absl::Status CheckCallsite(const CallsiteModel& callsite, double ranks) {
  const std::string name =
      absl::StrCat("callsite ", callsite.callsite(), " (", Printable(callsite.operation()), ")");
  if (!callsite.unexplained().empty()) {
    return FailedPrecondition(name, " cannot be generated: ", Printable(callsite.unexplained()));
  }
  const bool is_other_number =
      callsite.measured_ranks() != 0 && static_cast<double>(callsite.measured_ranks()) != ranks;
  const bool is_of_all = callsite.length() == "n" || callsite.length().empty();
  if (!is_other_number || (is_of_all && !callsite.has_peer())) return absl::OkStatus();
  return FailedPrecondition(name, " was measured on ", callsite.measured_ranks(),
                            " ranks only: how its ", callsite.has_peer() ? "peers" : "groups",
                            " change with their number is not known; measure another number, or "
                            "rewrite the job with workload_model scale");
}

// Returns the flow of a class. FailedPrecondition when there is none.
absl::StatusOr<const ControlFlow*> FlowOf(const WorkloadModel& model,
                                          absl::string_view rank_class) {
  for (const ControlFlow& flow : model.flows()) {
    if (flow.rank_class() == rank_class) return &flow;
  }
  return FailedPrecondition(
      model.flows_size() == 0
          ? "the model has no control flow: trace models do not say in which order calls come, and "
            "of ranks that call otherwise by no rule nothing was learnt (the notes of fit say so)"
          : absl::StrCat("ranks '", Printable(rank_class), "' were never measured"));
}

// A rank makes at most so many calls.
constexpr int64_t kMaxCalls = 5000000;

}  // namespace

absl::StatusOr<const CallsiteModel*> EvaluatedFlow::CallsiteOf(int64_t callsite) const {
  const auto found = callsites.find(callsite);
  if (found != callsites.end()) return found->second;
  return FailedPrecondition("the model does not say what callsite ", callsite, " does");
}

EvaluatedFlow::Times EvaluatedFlow::TimesOf(const Transition& transition) const {
  const auto found = times.find(transition);
  return found == times.end() ? Times() : found->second;
}

int64_t EvaluatedFlow::BytesOf(int64_t callsite) const {
  const auto found = bytes.find(callsite);
  return found == bytes.end() ? 0 : found->second;
}

absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell) {
  cell.kind.rank_class = flow.rank_class();
  EvaluatedFlow result;
  result.flow = &flow;
  result.cell_of_ranks = cell.InRanks();
  RETURN_IF_ERROR(CheckFinite(flow, result.cell_of_ranks));
  for (const CallsiteModel& callsite : flow.callsites()) {
    RETURN_IF_ERROR(CheckCallsite(callsite, cell.Ranks()));
    result.callsites[callsite.callsite()] = &callsite;
  }
  for (const CallModel& call : model.models()) {
    if (!(KindOf(call) == cell.kind)) continue;
    ASSIGN_OR_RETURN(const double value, FiniteValue(call, call.value(), cell));
    ASSIGN_OR_RETURN(const double first, FiniteValue(call, call.first(), cell));
    // What a call does that no network sees is computation.
    const auto destination = result.callsites.find(call.destination());
    const bool is_local =
        destination != result.callsites.end() &&
        OperationOf(destination->second->operation()).kind == CallOperation::Kind::kLocal;
    double compute = value;
    if (call.has_compute() && !is_local) {
      ASSIGN_OR_RETURN(compute, FiniteValue(call, call.compute(), cell));
    }
    const double call_us = std::max(0.0, value - compute);
    result.times[{call.source(), call.destination()}] = {Nanoseconds(first - call_us),
                                                         Nanoseconds(compute), call.drift()};
    result.has_call_times &= call.has_compute();
    // A callsite that is reached from several takes what it takes from the last.
    result.call_ns[call.destination()] = Nanoseconds(call_us);
  }
  if (result.times.empty()) {
    return NotFound("there is no model of ", cell.kind.threads, " threads and ",
                    cell.kind.ranks_per_machine, " ranks per node for ranks '",
                    Printable(cell.kind.rank_class), "'");
  }
  for (const CallModel& call : model.messages()) {
    if (!(KindOf(call) == cell.kind)) continue;
    ASSIGN_OR_RETURN(const double bytes, FiniteValue(call, call.value(), cell));
    result.bytes[call.source()] = std::llround(std::clamp(bytes, 0.0, kMaxBytes));
  }
  return result;
}

absl::StatusOr<EvaluatedRanks> EvaluateRanks(const WorkloadModel& model, const WorkloadCell& cell,
                                             int64_t most_ranks) {
  if (cell.Ranks() != std::floor(cell.Ranks()) || cell.Ranks() > static_cast<double>(most_ranks)) {
    return InvalidArgument("--nodes makes ", cell.Ranks(), " ranks; expected a whole number up to ",
                           most_ranks);
  }
  const auto ranks = static_cast<int64_t>(cell.Ranks());
  EvaluatedRanks result;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::optional<std::string> name = RankClassOf(model.rank_classes(), rank, ranks);
    if (!name.has_value()) {
      const double root = std::round(std::sqrt(cell.Ranks()));
      return FailedPrecondition("ranks of this code are a square: ", ranks, " ranks are none; try ",
                                std::llround(root * root));
    }
    const auto known = std::find(result.classes.begin(), result.classes.end(), *name);
    result.class_of.push_back(static_cast<size_t>(known - result.classes.begin()));
    if (known != result.classes.end()) continue;
    ASSIGN_OR_RETURN(const ControlFlow* flow, FlowOf(model, *name));
    ASSIGN_OR_RETURN(EvaluatedFlow evaluated, EvaluateFlow(model, *flow, cell));
    result.classes.push_back(*name);
    result.flows.push_back(std::move(evaluated));
  }
  return result;
}

double ClassCalls::ComputeUs() const {
  double sum = 0;
  for (const Visit& visit : visits) sum += static_cast<double>(visit.compute_ns) / kNsPerUs;
  return sum;
}

absl::StatusOr<ClassCalls> WalkClass(EvaluatedFlow evaluated) {
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> path,
      WalkControlFlow(*evaluated.flow, evaluated.cell_of_ranks, kBranchSeed, kMaxCalls));
  ClassCalls result;
  std::map<int64_t, std::vector<int64_t>> numbers;
  // How often each transition comes, and how often it has come so far.
  std::map<Transition, double> counts, seen;
  int64_t source = evaluated.flow->start();
  for (const int64_t callsite : path) ++counts[{std::exchange(source, callsite), callsite}];
  source = evaluated.flow->start();
  for (size_t i = 0; i < path.size(); ++i) {
    Visit& visit = result.visits.emplace_back();
    ASSIGN_OR_RETURN(visit.callsite, evaluated.CallsiteOf(path[i]));
    visit.operation = OperationOf(visit.callsite->operation());
    visit.bytes = evaluated.BytesOf(path[i]);
    if (visit.callsite->peer().by_visit() != 0) {
      std::vector<int64_t>& of_callsite = numbers[path[i]];
      if (of_callsite.empty()) {
        of_callsite = VisitsSince(path, path[i], visit.callsite->peer().since());
      }
      visit.number = of_callsite[i];
    }
    const EvaluatedFlow::Times times = evaluated.TimesOf({source, path[i]});
    const double number = ++seen[{source, path[i]}];
    visit.compute_ns = number == 1 ? times.first_ns : times.steady_ns;
    if (number > 1 && times.drift != 0) {
      // From 0 at the beginning to 1 at the end, in the middle of each; the mean stays.
      const double place = (number - 1.5) / (counts[{source, path[i]}] - 1);
      visit.compute_ns =
          std::llround(static_cast<double>(times.steady_ns) * (1 + times.drift * (place - 0.5)));
    }
    source = path[i];
  }
  result.evaluated = std::move(evaluated);
  return result;
}

}  // namespace meridian
