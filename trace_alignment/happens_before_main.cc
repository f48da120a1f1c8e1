// The main() of every happens_before_test: its arguments are the profiles of one run.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace_alignment/collectives/validation.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

int main(int argc, char** argv) {
  const absl::StatusOr<meridian::TraceVerdict> verdict = meridian::CheckTraces(
      meridian::FileSystem::Posix(), std::vector<std::string>(argv + 1, argv + argc));
  if (!verdict.ok()) {
    std::fprintf(stderr, "%s\n", std::string(verdict.status().message()).c_str());
    return meridian::ExitCode(verdict.status());
  }
  std::fputs(verdict->report.c_str(), stdout);
  return verdict->holds ? meridian::kExitDone : meridian::kExitCheckFailed;
}
