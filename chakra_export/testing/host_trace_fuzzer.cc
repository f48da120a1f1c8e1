// Any bytes as PyTorch's execution trace, and all that can be asked of its operators.
#include "absl/status/statusor.h"
#include "chakra_export/pytorch/host_trace.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<HostTrace> trace = ReadHostTrace(bytes, "fuzz.json");
  if (!trace.ok()) return absl::OkStatus();
  for (HostOpIndex op = 0; op < trace->ops().size(); ++op) {
    trace->IsStructural(op);
    const HostOpDetails details = trace->Details(op);
    TensorsIn(details.inputs.values);
    TensorsIn(details.outputs.values);
    details.ForEachAttribute([](absl::string_view, JsonValue) {});
  }
  return absl::OkStatus();
}
