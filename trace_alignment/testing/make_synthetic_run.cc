// make_synthetic_run: writes a made-up run of many nodes into a folder.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/cluster_spec.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/command_line/command_line.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_output("output", "", "The folder to write into; made when there is none.");
Flag<int64_t> FLAGS_nodes("nodes", 2, "Nodes: files and clocks.");
Flag<int64_t> FLAGS_devices_per_node("devices_per_node", 1, "Devices, and so ranks, of each node.");
Flag<int64_t> FLAGS_steps("steps", 20, "How often the program runs.");
Flag<std::string> FLAGS_collectives(
    "collectives", "all-reduce,collective-permute",
    "The program: kinds, in groups of all ranks, of N neighbours (all-gather/N) or of N "
    "ranks far apart (all-gather/Ns).");
Flag<int64_t> FLAGS_compute_kernels("compute_kernels", 1, "Kernels before each collective.");
Flag<int64_t> FLAGS_rest_us("rest_us", 20'000, "Rest after each step.");
Flag<std::string> FLAGS_stragglers(
    "stragglers", "",
    "Who comes late: rank:microseconds, or rank:microseconds:every for every n-th step.");
Flag<int64_t> FLAGS_end_bias_us("end_bias_us", 0,
                                "Ranks end up to so much later, each always the same.");
Flag<int64_t> FLAGS_session_spread_us(
    "session_spread_us", 1'500,
    "From the first to the last session's start; beyond 2,000 profiles begin mid-run.");
Flag<double> FLAGS_skew_ms("skew_ms", 50, "Host clocks are ahead or behind by up to this,");
Flag<double> FLAGS_drift_ppm("drift_ppm", 50, "drift by up to this");
Flag<double> FLAGS_wander_ppm("wander_ppm", 0, "and wander by up to this.");
Flag<double> FLAGS_tracer_drift_ppm("tracer_drift_ppm", 5,
                                    "Tracers drift against their host by up to this.");
Flag<std::string> FLAGS_with(
    "with", "snapshots,offsets",
    "What else to write: snapshots, offsets or legacy_offsets, probe_windows, probes.");
Flag<int64_t> FLAGS_period_ms("period_ms", 100,
                              "From one snapshot, offset or window of probes to the next.");
Flag<int64_t> FLAGS_bracket_us("bracket_us", 0, "Snapshots have brackets of up to this.");
Flag<int64_t> FLAGS_asymmetry_us("asymmetry_us", 0,
                                 "Links are slower in one direction by up to this.");
Flag<int64_t> FLAGS_seed("seed", 1, "Another seed, another run.");

constexpr int64_t kMaxRanks = 4'096;

// Returns the flag in units of 1/scale.
absl::StatusOr<int64_t> Scaled(const char* name, double value, double scale, double max) {
  if (!(value >= 0 && value <= max)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", value, "; expected 0 to ", max));
  }
  return static_cast<int64_t>(value * scale);
}

absl::Status CheckRange(const char* name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, "=", value, "; expected ", min, " to ", max));
}

absl::StatusOr<ClusterOptions> ReadClusterOptions() {
  ClusterOptions options;
  options.seed = static_cast<uint64_t>(FLAGS_seed.value());
  options.nodes = FLAGS_nodes.value();
  options.devices_per_node = FLAGS_devices_per_node.value();
  options.steps = FLAGS_steps.value();
  options.compute_kernels = FLAGS_compute_kernels.value();
  RETURN_IF_ERROR(CheckRange("nodes", options.nodes, 1, kMaxRanks));
  RETURN_IF_ERROR(
      CheckRange("devices_per_node", options.devices_per_node, 1, kMaxRanks / options.nodes));
  RETURN_IF_ERROR(CheckRange("steps", options.steps, 1, 100'000));
  RETURN_IF_ERROR(CheckRange("compute_kernels", options.compute_kernels, 1, 100));
  const int64_t ranks = options.nodes * options.devices_per_node;
  ASSIGN_OR_RETURN(options.collectives, ParseCollectives(FLAGS_collectives.value(), ranks));
  ASSIGN_OR_RETURN(options.stragglers, ParseStragglers(FLAGS_stragglers.value(), ranks));
  ASSIGN_OR_RETURN(options.rest_ns, Scaled("rest_us", FLAGS_rest_us.value(), 1e3, 1e7));
  ASSIGN_OR_RETURN(options.max_end_bias_ns,
                   Scaled("end_bias_us", FLAGS_end_bias_us.value(), 1e3, 1e6));
  ASSIGN_OR_RETURN(options.session_spread_ns,
                   Scaled("session_spread_us", FLAGS_session_spread_us.value(), 1e3, 1e8));
  ASSIGN_OR_RETURN(options.max_skew_ns, Scaled("skew_ms", FLAGS_skew_ms.value(), 1e6, 1e6));
  ASSIGN_OR_RETURN(options.max_drift_ppb, Scaled("drift_ppm", FLAGS_drift_ppm.value(), 1e3, 1e3));
  ASSIGN_OR_RETURN(options.max_wander_ppb,
                   Scaled("wander_ppm", FLAGS_wander_ppm.value(), 1e3, 1e3));
  ASSIGN_OR_RETURN(options.max_tracer_drift_ppb,
                   Scaled("tracer_drift_ppm", FLAGS_tracer_drift_ppm.value(), 1e3, 1e3));
  return options;
}

absl::StatusOr<ClusterFilesOptions> ReadFilesOptions() {
  RETURN_IF_ERROR(CheckRange("period_ms", FLAGS_period_ms.value(), 1, 60'000));
  const int64_t period_ns = FLAGS_period_ms.value() * 1'000'000;
  SnapshotOptions snapshots;
  snapshots.period_ns = period_ns;
  ASSIGN_OR_RETURN(snapshots.max_bracket_ns,
                   Scaled("bracket_us", FLAGS_bracket_us.value(), 1e3, 1e4));
  OffsetsOptions offsets;
  offsets.period_ns = period_ns;
  ProbeOptions probes;
  probes.window_ns = period_ns;
  ASSIGN_OR_RETURN(probes.max_asymmetry_ns,
                   Scaled("asymmetry_us", FLAGS_asymmetry_us.value(), 1e3, 1e6));
  ClusterFilesOptions files;
  for (absl::string_view item : absl::StrSplit(FLAGS_with.value(), ',', absl::SkipEmpty())) {
    if (item == "snapshots") {
      files.snapshots = snapshots;
    } else if (item == "offsets" || item == "legacy_offsets") {
      offsets.legacy = item == "legacy_offsets";
      files.offsets = offsets;
    } else if (item == "probe_windows") {
      files.probe_windows = probes;
    } else if (item == "probes") {
      files.probes = probes;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--with: '", item,
                       "' is none of snapshots, offsets, legacy_offsets, probe_windows, probes"));
    }
  }
  return files;
}

// Relative paths are the user's, also under `bazel run`.
std::string UserFolder(const std::string& path) {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  return ResolvePath(path, directory == nullptr ? "" : directory);
}

absl::Status Run() {
  if (FLAGS_output.value().empty()) {
    return absl::InvalidArgumentError("--output names no folder, see --help");
  }
  ASSIGN_OR_RETURN(const ClusterOptions options, ReadClusterOptions());
  ASSIGN_OR_RETURN(ClusterFilesOptions files, ReadFilesOptions());
  ProgressBar progress("writing", static_cast<uint64_t>(options.nodes));
  files.progress = [&](int64_t node) { progress.Update(static_cast<uint64_t>(node)); };
  return WriteCluster(FileSystem::Posix(), SyntheticCluster(options), files,
                      UserFolder(FLAGS_output.value()));
}

int Main(const std::vector<std::string>& argv) {
  const Command command = {
      "make_synthetic_run",
      "Writes the profiles of a made-up run of many nodes, whose clocks are off by known amounts, "
      "and what was measured of the clocks.",
      {"make_synthetic_run --output=/tmp/run --nodes=16 --devices_per_node=8 --wander_ppm=0.5 "
       "--collectives=all-reduce,all-gather/8,reduce-scatter/16s --stragglers=3:500:4",
       "make_synthetic_run --output=/tmp/run --with=snapshots,probes --asymmetry_us=20"},
      {&FLAGS_output, &FLAGS_nodes, &FLAGS_devices_per_node, &FLAGS_steps, &FLAGS_collectives,
       &FLAGS_compute_kernels, &FLAGS_rest_us, &FLAGS_stragglers, &FLAGS_end_bias_us,
       &FLAGS_session_spread_us, &FLAGS_skew_ms, &FLAGS_drift_ppm, &FLAGS_wander_ppm,
       &FLAGS_tracer_drift_ppm, &FLAGS_with, &FLAGS_period_ms, &FLAGS_bracket_us,
       &FLAGS_asymmetry_us, &FLAGS_seed}};
  const absl::StatusOr<ParsedCommandLine> parsed = ParseCommandLine(command, argv);
  absl::Status status = parsed.status();
  if (parsed.ok() && parsed->help) {
    std::fputs(HelpText(command).c_str(), stdout);
    return kExitDone;
  }
  if (parsed.ok() && !parsed->arguments.empty()) {
    status = absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", parsed->arguments[0], "', see --help"));
  }
  if (status.ok()) status = Run();
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), std::string(status.message()).c_str());
  }
  return ExitCode(status);
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::Main(std::vector<std::string>(argv, argv + argc));
}
