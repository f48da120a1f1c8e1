#include "workload_model/evaluated_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell) {
  cell.kind.rank_class = flow.rank_class();
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
    const double value = EvaluateModel(call.value(), cell);
    // What a call does that no network sees is computation.
    const auto destination = result.callsites.find(call.destination());
    const bool is_local =
        destination != result.callsites.end() &&
        OperationOf(destination->second->operation()).kind == CallOperation::Kind::kLocal;
    const double compute =
        call.has_compute() && !is_local ? EvaluateModel(call.compute(), cell) : value;
    const double call_us = std::max(0.0, value - compute);
    result.times[{call.source(), call.destination()}] = {
        Nanoseconds(EvaluateModel(call.first(), cell) - call_us), Nanoseconds(compute)};
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
    result.bytes[call.source()] =
        std::llround(std::clamp(EvaluateModel(call.value(), cell), 0.0, kMaxBytes));
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
