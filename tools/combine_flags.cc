#include "tools/combine_flags.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tools/command.h"
#include "tools/profiles.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/combine/run_alignment.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "The profiles of one run, one per node: a comma list of files, folders or globs.");
Flag<std::string> FLAGS_snapshots(
    "snapshots", "",
    "Snapshot pairs, one file per trace in the order of the traces. Default: the profiles' planes "
    "/host:snapshots, where they have one.");
Flag<std::string> FLAGS_offsets("offsets", "",
                                "Offsets of the nodes' clocks from the reference: JSONL.");
Flag<std::string> FLAGS_probes(
    "probes", "",
    "Probe windows or raw two-way probes: a comma list of JSONL files, folders or globs.");
Flag<std::string> FLAGS_method("method", "auto",
                               "How clocks are found: offsets, probes, collectives, none, or auto: "
                               "offsets if given, else probes, else the clocks as they are if no "
                               "collective violates happens-before, else collectives.");
Flag<std::optional<int64_t>> FLAGS_reference_node(
    "reference_node", std::nullopt,
    "The node whose clock is the common one. Default: the one that the offsets are relative to, "
    "else the lowest.");
Flag<std::string> FLAGS_node_ids("node_ids", "",
                                 "Node ids, one per trace. Default: the snapshot pairs' header, "
                                 "else the last integer in the file's name, else the position.");
Flag<std::string> FLAGS_profile_start_ns(
    "profile_start_ns", "",
    "When profiles began that do not say it (Unix time): one per trace, empty for the others, e.g. "
    ",,1794701451406144825.");
Flag<std::string> FLAGS_ranks(
    "ranks", "", "Ranks, one per device, trace by trace. Default: what the profiles say.");
Flag<double> FLAGS_max_drift_ppm("max_drift_ppm", 100, "How fast two clocks may drift apart.");
Flag<int64_t> FLAGS_min_transfer_ns(
    "min_transfer_ns", 0, "How long a collective takes at least after the last member started it.");
Flag<bool> FLAGS_end_agreement(
    "end_agreement", true,
    "Assume that the members of a collective end together, within four times what that varies; it "
    "narrows uncertainties where only long collectives tie nodes together.");
Flag<std::string> FLAGS_offset_slope(
    "offset_slope", "interpolate",
    "Between offsets: interpolate, or drift_ppm (each sample's own slope).");
Flag<int64_t> FLAGS_max_extrapolation_ms(
    "max_extrapolation_ms", 60000,
    "Events farther than this outside the snapshot pairs or offsets are an error.");

namespace {

absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::string_view flag, const std::string& text) {
  std::vector<int64_t> numbers;
  if (text.empty()) return numbers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) {
      return InvalidArgument("--", flag, ": '", part, "' is no number from 0; expected e.g. 0,1,2");
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<std::optional<int64_t>>> ParseStarts(const std::string& text) {
  std::vector<std::optional<int64_t>> starts;
  if (text.empty()) return starts;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    starts.emplace_back();
    if (part.empty()) continue;
    ASSIGN_OR_RETURN(const std::vector<int64_t> start,
                     ParseNumbers("profile_start_ns", std::string(part)));
    starts.back() = start[0];
  }
  return starts;
}

absl::StatusOr<AlignmentOptions> AlignmentFlags() {
  AlignmentOptions options;
  ASSIGN_OR_RETURN(options.method, ParseAlignmentMethod(FLAGS_method.value()));
  ASSIGN_OR_RETURN(options.slope, OffsetSamples::ParseSlope(FLAGS_offset_slope.value()));
  options.max_drift_ppm = FLAGS_max_drift_ppm.value();
  ASSIGN_OR_RETURN(options.min_transfer_ps, ScaledValue(FLAGS_min_transfer_ns, 1000));
  options.end_agreement = FLAGS_end_agreement.value();
  return options;
}

}  // namespace

absl::StatusOr<RunFiles> FindCombineFiles() {
  const std::string run_dir = FLAGS_run_dir.value();
  if (run_dir.empty() == FLAGS_traces.value().empty()) {
    return InvalidArgument("give either --run_dir or --traces, e.g. --traces='rank*.xplane.pb'");
  }
  RunFiles files;
  RunFilesOptions options;
  options.find_snapshots = FLAGS_snapshots.value().empty();
  options.find_offsets = FLAGS_offsets.value().empty();
  options.find_probes = FLAGS_probes.value().empty();
  if (!run_dir.empty()) {
    ASSIGN_OR_RETURN(files, FindRunFiles(FileSystem::Posix(), UserPath(run_dir), options));
  } else {
    ASSIGN_OR_RETURN(files.traces, UserProfiles(FLAGS_traces, "run/"));
  }
  // What is named wins over what was found.
  if (!FLAGS_snapshots.value().empty()) {
    ASSIGN_OR_RETURN(files.snapshots, UserFiles(FLAGS_snapshots, {}, "run/"));
  }
  if (!FLAGS_offsets.value().empty()) files.offsets = UserPath(FLAGS_offsets);
  if (!FLAGS_probes.value().empty()) {
    ASSIGN_OR_RETURN(files.probes, UserFiles(FLAGS_probes, {".jsonl", ".jsonl.gz"}, "run/"));
  }
  return files;
}

absl::StatusOr<CombineRequest> AlignmentRequest() {
  CombineRequest request;
  request.input = UserInputOptions();
  ASSIGN_OR_RETURN(request.node_ids, ParseNumbers("node_ids", FLAGS_node_ids.value()));
  ASSIGN_OR_RETURN(request.profile_start_ns, ParseStarts(FLAGS_profile_start_ns.value()));
  ASSIGN_OR_RETURN(request.ranks, ParseNumbers("ranks", FLAGS_ranks.value()));
  ASSIGN_OR_RETURN(request.alignment, AlignmentFlags());
  request.reference_node = FLAGS_reference_node.value();
  ASSIGN_OR_RETURN(request.max_extrapolation_ns, ScaledValue(FLAGS_max_extrapolation_ms, 1000000));
  return request;
}

}  // namespace meridian
