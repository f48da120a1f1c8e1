// What a forecast costs: a made-up run of 4 ranks with 100,000 events each, one question, and a curve of
// eight.
//
//   ./bazelw run //benchmarks:forecast_benchmark
//
// Exits with 1 when one question takes more than 10 CPU s, or the curve more than three times as much.
#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

constexpr double kMostSeconds = 10;
constexpr double kMostTimes = 3;

double ChildSeconds() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

absl::StatusOr<double> TimeForecast(const std::string& run, const std::string& bandwidths) {
  const double before = ChildSeconds();
  const CommandResult result =
      RunCommandLine("tools/forecast", {"--run_dir=" + run, "--sweep=examples/sweep_cpu4",
                                        "--allow_violations", "--bandwidth=" + bandwidths});
  if (result.exit_code != 0) return absl::InternalError(result.standard_error);
  return ChildSeconds() - before;
}

absl::StatusOr<int> Measure() {
  const TemporaryDirectory folder;
  const CommandResult made = RunCommandLine("trace_alignment/testing/make_synthetic_run",
                                            {"--nodes=4", "--steps=3000", "--compute_kernels=16",
                                             "--rest_us=100", "--output=" + folder.PathOf("run")});
  if (made.exit_code != 0) return absl::InternalError(made.standard_error);
  ASSIGN_OR_RETURN(const double one, TimeForecast(folder.PathOf("run"), "2x"));
  ASSIGN_OR_RETURN(const double curve,
                   TimeForecast(folder.PathOf("run"), "1x,2x,3x,4x,5x,6x,7x,8x"));
  std::printf("one question: %.2f CPU s (reach %.0f); eight: %.2f CPU s, %.2f times (reach %.0f)\n",
              one, kMostSeconds, curve, curve / one, kMostTimes);
  return one <= kMostSeconds && curve <= kMostTimes * one ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"forecast_benchmark",
                               "Measures what a forecast costs on a made-up run.",
                               {"forecast_benchmark"},
                               {},
                               meridian::Measure},
                              argc, argv);
}
