#include "tools/compared_runs.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "pipeline/comparison.h"
#include "pipeline/run_chain.h"
#include "tools/command.h"
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
  if (!absl::SimpleAtod(text, &value) || !(value >= 0) || value > (is_percent ? 1e6 : 1)) {
    return InvalidArgument("--max_regression=", FLAGS_max_regression.value(),
                           " is no share; expected e.g. 5% or 0.05");
  }
  return is_percent ? value / 100 : value;
}

absl::Status CheckApart(const std::string& compared, const std::string& output_dir) {
  std::error_code error;
  if (output_dir.empty() || !std::filesystem::equivalent(compared, output_dir, error)) {
    return absl::OkStatus();
  }
  return InvalidArgument("--output_dir=", output_dir,
                         " is a run to compare: its report would be overwritten; give another "
                         "folder");
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
