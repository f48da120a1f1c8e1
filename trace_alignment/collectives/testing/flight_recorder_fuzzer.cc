// Any bytes as the flight recorder dumps of two ranks, JSON or pickle: why they hang, and the Kineto
// traces made of them, which must be readable.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const auto open = [&](size_t rank) {
    return InputFile::OfBytes(bytes, absl::StrCat("fr_", rank, ".json"));
  };
  std::vector<std::string> notes;
  if (const auto dumps = ReadFlightDumps(2, open, &notes); dumps.ok()) {
    FormatHangs(FindHangs(*dumps));
  }
  for (const bool durations_suffice : {false, true}) {
    std::vector<std::string> traces;
    FlightRecorderSource()
        .Convert(2, open, {durations_suffice},
                 [&](size_t, const std::string& trace, absl::string_view) {
                   traces.push_back(trace);
                   return absl::OkStatus();
                 })
        .IgnoreError();
    std::vector<ProfileCollectives> profiles;
    for (const std::string& trace : traces) {
      ASSIGN_OR_RETURN(ProfileCollectives profile,
                       ReadKinetoCollectives(InputFile::OfBytes(trace, "fr.json")));
      profiles.push_back(std::move(profile));
    }
    absl::StatusOr<CollectiveRun> run = MatchCollectives(std::move(profiles), {});
    if (run.ok()) run->table.PlaceByDurations(run->profiles);
  }
  return absl::OkStatus();
}
