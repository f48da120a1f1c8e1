// Any bytes as the model of a workload: one that is accepted can be evaluated, its control flows to
// times that are none or not negative, and is written so that it is read back.
#include <string>

#include "absl/status/statusor.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<WorkloadModel> model = ParseWorkloadModel(bytes, "fuzz.json");
  if (!model.ok()) return absl::OkStatus();
  FormatWorkloadModel(*model);
  WorkloadCell cell;
  EvaluateWorkload(*model, cell).IgnoreError();
  for (const ControlFlow& flow : model->flows()) {
    const absl::StatusOr<EvaluatedFlow> evaluated = EvaluateFlow(*model, flow, cell);
    if (!evaluated.ok()) continue;
    for (const auto& [transition, times] : evaluated->times) {
      if (times.first_ns < 0 || times.steady_ns < 0) {
        return absl::InternalError("a computation takes less than no time");
      }
    }
  }
  const std::string json = ReportToJson(*model);
  const absl::StatusOr<WorkloadModel> again = ParseWorkloadModel(json, "again.json");
  if (!again.ok()) return again.status();
  return ReportToJson(*again) == json ? absl::OkStatus()
                                      : absl::InternalError("the model has changed");
}
