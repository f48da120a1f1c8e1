// chakra_export: profiles of a run -> Chakra execution traces.
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/number_range.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/trace_source.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces("traces", "",
                               "The profiles of one run, one per node, or one combined file: a "
                               "comma list of files, folders or globs. PyTorch's traces are for "
                               "chakra_link.");
Flag<std::string> FLAGS_output(
    "output", "", "Prefix of what is written: PREFIX.<rank>.et and PREFIX.comm_groups.json.");
Flag<std::string> FLAGS_flavor(
    "flavor", "simulation",
    "simulation: what simulators run to the end; full: hosts and groups as nodes, too.");
Flag<std::string> FLAGS_granularity(
    "granularity", "kernel",
    "kernel: every kernel is a node; hlo: kernels of one instruction are one; step: all "
    "computation of a step between two communications is one.");
Flag<std::string> FLAGS_intent("intent", "profiled",
                               "profiled: what ran, with its times; post_transformed: the programs "
                               "as they were compiled, without times; pre_transformed: before they "
                               "were fused and combined, by the framework's names.");
Flag<std::string> FLAGS_steps("steps", "",
                              "Only these steps, e.g. 3..5 (both included). Default: all.");
Flag<std::string> FLAGS_ranks(
    "ranks", "",
    "The rank of each device, profile by profile, e.g. 0,1,2,3. Default: as the profiles say.");
Flag<std::string> FLAGS_profile_start_ns(
    "profile_start_ns", "",
    "For profiles that do not say when they began: Unix time in ns, one for each of --traces in "
    "their order, e.g. 1794701451406144825,... or nothing between two commas for one that does. "
    "A single profile needs none for --intent=post_transformed or pre_transformed.");
Flag<bool> FLAGS_allow_violations(
    "allow_violations", false,
    "Export even when the clocks disagree: collectives that end before they began elsewhere.");

absl::StatusOr<std::optional<NumberRange>> ParseSteps(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<NumberRange> range = ParseNumberRange(text);
  if (!range.has_value()) {
    return InvalidArgument("--steps=", text, " is no range of steps; expected e.g. --steps=3..5");
  }
  return range;
}

absl::StatusOr<XSpaceExportOptions> ReadOptions() {
  XSpaceExportOptions options;
  options.reader.input = UserInputOptions();
  ASSIGN_OR_RETURN(options.flavor,
                   NamedValue<EtFlavor>(FLAGS_flavor, {{"simulation", EtFlavor::kSimulation},
                                                       {"full", EtFlavor::kFull}}));
  ASSIGN_OR_RETURN(
      options.granularity,
      NamedValue<WorkGranularity>(FLAGS_granularity, {{"kernel", WorkGranularity::kKernel},
                                                      {"hlo", WorkGranularity::kHlo},
                                                      {"step", WorkGranularity::kStep}}));
  ASSIGN_OR_RETURN(
      options.intent,
      NamedValue<EtIntent>(FLAGS_intent, {{"profiled", EtIntent::kProfiled},
                                          {"post_transformed", EtIntent::kPostTransformed},
                                          {"pre_transformed", EtIntent::kPreTransformed}}));
  ASSIGN_OR_RETURN(options.steps, ParseSteps(FLAGS_steps.value()));
  if (options.intent != EtIntent::kProfiled &&
      (options.steps.has_value() || options.granularity != WorkGranularity::kKernel)) {
    return InvalidArgument(
        "--steps and --granularity are about what ran; they mean nothing with --intent=",
        FLAGS_intent.value());
  }
  ASSIGN_OR_RETURN(options.ranks.given_ranks, ListedNumbers(FLAGS_ranks));
  options.allow_violations = FLAGS_allow_violations.value();
  return options;
}

// Names the command for files of other kinds.
absl::Status CheckIsXSpace(const std::string& path) {
  const absl::StatusOr<DetectedFile> file = DetectFile(FileSystem::Posix(), path);
  // What cannot be read, or is not known, is for the reader to refuse.
  if (!file.ok() || !file->is_known()) return absl::OkStatus();
  const TraceSource* source = file->source;
  if (source != nullptr && source->form() == TraceForm::kXSpace) return absl::OkStatus();
  absl::string_view remedy;
  if (source != nullptr && source->NeedsConversion()) {
    remedy = ", combine makes Chakra traces of others";
  } else if (source != nullptr || file->other == OtherFile::kPytorchEt) {
    remedy = ", chakra_link makes Chakra traces of PyTorch runs";
  }
  return InvalidArgument(Printable(path), " is ", file->noun(), "; expected an XSpace", remedy);
}

absl::StatusOr<int> Export() {
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
  for (const std::string& path : traces) RETURN_IF_ERROR(CheckIsXSpace(path));
  ASSIGN_OR_RETURN(const std::string output,
                   RequiredPath(FLAGS_output, "prefix", "et/run for et/run.0.et, ..."));
  ASSIGN_OR_RETURN(XSpaceExportOptions options, ReadOptions());
  ASSIGN_OR_RETURN(options.profile_starts_ns, ListedOrAbsent(FLAGS_profile_start_ns));
  const size_t starts = options.profile_starts_ns.size();
  if (starts != 0 && starts != traces.size()) {
    return InvalidArgument("--profile_start_ns=", FLAGS_profile_start_ns.value(), " has ", starts,
                           " starts for ", traces.size(), " profiles; expected one for each");
  }
  RETURN_IF_ERROR(
      CheckOutputPrefix("--output", output, {".et", ".et.gz", ".comm_groups.json"}, traces));
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   ExportXSpaces(FileSystem::Posix(), traces, output,
                                 WithProgress(options, "reading", traces.size())));
  RETURN_IF_ERROR(PrintReport(report, FormatWorkloadReport).status());
  PrintWarnings(report.warnings());
  return kExitDone;
}

}  // namespace

Command ChakraExportCommand() {
  return {
      "chakra_export",
      "Turns the profiles of a run (XSpace) into Chakra execution traces, one per rank: device "
      "work, what it waited for, and collectives with their bytes and groups.",
      {"chakra_export --traces=run/ --output=et/run",
       "chakra_export --traces=combined.xplane.pb --output=et/run --steps=3..5 --json"},
      {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_output, &FLAGS_flavor, &FLAGS_granularity,
       &FLAGS_intent, &FLAGS_steps, &FLAGS_ranks, &FLAGS_profile_start_ns, &FLAGS_allow_violations},
      Export};
}

}  // namespace meridian
