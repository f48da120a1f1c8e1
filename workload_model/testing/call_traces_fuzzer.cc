// Any bytes as traces and reports of mpiP, as a table of cells and as model files.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/call_traces.h"
#include "workload_model/measurements.h"
#include "workload_model/model_files.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<std::vector<TracedCall>> calls = ParseCallTrace(bytes, "fuzz.txt");
  const absl::StatusOr<std::vector<Callsite>> callsites = ParseCallsites(bytes, "fuzz.txt");
  if (calls.ok() && callsites.ok()) CheckCallsites(*calls, *callsites, "fuzz.txt").IgnoreError();
  ParseCallTimes(bytes, "fuzz.txt").IgnoreError();
  ParseCells(bytes, "fuzz.txt").IgnoreError();
  const absl::StatusOr<RunMeasurements> run = ParseMeasurements(bytes, "fuzz.txt", RunName());
  if (run.ok()) Aggregate({*run});
  const absl::StatusOr<std::vector<CallModel>> models = ParseModelFile(bytes, "fuzz.txt");
  if (!models.ok()) return absl::OkStatus();
  for (const absl::StatusOr<std::string>& text :
       {FormatTypedModels(*models), FormatPolynomialTable(*models)}) {
    if (!text.ok()) continue;
    const absl::StatusOr<std::vector<CallModel>> again = ParseModelFile(*text, "again.txt");
    if (!again.ok()) return again.status();
    if (again->size() != models->size()) return absl::InternalError("models were lost");
  }
  return absl::OkStatus();
}
