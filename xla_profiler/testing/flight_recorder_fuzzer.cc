// Any bytes as a flight recorder dump, JSON or pickle, and as the Kineto trace made of it.
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  for (const bool durations_suffice : {false, true}) {
    FlightRecorderSource()
        .Convert(
            1, [&](size_t) { return InputFile::OfBytes(bytes, "fr_0.json"); }, {durations_suffice},
            [](size_t, const std::string&, absl::string_view) { return absl::OkStatus(); })
        .IgnoreError();
  }
  return absl::OkStatus();
}
