// Any bytes as traces and reports of mpiP and as model files.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/measurements/call_traces.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/measurements/model_files.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  absl::StatusOr<std::vector<TracedCall>> calls = ParseCallTrace(bytes, "fuzz.txt");
  const absl::StatusOr<std::map<int64_t, Callsite>> callsites = ParseCallsites(bytes, "fuzz.txt");
  if (calls.ok() && callsites.ok()) AddCallTimes(*callsites, "fuzz.txt", &*calls).IgnoreError();
  const absl::StatusOr<RunMeasurements> run = ParseMeasurements(bytes, "fuzz.txt", RunName());
  if (run.ok()) Aggregate({*run});
  const absl::StatusOr<std::vector<CallModel>> models = ParseModelFile(bytes, "fuzz.txt");
  if (!models.ok()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = FormatModelFile(*models);
  if (!text.ok()) return absl::OkStatus();
  const absl::StatusOr<std::vector<CallModel>> again = ParseModelFile(*text, "again.txt");
  if (!again.ok()) return again.status();
  return again->size() == models->size() ? absl::OkStatus()
                                         : absl::InternalError("models were lost");
}
