// Any bytes as a log of NCCL Inspector, and as the Kineto trace made of it.
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/nccl_logs/nccl_logs.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<InspectorLog> log = ParseInspectorLog(bytes, "fuzz.log");
  if (!log.ok()) return absl::OkStatus();
  for (const bool durations_suffice : {false, true}) {
    InspectorToKineto(
        {*log}, {durations_suffice},
        [](size_t, const std::string&, absl::string_view) { return absl::OkStatus(); })
        .IgnoreError();
  }
  return absl::OkStatus();
}
