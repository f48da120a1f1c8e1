#include "tools/compared_runs.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "pipeline/comparison.h"
#include "pipeline/run_chain.h"
#include "tools/command.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

Flag<std::string> FLAGS_max_regression(
    "max_regression", "",
    "Exit with 1 when a step takes longer than before by more than this, e.g. 5%, and not by "
    "chance.");

absl::StatusOr<std::optional<double>> MaxRegression() {
  absl::string_view text = FLAGS_max_regression.value();
  if (text.empty()) return std::nullopt;
  const bool is_percent = absl::ConsumeSuffix(&text, "%");
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > 1e6) {
    return InvalidArgument("--max_regression=", FLAGS_max_regression.value(),
                           " is no share; expected e.g. 5% or 0.05");
  }
  return is_percent ? value / 100 : value;
}

absl::StatusOr<RunReport> ComparedRunReport(const std::string& folder) {
  return ReportOfRun(FileSystem::Posix(), folder, UserInputOptions(), Version());
}

int ComparisonExit(const Comparison& comparison, std::optional<double> max_regression) {
  if (!max_regression.has_value()) return kExitDone;
  // Runs without steps cannot be checked.
  if (!comparison.has_step()) return kExitBadInput;
  return IsRegression(comparison, *max_regression) ? kExitCheckFailed : kExitDone;
}

}  // namespace meridian
