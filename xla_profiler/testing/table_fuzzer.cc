// Any bytes as a table of operations, and as the Kineto traces made of it.
#include <string>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/table_traces/table_traces.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const TableSource source;
  source.Detect(FileHead(std::string(bytes)));
  absl::Status status = absl::OkStatus();
  source
      .Convert(
          1,
          [&](size_t) { return absl::StatusOr<InputFile>(InputFile::OfBytes(bytes, "fuzz.csv")); },
          {},
          [&](size_t, const std::string& trace, absl::string_view) {
            // What was written can be read.
            status = ReadKinetoCollectives(InputFile::OfBytes(trace, "fuzz.json")).status();
            return status;
          })
      .status()
      .IgnoreError();
  return status;
}
