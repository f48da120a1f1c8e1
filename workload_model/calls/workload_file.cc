#include "workload_model/calls/workload_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "workload_model/calls/control_flow.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/measurements/model_files.h"
#include "workload_model/measurements/rank_classes.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Messages go no farther than this, in ranks.
constexpr int64_t kMaxStep = 1000000000;

absl::Status CallsiteError(int64_t callsite, absl::string_view what) {
  return InvalidArgument("callsite ", callsite, what);
}

// Messages have a value only, and computation is not always known.
absl::Status CheckCall(const CallModel& call) {
  std::vector<const Model*> parts = {&call.value()};
  if (call.has_destination() || call.has_first()) parts.push_back(&call.first());
  if (call.has_destination() || call.has_count()) parts.push_back(&call.count());
  if (call.has_compute()) parts.push_back(&call.compute());
  for (const Model* part : parts) {
    const absl::Status valid = CheckModel(*part);
    if (!valid.ok()) return CallsiteError(call.source(), absl::StrCat(": ", valid.message()));
  }
  if (!(std::abs(call.drift()) <= kMaxDrift)) {
    return CallsiteError(call.source(), " drifts by more than its time");
  }
  return absl::OkStatus();
}

absl::Status CheckCalls(const WorkloadModel& model) {
  std::set<std::tuple<bool, int64_t, int64_t, CellKind>> seen;
  for (const auto* calls : {&model.models(), &model.messages()}) {
    const bool is_time = calls == &model.models();
    for (const CallModel& call : *calls) {
      RETURN_IF_ERROR(CheckCall(call));
      if (call.threads() < 1 || is_time != call.has_destination() ||
          !seen.insert({is_time, call.source(), call.destination(), KindOf(call)}).second) {
        return CallsiteError(call.source(),
                             " has no threads, or no destination, or is there twice");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFlow(const ControlFlow& flow) {
  RETURN_IF_ERROR(CheckControlFlow(flow));
  std::set<int64_t> callsites;
  for (const CallsiteModel& callsite : flow.callsites()) {
    const PeerRule& rule = callsite.peer();
    const auto is_step = [](int64_t step) { return step >= -kMaxStep && step <= kMaxStep; };
    if (!is_step(rule.step()) || !is_step(rule.by_visit())) {
      return CallsiteError(callsite.callsite(), " sends farther than there are ranks");
    }
    if (!callsites.insert(callsite.callsite()).second) {
      return CallsiteError(callsite.callsite(), " is there twice");
    }
  }
  return absl::OkStatus();
}

bool IsSound(const FittedKind& kind) {
  const auto is_deviation = [](double number) { return number > 0 && number < 100; };
  return kind.least_nodes() >= 1 && kind.most_nodes() >= kind.least_nodes() &&
         kind.most_nodes() <= kMaxMachines && kind.least_size() >= 0 &&
         kind.most_size() >= kind.least_size() && kind.most_size() <= kMaxSize &&
         is_deviation(kind.log_deviation()) && is_deviation(kind.log_deviation_beyond());
}

absl::Status Check(const WorkloadModel& model) {
  RETURN_IF_ERROR(CheckCalls(model));
  if (!model.rank_classes().empty() && !IsRankRule(model.rank_classes())) {
    return InvalidArgument("'", model.rank_classes(), "' is no rule of rank classes");
  }
  for (const ControlFlow& flow : model.flows()) RETURN_IF_ERROR(CheckFlow(flow));
  if (model.kinds_size() > 0 && std::all_of(model.kinds().begin(), model.kinds().end(), IsSound)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "what was measured, or how far predictions are off, is missing or cannot be; write it anew "
      "with workload_model fit");
}

}  // namespace

absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source) {
  if (IsModelFile(json)) {
    return InvalidArgument(Printable(source),
                           ": a model file of the Ember motif has neither counts nor control flow; "
                           "give one that workload_model fit has written");
  }
  WorkloadModel model;
  const absl::Status status = ReportFromJson(json, &model);
  if (!status.ok() || model.format() != kWorkloadModelFormat) {
    return InvalidArgument(Printable(source), ": this is no model of workload_model fit (",
                           status.ok() ? "its format is another" : status.message(), ")");
  }
  const absl::Status valid = Check(model);
  if (valid.ok()) return model;
  return InvalidArgument(Printable(source), ": ", Printable(valid.message()));
}

absl::StatusOr<std::string> WorkloadModelText(const WorkloadModel& model, absl::string_view path) {
  if (!absl::EndsWith(path, ".model")) return ReportToJson(model);
  return FormatModelFile(std::vector<CallModel>(model.models().begin(), model.models().end()));
}

absl::StatusOr<WorkloadEvaluation> EvaluateFile(absl::string_view text, const std::string& source,
                                                const WorkloadCell& cell, bool as_ember) {
  if (IsModelFile(text)) {
    ASSIGN_OR_RETURN(const std::vector<CallModel> models, ParseModelFile(text, source));
    return EvaluateModelFile(models, cell, as_ember);
  }
  if (as_ember) {
    return InvalidArgument(
        "--ember_compatible evaluates model files of the Ember motif; --model is another");
  }
  ASSIGN_OR_RETURN(const WorkloadModel model, ParseWorkloadModel(text, source));
  return EvaluateWorkload(model, cell);
}

}  // namespace meridian
