#include "workload_model/evaluated_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "workload_model/control_flow.h"
#include "workload_model/workload.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

constexpr double kMaxComputeUs = 1e12;
constexpr double kMaxBytes = 1e12;

int64_t Nanoseconds(double us) {
  return std::llround(kNsPerUs * std::clamp(us, 0.0, kMaxComputeUs));
}

bool IsOfKind(const CallModel& call, const CellKind& kind) {
  return call.threads() == kind.threads &&
         std::max<int64_t>(1, call.ranks_per_node()) == kind.ranks_per_node &&
         (call.rank_class() == kind.rank_class ||
          (call.rank_class().empty() && kind.rank_class == "all"));
}

// Shares and visits are not negative, so that of a finite sum all are finite.
absl::Status CheckFinite(const ControlFlow& flow, const WorkloadCell& cell) {
  double iterations = 0;
  if (flow.has_iterations()) iterations = EvaluateModel(flow.iterations(), cell);
  if (!std::isfinite(iterations)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of iterations is no finite number for ", cell.nodes,
                     " ranks and size ", cell.size));
  }
  for (const FlowBranch& branch : flow.branches()) {
    double visits = 0;
    bool is_finite = true;
    for (const FlowSegment& segment : branch.segments()) {
      if (segment.has_visits()) visits += EvaluateModel(segment.visits(), cell);
      double shares = 0;
      for (const FlowChoice& choice : segment.choices()) {
        if (choice.has_share()) shares += EvaluateModel(choice.share(), cell);
      }
      is_finite = is_finite && std::isfinite(visits) && std::isfinite(shares);
    }
    if (is_finite) continue;
    return absl::InvalidArgumentError(absl::StrCat("how the control flow goes on at callsite ",
                                                   branch.callsite(), " is no finite number for ",
                                                   cell.nodes, " ranks and size ", cell.size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell) {
  cell.kind.rank_class = flow.rank_class();
  RETURN_IF_ERROR(CheckFinite(flow, CellOfRanks(cell)));
  EvaluatedFlow result;
  for (const CallsiteModel& callsite : flow.callsites()) {
    if (!callsite.unexplained().empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("callsite ", callsite.callsite(), " (", Printable(callsite.operation()),
                       ") can not be generated: ", Printable(callsite.unexplained())));
    }
    const bool is_other_number = callsite.measured_ranks() != 0 &&
                                 static_cast<double>(callsite.measured_ranks()) != cell.Ranks();
    const bool is_of_all = callsite.length() == "n" || callsite.length().empty();
    if (is_other_number && (!is_of_all || callsite.has_peer())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "callsite ", callsite.callsite(), " (", Printable(callsite.operation()),
          ") was measured on ", callsite.measured_ranks(), " ranks only: how its ",
          callsite.has_peer() ? "peers" : "groups",
          " change with their number is not known; measure another number, or rewrite the job with "
          "workload_model scale"));
    }
    result.callsites[callsite.callsite()] = &callsite;
  }
  for (const CallModel& call : model.models()) {
    if (!IsOfKind(call, cell.kind)) continue;
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
                                                         Nanoseconds(compute)};
    result.has_call_times &= call.has_compute();
    // A callsite that is reached from several takes what it takes from the last.
    result.call_ns[call.destination()] = Nanoseconds(call_us);
  }
  if (result.times.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "there is no model of ", cell.kind.threads, " threads and ", cell.kind.ranks_per_node,
        " ranks per node for ranks '", Printable(cell.kind.rank_class), "'"));
  }
  for (const CallModel& call : model.messages()) {
    if (!IsOfKind(call, cell.kind)) continue;
    ASSIGN_OR_RETURN(const double bytes, FiniteValue(call, call.value(), cell));
    result.bytes[call.source()] = std::llround(std::clamp(bytes, 0.0, kMaxBytes));
  }
  return result;
}

absl::StatusOr<const ControlFlow*> FlowOf(const WorkloadModel& model,
                                          absl::string_view rank_class) {
  for (const ControlFlow& flow : model.flows()) {
    if (flow.rank_class() == rank_class) return &flow;
  }
  return absl::FailedPreconditionError(
      model.flows_size() == 0
          ? "the model has no control flow: trace models do not say in which order calls come, and "
            "of ranks that call otherwise by no rule nothing was learnt (the notes of fit say so)"
          : absl::StrCat("ranks '", Printable(rank_class), "' were never measured"));
}

}  // namespace meridian
