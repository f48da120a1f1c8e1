#include "xla_profiler/testing/opened_traces.h"

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

OpenedTraces OpenTraces(const std::vector<std::pair<std::string, std::string>>& files) {
  const TemporaryDirectory directory;
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : files) paths.push_back(directory.Write(name, bytes));
  OpenedTraces opened;
  const absl::StatusOr<TraceFiles> traces = TraceFiles::Create(FileSystem::Posix(), paths);
  opened.status = traces.status();
  if (!traces.ok()) return opened;
  opened.noun = std::string(traces->source().noun());
  opened.notes = traces->notes();
  for (size_t i = 0; i < traces->size(); ++i) {
    opened.paths.push_back(traces->paths()[i].substr(directory.path().size() + 1));
    const absl::StatusOr<InputFile> trace = traces->Open(i);
    EXPECT_OK(trace.status());
    opened.traces.push_back(std::string(trace->bytes()));
    absl::StatusOr<ProfileCollectives> collectives = ReadKinetoCollectives(*trace);
    EXPECT_OK(collectives.status());
    opened.collectives.push_back(*std::move(collectives));
  }
  return opened;
}

}  // namespace meridian
