// combine: the profiles of a run's nodes on one clock, in one file.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/command.h"
#include "tools/pipeline/combine_run.h"
#include "tools/pipeline/combine_text.h"
#include "tools/pipeline/run_files.h"
#include "trace_alignment/combine/plane_naming.h"
#include "trace_alignment/combine/run_alignment.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/input_paths.h"
#include "xla_profiler/util/report_json.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"

ABSL_FLAG(
    std::string, run_dir, "",
    "The folder of a run: profiles, snapshot pairs, offsets and probes are found in it, or in "
    "the one run below its plugins/profile/.");
ABSL_FLAG(std::string, traces, "",
          "The profiles of one run, one per node: a comma list of files, folders or globs.");
ABSL_FLAG(std::string, snapshots, "",
          "Snapshot pairs, one file per trace in the order of the traces. Default: the profiles' "
          "planes /host:snapshots, where they have one.");
ABSL_FLAG(std::string, offsets, "", "Offsets of the nodes' clocks from the reference: JSONL.");
ABSL_FLAG(std::string, probes, "",
          "Probe windows or raw two-way probes: a comma list of JSONL files, folders or globs.");
ABSL_FLAG(
    std::string, method, "auto",
    "How clocks are found: offsets, probes, collectives, none, or auto: offsets if given, else "
    "probes, else the clocks as they are if no collective violates happens-before, else "
    "collectives.");
ABSL_FLAG(std::optional<int64_t>, reference_node, std::nullopt,
          "The node whose clock is the common one. Default: the one that the offsets are relative "
          "to, else the lowest.");
ABSL_FLAG(std::string, node_ids, "",
          "Node ids, one per trace. Default: the snapshot pairs' header, else the last integer in "
          "the file's name, else the position.");
ABSL_FLAG(std::string, ranks, "",
          "Ranks, one per device, trace by trace. Default: what the profiles say.");
ABSL_FLAG(double, max_drift_ppm, 100, "How fast two clocks may drift apart.");
ABSL_FLAG(int64_t, min_transfer_ns, 0,
          "How long a collective takes at least after the last member started it.");
ABSL_FLAG(
    bool, end_agreement, true,
    "Assume that the members of a collective end together, within four times what that varies; "
    "it narrows uncertainties where only long collectives tie nodes together.");
ABSL_FLAG(std::string, offset_slope, "interpolate",
          "Between offsets: interpolate, or drift_ppm (each sample's own slope).");
ABSL_FLAG(int64_t, max_extrapolation_ms, 60000,
          "Events farther than this outside the snapshot pairs or offsets are an error.");
ABSL_FLAG(std::string, plane_naming, "viewer",
          "viewer: /device:GPU:<n> numbered through and one /host:CPU. node_prefix: "
          "/node:<id>/... for every plane.");
ABSL_FLAG(std::string, output, "", "Where the combined profile goes; gzip when it ends in .gz.");
ABSL_FLAG(std::string, output_dir, "",
          "Where aligned profiles go, one per node, in plugins/profile/<run>/.");
ABSL_FLAG(bool, validate, false,
          "Read the written files back and exit with 1 when a collective violates happens-before.");

namespace meridian {
namespace {

absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::string_view flag, const std::string& text) {
  std::vector<int64_t> numbers;
  if (text.empty()) return numbers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, ": '", part, "' is no number from 0; expected e.g. 0,1,2"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<PlaneNaming> ParseNaming(const std::string& name) {
  if (name == "viewer") return PlaneNaming::kViewer;
  if (name == "node_prefix") return PlaneNaming::kNodePrefix;
  return absl::InvalidArgumentError(
      absl::StrCat("--plane_naming=", name, " is none of viewer, node_prefix"));
}

absl::StatusOr<std::vector<std::string>> Expand(const std::string& list,
                                                std::vector<std::string> folder_suffixes) {
  if (list.empty()) return std::vector<std::string>();
  return ExpandPaths(FileSystem::Posix(), list, {UserDirectory(), std::move(folder_suffixes)});
}

absl::StatusOr<RunFiles> FindFiles() {
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  const std::string traces = absl::GetFlag(FLAGS_traces);
  if (run_dir.empty() == traces.empty()) {
    return absl::InvalidArgumentError(
        "give either --run_dir or --traces, e.g. --traces='rank*.xplane.pb'");
  }
  RunFiles files;
  if (!run_dir.empty()) {
    ASSIGN_OR_RETURN(files, FindRunFiles(FileSystem::Posix(), UserPath(run_dir)));
  } else {
    ASSIGN_OR_RETURN(files.traces, Expand(traces, {".xplane.pb", ".xplane.pb.gz"}));
  }
  // What is named wins over what was found.
  if (!absl::GetFlag(FLAGS_snapshots).empty()) {
    ASSIGN_OR_RETURN(files.snapshots, Expand(absl::GetFlag(FLAGS_snapshots), {}));
  }
  if (!absl::GetFlag(FLAGS_offsets).empty()) {
    files.offsets = UserPath(absl::GetFlag(FLAGS_offsets));
  }
  if (!absl::GetFlag(FLAGS_probes).empty()) {
    ASSIGN_OR_RETURN(files.probes, Expand(absl::GetFlag(FLAGS_probes), {".jsonl", ".jsonl.gz"}));
  }
  return files;
}

absl::StatusOr<AlignmentOptions> AlignmentFlags() {
  AlignmentOptions options;
  ASSIGN_OR_RETURN(options.method, ParseAlignmentMethod(absl::GetFlag(FLAGS_method)));
  ASSIGN_OR_RETURN(options.slope, OffsetSamples::ParseSlope(absl::GetFlag(FLAGS_offset_slope)));
  options.max_drift_ppm = absl::GetFlag(FLAGS_max_drift_ppm);
  const int64_t transfer_ns = absl::GetFlag(FLAGS_min_transfer_ns);
  if (transfer_ns < 0 || transfer_ns > std::numeric_limits<int64_t>::max() / 1000) {
    return absl::InvalidArgumentError("--min_transfer_ns is out of range");
  }
  options.min_transfer_ps = transfer_ns * 1000;
  options.end_agreement = absl::GetFlag(FLAGS_end_agreement);
  return options;
}

absl::StatusOr<CombineRequest> ReadFlags() {
  CombineRequest request;
  ASSIGN_OR_RETURN(request.files, FindFiles());
  request.input = UserInputOptions();
  ASSIGN_OR_RETURN(request.node_ids, ParseNumbers("node_ids", absl::GetFlag(FLAGS_node_ids)));
  ASSIGN_OR_RETURN(request.ranks, ParseNumbers("ranks", absl::GetFlag(FLAGS_ranks)));
  ASSIGN_OR_RETURN(request.alignment, AlignmentFlags());
  ASSIGN_OR_RETURN(request.naming, ParseNaming(absl::GetFlag(FLAGS_plane_naming)));
  request.reference_node = absl::GetFlag(FLAGS_reference_node);
  const int64_t limit_ms = absl::GetFlag(FLAGS_max_extrapolation_ms);
  if (limit_ms < 0 || limit_ms > std::numeric_limits<int64_t>::max() / 1000000) {
    return absl::InvalidArgumentError("--max_extrapolation_ms is out of range");
  }
  request.max_extrapolation_ns = limit_ms * 1000000;
  request.output = UserPath(absl::GetFlag(FLAGS_output));
  request.output_dir = UserPath(absl::GetFlag(FLAGS_output_dir));
  request.validate = absl::GetFlag(FLAGS_validate);
  return request;
}

absl::StatusOr<int> Combine() {
  ASSIGN_OR_RETURN(const CombineRequest request, ReadFlags());
  ASSIGN_OR_RETURN(const CombineReport report, CombineRun(FileSystem::Posix(), request));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : FormatCombineReport(report)));
  const bool violated = report.happens_before().violations_after() > 0;
  return request.validate && violated ? kExitCheckFailed : kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"combine",
       "Puts the profiles of a run's nodes on one clock, states how far it may be off, and writes "
       "them as one profile.",
       {"combine --run_dir=logs/ --output=combined.xplane.pb --validate",
        "combine --traces='rank*.xplane.pb' --method=collectives --output=combined.xplane.pb"},
       {"run_dir", "traces", "snapshots", "offsets", "probes", "method", "reference_node",
        "node_ids", "ranks", "max_drift_ppm", "min_transfer_ns", "end_agreement", "offset_slope",
        "max_extrapolation_ms", "plane_naming", "output", "output_dir", "validate"}},
      argc, argv, meridian::Combine);
}
