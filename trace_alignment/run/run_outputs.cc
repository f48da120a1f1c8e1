#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "trace_alignment/combine/combiner.h"
#include "trace_alignment/combine/viewer_planes.h"
#include "trace_alignment/run/combine_state.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/trace_export/trace_export.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Returns the folder that gets the aligned files.
std::string AlignedFolder(const CombineState& state) {
  const std::string& name = state.request.files.name;
  return absl::StrCat(state.request.output_dir, "/plugins/profile/",
                      name.empty() ? "aligned" : name);
}

// Returns the names of the aligned files, by node: the traces' own, with the position where two would be the same.
std::vector<std::string> AlignedNames(const CombineState& state) {
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  for (size_t n = 0; n < state.files.size(); ++n) {
    names.push_back(state.traces->AlignedName(n));
    ++uses[names.back()];
  }
  for (size_t n = 0; n < names.size(); ++n) {
    if (uses[names[n]] > 1) names[n] = absl::StrCat("trace", n, "_", names[n]);
  }
  return names;
}

// Whoever takes the folder for the run would take profiles of an earlier one for its nodes.
absl::Status CheckNoOtherProfiles(const CombineState& state) {
  if (state.request.output_dir.empty()) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> there =
      state.file_system.List(AlignedFolder(state));
  if (!there.ok()) return absl::OkStatus();
  const std::vector<std::string> aligned = AlignedNames(state);
  const std::set<std::string> names(aligned.begin(), aligned.end());
  for (const std::string& name : *there) {
    if (!state.traces->IsTraceName(name) || names.count(name) > 0) continue;
    return InvalidArgument(
        AlignedFolder(state), "/", name,
        " is there, but no node of this run; remove the folder, or choose another --output_dir");
  }
  return absl::OkStatus();
}

AlignmentRecord RecordOf(const CombineState& state, size_t n) {
  return {state.nodes[n].id, state.alignment.nodes[n].stated.method()};
}

// Returns the ranks of the planes that are one device each.
DeviceRanks RanksOfPlanes(const CombineState& state) {
  DeviceRanks ranks;
  for (size_t n = 0; n < state.nodes.size(); ++n) {
    const std::vector<LocalDevice>& devices = state.run.profiles[n].devices;
    for (size_t d = 0; d < devices.size(); ++d) {
      // Kineto's are "GPU 0", and one becomes the plane /device:GPU:0.
      absl::string_view number = devices[d].name;
      const std::string plane = absl::ConsumePrefix(&number, "GPU ")
                                    ? absl::StrCat(kGpuPlanePrefix, number)
                                    : devices[d].name;
      const int64_t rank = state.run.ranks.ranks[n][d];
      if (IsDevicePlane(plane) && rank >= 0) ranks[{state.nodes[n].id, plane}] = rank;
    }
  }
  return ranks;
}

// Does both at the same time; the first may be null. When the second writes a file, and the first whole
// ones, those of the first come before it among the outputs, whichever is done first.
absl::Status BothAtOnce(const std::function<absl::Status()>& first,
                        absl::FunctionRef<absl::Status()> second) {
  if (first == nullptr) return second();
  return ParallelFor(2, [&](size_t i) { return i == 0 ? first() : second(); });
}

// Writes the combined file, or the unnamed one, in a viewer's format.
using ExportFunction = absl::StatusOr<ExportStats> (*)(const XSpaceReader&, const ExportOptions&,
                                                       ByteSink&);

// Does `beside`, unless it is null, at the same time.
absl::Status Export(const std::string& kind, const std::string& path, ExportFunction export_to,
                    const std::function<absl::Status()>& beside, CombineState* state) {
  if (path.empty()) return beside == nullptr ? absl::OkStatus() : beside();
  std::unique_ptr<MappedRegion> region;
  std::optional<XSpaceReader> opened;
  if (state->unnamed != nullptr) {
    ASSIGN_OR_RETURN(region, state->file_system.MapTemporary(*state->unnamed));
    ASSIGN_OR_RETURN(opened, XSpaceReader::FromBytes(region->bytes(), "the combined profile"));
  } else {
    XSpaceReaderOptions reader_options;
    reader_options.input = state->request.input;
    const std::vector<OutputFile>& files = state->outputs.files();
    const auto combined = std::find_if(
        files.begin(), files.end(), [](const OutputFile& file) { return file.kind == "combined"; });
    const std::string written = state->outputs.ReadablePath(combined - files.begin());
    ASSIGN_OR_RETURN(opened, XSpaceReader::Open(state->file_system, written, reader_options));
  }
  const XSpaceReader& combined = *opened;
  ProgressBar progress(kind, combined.source().bytes.size());
  ExportOptions options;
  std::string planes;
  std::optional<XSpaceReader> additions;
  ASSIGN_OR_RETURN(const SessionInfo session, ReadSessionInfo(combined));
  const int64_t start_ns = session.profile_start_ns.value_or(0);
  options.clock_readings = ReadClocks(ViewedNodes(*state), start_ns);
  options.ranks = RanksOfPlanes(*state);
  std::vector<int64_t> node_ids;
  for (const OpenedTrace& node : state->nodes) node_ids.push_back(node.id);
  ASSIGN_OR_RETURN(planes, ViewerPlanes({state->alignment.table, state->run.profiles, node_ids,
                                         options.clock_readings, start_ns}));
  if (!planes.empty()) {
    ASSIGN_OR_RETURN(additions, XSpaceReader::FromBytes(planes, "what was found out"));
    options.additions = &*additions;
  }
  // One bar is enough.
  if (beside == nullptr) options.progress = [&](uint64_t offset) { progress.Update(offset); };
  ExportStats stats;
  RETURN_IF_ERROR(state->outputs.Write(kind, path, [&](ByteSink& sink) {
    return BothAtOnce(beside, [&]() -> absl::Status {
      ASSIGN_OR_RETURN(stats, export_to(combined, options, sink));
      return absl::OkStatus();
    });
  }));
  if (stats.left_out > 0) {
    state->report.add_notes(absl::StrCat(kind, ": ", stats.left_out,
                                         " events without a place on a timeline are left out"));
  }
  return absl::OkStatus();
}

// Those of combining take the place of these statistics.
bool Combines(const CombineRequest& request) {
  const bool has_exports = !request.trace_json.empty() || !request.perfetto.empty();
  return !request.output.empty() || request.output_dir.empty() || has_exports;
}

absl::Status WriteAlignedFiles(CombineState* state) {
  if (state->request.output_dir.empty()) return absl::OkStatus();
  const std::string folder = AlignedFolder(*state);
  RETURN_IF_ERROR(state->file_system.CreateDirectories(folder));
  const std::vector<std::string> names = AlignedNames(*state);
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    const OpenedTrace& node = state->nodes[n];
    AlignOptions options;
    options.record = RecordOf(*state, n);
    options.lines.node_id = node.id;
    options.lines.max_extrapolation_ns = state->request.max_extrapolation_ns;
    options.lines.keep_original = state->request.keep_original;
    RETURN_IF_ERROR(state->outputs.Write(
        "aligned", absl::StrCat(folder, "/", names[n]), [&](ByteSink& sink) -> absl::Status {
          ASSIGN_OR_RETURN(
              AlignmentStats stats,
              state->traces->WriteAligned(n, node, state->alignment.nodes[n].clock, options, sink));
          if (!Combines(state->request)) state->nodes[n].stats = std::move(stats);
          return absl::OkStatus();
        }));
  }
  return absl::OkStatus();
}

absl::Status WriteCombinedFile(CombineState* state) {
  const CombineRequest& request = state->request;
  const std::vector<size_t> order = state->ById();
  const bool has_exports = !request.trace_json.empty() || !request.perfetto.empty();
  const bool merges = state->traces->MergesInOwnForm();
  const auto write = [&](absl::FunctionRef<absl::Status(ByteSink&)> combine) -> absl::Status {
    const auto write_all = [&](ByteSink& sink) {
      return BothAtOnce([&] { return WriteAlignedFiles(state); }, [&] { return combine(sink); });
    };
    if (!request.output.empty()) return state->outputs.Write("combined", request.output, write_all);
    // Without any output it is still done, to see that it can be.
    DiscardingSink nowhere;
    return write_all(nowhere);
  };
  if (merges) {
    RETURN_IF_ERROR(
        write([&](ByteSink& sink) { return state->traces->Merge(order, state, sink); }));
    if (!has_exports) return absl::OkStatus();
  }
  std::vector<CombineInput> inputs(order.size());
  const auto open_input = [&](size_t i) -> absl::Status {
    const size_t n = order[i];
    ASSIGN_OR_RETURN(const XSpaceReader* reader, state->traces->AsXSpace(n, &state->nodes[n]));
    inputs[i] = {reader, &state->nodes[n].clock, &state->alignment.nodes[n].clock,
                 RecordOf(*state, n)};
    return absl::OkStatus();
  };
  // A trace that is converted is in memory meanwhile, as events and as bytes.
  RETURN_IF_ERROR(ParallelFor(order.size(), open_input, nullptr, /*most_threads=*/2));
  uint64_t total_bytes = 0;
  for (const CombineInput& input : inputs) total_bytes += input.reader->source().bytes.size();
  ProgressBar progress("combining", total_bytes);
  CombineOptions options;
  options.naming = request.naming;
  options.max_extrapolation_ns = request.max_extrapolation_ns;
  options.keep_original = request.keep_original;
  options.progress = [&](uint64_t bytes) { progress.Update(bytes); };
  const bool is_written = !merges && !request.output.empty();
  // Viewers need not show what nobody writes, however many devices there are.
  if (!is_written && !has_exports) options.naming = PlaneNaming::kNodePrefix;
  if (options.naming == PlaneNaming::kViewer && !request.output_dir.empty()) {
    ASSIGN_OR_RETURN(const bool fit, FitViewers(inputs));
    if (!fit) {
      options.naming = PlaneNaming::kNodePrefix;
      state->report.add_notes(absl::StrCat(
          is_written ? "the combined profile names" : "exports name",
          " planes as --plane_naming=node_prefix does: of more than ", kMaxViewerDevices,
          " devices viewers show no file; the aligned profiles are one per node"));
    }
  }
  const auto combine = [&](ByteSink& sink) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<AlignmentStats> stats,
                     CombineXSpaces(inputs, options, sink));
    // What was merged has more: XSpaces made of other traces have no instants.
    for (size_t i = 0; i < order.size() && !merges; ++i) state->nodes[order[i]].stats = stats[i];
    return absl::OkStatus();
  };
  if (is_written || !has_exports) return write(combine);
  if (!merges) RETURN_IF_ERROR(WriteAlignedFiles(state));
  ASSIGN_OR_RETURN(state->unnamed,
                   state->file_system.CreateTemporary(request.input.temporary_directory));
  WritableFileSink sink(*state->unnamed);
  return combine(sink);
}

}  // namespace

absl::Status CheckOutputs(const CombineState& state) {
  if (state.request.keep_original && state.traces->MergesInOwnForm()) {
    return InvalidArgument(
        "--keep_original: events of XSpaces keep their times as stats, those of ",
        "Kineto traces do not");
  }
  const RunFiles& files = state.request.files;
  std::vector<std::string> inputs = files.traces;
  inputs.insert(inputs.end(), files.snapshots.begin(), files.snapshots.end());
  inputs.insert(inputs.end(), files.probes.begin(), files.probes.end());
  inputs.push_back(files.offsets);
  std::vector<std::string> outputs = state.request.other_outputs;
  outputs.insert(outputs.end(),
                 {state.request.output, state.request.trace_json, state.request.perfetto});
  if (!state.request.output_dir.empty()) {
    for (const std::string& name : AlignedNames(state)) {
      outputs.push_back(absl::StrCat(AlignedFolder(state), "/", name));
    }
  }
  RETURN_IF_ERROR(CheckOutputPaths(inputs, outputs));
  RETURN_IF_ERROR(CheckNoOtherProfiles(state));
  for (const std::string& path : outputs) {
    const bool is_made = absl::StartsWith(path, absl::StrCat(AlignedFolder(state), "/"));
    if (path.empty() || is_made) continue;
    const absl::Status status = AtomicFileWriter::Create(state.file_system, path).status();
    // Folders are made when there is something to write.
    if (!absl::IsNotFound(status)) RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

std::vector<ViewedNode> ViewedNodes(const CombineState& state) {
  std::vector<ViewedNode> viewed;
  for (size_t n : state.ById()) {
    const int64_t begin_ns = state.nodes[n].clock.start_ns();
    viewed.push_back({state.nodes[n].id, &state.alignment.nodes[n].clock,
                      std::max(begin_ns, state.nodes[n].session.profile_stop_ns.value_or(0))});
  }
  return viewed;
}

absl::Status WriteProfiles(CombineState* state) {
  return Combines(state->request) ? WriteCombinedFile(state) : WriteAlignedFiles(state);
}

absl::Status WriteExports(CombineState* state) {
  const CombineRequest& request = state->request;
  std::string trace_json = request.trace_json;
  int64_t events = 0;
  for (const OpenedTrace& node : state->nodes) events += node.stats.events();
  if (!trace_json.empty() && events > request.most_json_events) {
    state->report.add_notes(absl::StrCat(
        "no trace JSON: that of ", WithThousands(events),
        " events may be longer than chrome://tracing can open; the Perfetto trace shows the same "
        "(--trace_json writes it all the same)"));
    trace_json.clear();
  }
  return Export(
      "perfetto", request.perfetto, ExportPerfetto,
      [&] { return Export("trace_json", trace_json, ExportTraceJson, nullptr, state); }, state);
}

}  // namespace meridian
