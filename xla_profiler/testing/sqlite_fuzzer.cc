// Any bytes as a database of nsys or rocprofv3, and as the Kineto traces made of it.
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/sqlite_traces/sqlite_traces.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  absl::Status status;
  const auto open = [&](size_t) -> absl::StatusOr<InputFile> {
    return InputFile::OfBytes(bytes, "fuzz.sqlite");
  };
  const auto write = [&](size_t, const std::string& trace, absl::string_view) {
    status.Update(LoadTraceJson(trace, "fuzz.json").status());
    return status;
  };
  // What cannot be read is refused; what is made of the rest must be a trace.
  (void)SqliteTraceSource().Convert(1, open, {}, write);
  return status;
}
