// Any bytes as a Perfetto trace of PyTorch, and as the Kineto trace made of it.
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/perfetto_traces/perfetto_traces.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  TellPerfettoWriter(bytes);
  absl::Status status;
  const auto open = [&](size_t) -> absl::StatusOr<InputFile> {
    return InputFile::OfBytes(bytes, "fuzz.pftrace");
  };
  const auto write = [&](size_t, const std::string& trace, absl::string_view) {
    status.Update(ReadKinetoCollectives(InputFile::OfBytes(trace, "fuzz.json")).status());
    return status;
  };
  // What cannot be read is refused; what is made of the rest must be a trace.
  (void)PerfettoSource().Convert(1, open, {}, write);
  return status;
}
