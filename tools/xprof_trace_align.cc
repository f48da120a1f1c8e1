// xprof_trace_align: one profile on another clock, by snapshot pairs and offsets.
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/kineto_aligner.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace("trace", "", "The profile to align.");
Flag<std::string> FLAGS_output("output", "",
                               "Where the aligned profile goes; gzip when it ends in .gz.");
Flag<std::string> FLAGS_snapshot_pairs(
    "snapshot_pairs", "",
    "Readings of the node's host and tracer clock: JSONL or a SnapshotPairs message. Default: the "
    "profile's plane /host:snapshots, if it has one.");
Flag<std::string> FLAGS_offsets("offsets", "",
                                "Offsets of the nodes' clocks from the reference: JSONL.");
Flag<std::optional<int64_t>> FLAGS_node_id(
    "node_id", std::nullopt,
    "Which node the profile is of. Default: the snapshot pairs' header, else the rank in the "
    "file's name, else the last integer in it.");
Flag<std::string> FLAGS_target(
    "target", "tracer",
    "The clock to map to: tracer (the node's own tracer), reference (the reference node's tracer; "
    "needs --reference_snapshot_pairs) or host (the reference node's host clock).");
Flag<std::string> FLAGS_offset_slope(
    "offset_slope", "interpolate",
    "Between offsets: interpolate, or drift_ppm (each sample's own slope).");
Flag<std::string> FLAGS_reference_snapshot_pairs("reference_snapshot_pairs", "",
                                                 "Snapshot pairs of the reference node.");
Flag<std::optional<int64_t>> FLAGS_start_walltime_ns(
    "start_walltime_ns", std::nullopt,
    "Host clock when the tracer started (W). Default: the headers of the inputs.");
Flag<std::optional<int64_t>> FLAGS_start_gpu_ns(
    "start_gpu_ns", std::nullopt,
    "Tracer clock at that moment (G). Default: the headers of the inputs.");
Flag<std::optional<int64_t>> FLAGS_profile_start_ns(
    "profile_start_ns", std::nullopt,
    "Unix time of the session's start, for profiles that do not say.");
Flag<int64_t> FLAGS_max_extrapolation_ms(
    "max_extrapolation_ms", 60000,
    "Events farther than this outside the snapshot pairs or offsets are an error.");
Flag<bool> FLAGS_strict_monotonic("strict_monotonic", false,
                                  "Move each event that does not start after its predecessor by 1 "
                                  "ns, instead of keeping equal starts equal.");
Flag<bool> FLAGS_keep_original("keep_original", false,
                               "Keep the original start and duration of events as stats.");
Flag<bool> FLAGS_force("force", false, "Align a profile that is aligned already.");
Flag<std::string> FLAGS_stats_output(
    "stats_output", "",
    "Where the statistics go. Default: beside the output, *.alignment_stats.json.");

enum class Target { kTracer, kReference, kHost };

// What is known before any clock is: all that the maps are made of.
struct Inputs {
  std::optional<SnapshotPairs> snapshots;
  std::optional<SnapshotPairs> reference_snapshots;
  std::optional<OffsetSamples> offsets;
  int64_t node_id = 0;
};

// The flag, the header of the snapshot pairs, the file's name.
absl::StatusOr<int64_t> FindNodeId(const std::string& trace, const Inputs& inputs) {
  NodeIdInputs ids;
  ids.files = {trace};
  if (FLAGS_node_id.value().has_value()) ids.given = {*FLAGS_node_id.value()};
  if (inputs.snapshots.has_value()) ids.from_snapshots = {inputs.snapshots->node_id};
  ASSIGN_OR_RETURN(const std::vector<AssignedNodeId> nodes, AssignNodeIds(ids));
  return nodes[0].id;
}

absl::StatusOr<Inputs> LoadInputs(const XSpaceReader& reader, const SessionClock& clock) {
  FileSystem& files = FileSystem::Posix();
  Inputs inputs;
  SnapshotPairsOptions options;
  options.flags.start_walltime_ns = FLAGS_start_walltime_ns.value();
  options.flags.start_gpu_ns = FLAGS_start_gpu_ns.value();
  if (!FLAGS_offsets.value().empty()) {
    ASSIGN_OR_RETURN(inputs.offsets, OffsetSamples::Load(FileSystem::Posix(),
                                                         UserPath(FLAGS_offsets), std::nullopt));
    ASSIGN_OR_RETURN(inputs.node_id, FindNodeId(reader.path(), inputs));
    options.offsets_header = inputs.offsets->AnchorsOf(inputs.node_id);
  }
  ASSIGN_OR_RETURN(inputs.snapshots, LoadProfileSnapshots(files, reader, clock,
                                                          UserPath(FLAGS_snapshot_pairs), options));
  ASSIGN_OR_RETURN(inputs.node_id, FindNodeId(reader.path(), inputs));
  if (!FLAGS_reference_snapshot_pairs.value().empty()) {
    SnapshotPairsOptions reference;
    if (inputs.offsets.has_value() && inputs.offsets->reference_node().has_value()) {
      reference.offsets_header = inputs.offsets->AnchorsOf(*inputs.offsets->reference_node());
    }
    ASSIGN_OR_RETURN(inputs.reference_snapshots,
                     LoadSnapshotPairs(files, UserPath(FLAGS_reference_snapshot_pairs), reference));
  }
  return inputs;
}

absl::StatusOr<NodeClock> MakeClock(const Inputs& inputs, const RunClock& run) {
  ASSIGN_OR_RETURN(const Target target,
                   NamedValue<Target>(FLAGS_target, {{"tracer", Target::kTracer},
                                                     {"reference", Target::kReference},
                                                     {"host", Target::kHost}}));
  ASSIGN_OR_RETURN(const OffsetSamples::Slope slope,
                   OffsetSamples::ParseSlope(FLAGS_offset_slope.value()));
  NodeClock clock(run);
  if (inputs.snapshots.has_value()) {
    ASSIGN_OR_RETURN(clock.tracer_to_host, TracerToHostMap(*inputs.snapshots, run));
    if (target == Target::kTracer) clock.reference_to_target = clock.tracer_to_host->Inverted();
  }
  if (inputs.offsets.has_value()) {
    ASSIGN_OR_RETURN(clock.host_to_reference,
                     inputs.offsets->OffsetMap(inputs.node_id, run, slope));
  }
  if (target == Target::kReference) {
    if (!inputs.reference_snapshots.has_value()) {
      return InvalidArgument(
          "--target=reference needs --reference_snapshot_pairs, the reference node's");
    }
    ASSIGN_OR_RETURN(const ClockMap map, TracerToHostMap(*inputs.reference_snapshots, run));
    clock.reference_to_target = map.Inverted();
  }
  return clock;
}

std::string DescribeModel(const Inputs& inputs) {
  const std::string snapshots =
      inputs.snapshots.has_value()
          ? absl::StrCat(inputs.snapshots->pairs.size(), " snapshot pair(s)")
          : "no snapshot pairs, the tracer's clock is taken for the host's";
  if (!inputs.offsets.has_value()) {
    return absl::StrCat(snapshots, "; no offsets, the node is taken for the reference");
  }
  if (inputs.offsets->reference_node() == inputs.node_id) {
    return absl::StrCat(snapshots, "; the node is the reference");
  }
  const size_t samples = inputs.offsets->SamplesOf(inputs.node_id).size();
  return absl::StrCat(snapshots, "; ", samples, " offset(s), ",
                      samples == 1 ? "a constant shift or one slope" : FLAGS_offset_slope.value());
}

// "out/a.xplane.pb.gz" -> "out/a.alignment_stats.json".
std::string StatsPath(absl::string_view output) {
  if (!absl::ConsumeSuffix(&output, ".xplane.pb.gz") &&
      !absl::ConsumeSuffix(&output, ".xplane.pb")) {
    const size_t slash = output.rfind('/');
    const size_t dot = output.rfind('.');
    const bool has_suffix =
        dot != absl::string_view::npos && (slash == absl::string_view::npos || dot > slash + 1);
    if (has_suffix) output = output.substr(0, dot);
  }
  return absl::StrCat(output, ".alignment_stats.json");
}

std::string FormatStats(const AlignmentStats& stats) {
  return absl::StrCat("node ", stats.node_id(), " on the ", stats.target(),
                      " clock: ", stats.model(), "\n", WithThousands(stats.events_corrected()),
                      " of ", WithThousands(stats.events()), " events corrected, by ",
                      WithThousands(stats.min_correction_ns()), " to ",
                      WithThousands(stats.max_correction_ns()), " ns\n",
                      WithThousands(stats.events_clamped_monotonic()), " clamped; ",
                      WithThousands(stats.snapshot_extrapolations()),
                      " outside the snapshot pairs, ", WithThousands(stats.offset_extrapolations()),
                      " outside the offsets\n", "written to ", Printable(stats.output()), "\n");
}

// Writes what `align` makes, and what it says it did. Inputs are complete once it has run.
absl::StatusOr<int> Write(const std::string& output, const std::string& stats_path,
                          const std::string& trace, const Inputs* inputs,
                          absl::FunctionRef<absl::StatusOr<AlignmentStats>(ByteSink& sink)> align) {
  OutputFiles outputs(FileSystem::Posix());
  AlignmentStats stats;
  RETURN_IF_ERROR(outputs.Write("aligned", output, [&](ByteSink& sink) -> absl::Status {
    ASSIGN_OR_RETURN(stats, align(sink));
    return absl::OkStatus();
  }));
  stats.set_trace(trace);
  stats.set_output(output);
  stats.set_node_id(inputs->node_id);
  stats.set_target(FLAGS_target.value());
  stats.set_model(DescribeModel(*inputs));
  RETURN_IF_ERROR(outputs.WriteText("stats", stats_path, ReportToJson(stats)));
  RETURN_IF_ERROR(outputs.Commit());
  return PrintReport(stats, FormatStats);
}

absl::Status RefuseAligned(bool is_aligned, absl::string_view trace) {
  if (!is_aligned || FLAGS_force.value()) return absl::OkStatus();
  return InvalidArgument(trace, ": is aligned already; give --force to align it once more");
}

// A Kineto trace has host times alone: offsets move it, nothing else does.
absl::StatusOr<AlignmentStats> AlignKinetoTrace(const InputFile& file, Inputs* inputs,
                                                ByteSink& sink) {
  const std::string& trace = file.path();
  RETURN_IF_ERROR(
      RefuseFlags({&FLAGS_snapshot_pairs, &FLAGS_reference_snapshot_pairs, &FLAGS_start_walltime_ns,
                   &FLAGS_start_gpu_ns, &FLAGS_strict_monotonic, &FLAGS_keep_original},
                  absl::StrCat("is for XSpaces; ", Printable(trace),
                               " is a Kineto trace, all of whose times are of its host's clock")));
  ASSIGN_OR_RETURN(const TraceJsonTable table, LoadTraceJson(file.bytes(), trace));
  RETURN_IF_ERROR(RefuseAligned(table.header.Find(kAlignedClockKey).exists(), trace));
  if (!FLAGS_offsets.value().empty()) {
    ASSIGN_OR_RETURN(inputs->offsets, OffsetSamples::Load(FileSystem::Posix(),
                                                          UserPath(FLAGS_offsets), std::nullopt));
  }
  ASSIGN_OR_RETURN(inputs->node_id, FindNodeId(trace, *inputs));
  ASSIGN_OR_RETURN(const NodeClock clock, MakeClock(*inputs, RunClock(table.table.base_ns())));
  ASSIGN_OR_RETURN(const AlignmentStats stats,
                   AlignKineto(file.bytes(), table.header.base_time_ns.value_or(0), clock, sink));
  ASSIGN_OR_RETURN(const int64_t max_ns, ScaledValue(FLAGS_max_extrapolation_ms, 1000000));
  RETURN_IF_ERROR(CheckExtrapolation(stats, trace, max_ns));
  return stats;
}

absl::StatusOr<int> Align() {
  if (FLAGS_trace.value().empty() || FLAGS_output.value().empty()) {
    return InvalidArgument("--trace and --output are needed, see --help");
  }
  const std::string output = UserPath(FLAGS_output);
  const std::string stats_path =
      FLAGS_stats_output.value().empty() ? StatsPath(output) : UserPath(FLAGS_stats_output);
  RETURN_IF_ERROR(
      CheckOutputPaths({UserPath(FLAGS_trace), UserPath(FLAGS_snapshot_pairs),
                        UserPath(FLAGS_reference_snapshot_pairs), UserPath(FLAGS_offsets)},
                       {output, stats_path}));
  const std::string trace = UserPath(FLAGS_trace);
  TraceFilesOptions file_options;
  file_options.input = UserInputOptions();
  ASSIGN_OR_RETURN(const TraceFiles files,
                   TraceFiles::Create(FileSystem::Posix(), {trace}, file_options));
  PrintNotes(files.notes());
  ASSIGN_OR_RETURN(InputFile file, OpenOnlyTrace(files));
  if (files.form() == TraceForm::kKineto) {
    if (!output.empty() && !absl::EndsWith(absl::StripSuffix(output, ".gz"), ".json")) {
      return InvalidArgument("--output=", output, ": ", trace, " is ", files.source().noun(),
                             "; name it .json or .json.gz");
    }
    Inputs inputs;
    return Write(output, stats_path, trace, &inputs,
                 [&](ByteSink& sink) { return AlignKinetoTrace(file, &inputs, sink); });
  }
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::OfFile(std::move(file)));
  ASSIGN_OR_RETURN(const bool aligned, IsAligned(reader));
  RETURN_IF_ERROR(RefuseAligned(aligned, reader.name()));
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create(reader.name(), info, FLAGS_profile_start_ns.value()));
  ASSIGN_OR_RETURN(Inputs inputs, LoadInputs(reader, clock));
  ASSIGN_OR_RETURN(const NodeClock node, MakeClock(inputs, RunClock(clock.start_ns())));

  AlignOptions options;
  options.record = {inputs.node_id, inputs.offsets.has_value() ? "offsets" : "none"};
  options.lines.node_id = inputs.node_id;
  options.lines.strict_monotonic = FLAGS_strict_monotonic.value();
  options.lines.keep_original = FLAGS_keep_original.value();
  ASSIGN_OR_RETURN(options.lines.max_extrapolation_ns,
                   ScaledValue(FLAGS_max_extrapolation_ms, 1000000));
  return Write(output, stats_path, reader.path(), &inputs,
               [&](ByteSink& sink) { return AlignXSpace(reader, clock, node, options, sink); });
}

}  // namespace

Command XprofTraceAlignCommand() {
  return {"xprof_trace_align",
          "Rewrites one node's profile on another clock: tracer time to host time by snapshot "
          "pairs, host time to the reference node's by offsets, and back to a tracer's clock.",
          {"xprof_trace_align --trace=node2.xplane.pb --snapshot_pairs=node2.jsonl "
           "--offsets=offsets.jsonl --node_id=2 --output=node2.aligned.xplane.pb",
           "xprof_trace_align --trace=kineto_2.json.gz --offsets=offsets.jsonl "
           "--output=aligned_2.json.gz"},
          {&FLAGS_trace, &FLAGS_snapshot_pairs, &FLAGS_offsets, &FLAGS_output, &FLAGS_node_id,
           &FLAGS_target, &FLAGS_offset_slope, &FLAGS_reference_snapshot_pairs,
           &FLAGS_start_walltime_ns, &FLAGS_start_gpu_ns, &FLAGS_profile_start_ns,
           &FLAGS_max_extrapolation_ms, &FLAGS_strict_monotonic, &FLAGS_keep_original, &FLAGS_force,
           &FLAGS_stats_output},
          Align};
}

}  // namespace meridian
