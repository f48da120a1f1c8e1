// Any bytes as edits of a what-if.
#include "critical_path/what_if/what_if_edits.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  ParseWhatIfEdits(bytes).IgnoreError();
  return absl::OkStatus();
}
