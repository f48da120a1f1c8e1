// Any bytes as corrections: those that are accepted are written so that they are read back.
#include <string>

#include "absl/status/statusor.h"
#include "astra_bridge/corrections/corrections.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<Corrections> corrections = ParseCorrections(bytes, "fuzz.json");
  if (!corrections.ok()) return absl::OkStatus();
  const std::string json = CorrectionsToJson(*corrections);
  const absl::StatusOr<Corrections> again = ParseCorrections(json, "again.json");
  if (!again.ok()) return again.status();
  return CorrectionsToJson(*again) == json ? absl::OkStatus()
                                           : absl::InternalError("the corrections have changed");
}
