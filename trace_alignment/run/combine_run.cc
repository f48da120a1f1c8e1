#include "trace_alignment/run/combine_run.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/run/combine_state.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/xplane/node_ids.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

std::vector<size_t> CombineState::ById() const {
  std::vector<size_t> order(nodes.size());
  absl::c_iota(order, 0);
  absl::c_sort(order, [this](size_t a, size_t b) { return nodes[a].id < nodes[b].id; });
  return order;
}

namespace {

absl::Status CheckCounts(const CombineRequest& request, size_t traces) {
  const RunFiles& files = request.files;
  if (!files.snapshots.empty() && files.snapshots.size() != traces) {
    return InvalidArgument(files.snapshots.size(), " files of snapshot pairs for ", traces,
                           " traces; --snapshots takes one per trace, in the order of the traces");
  }
  if (!files.clock_logs.empty() && files.clock_logs.size() != traces) {
    return InvalidArgument(files.clock_logs.size(), " logs of clocks for ", traces,
                           " traces; --clock_logs takes one per trace, in the order of the traces");
  }
  const size_t starts = request.profile_start_ns.size();
  if (starts > 0 && starts != traces) {
    return InvalidArgument(
        "--profile_start_ns has ", starts, " times for ", traces,
        " traces; it takes one per trace, empty for those that say themselves: ,,1794701451000");
  }
  return absl::OkStatus();
}

absl::Status Open(CombineState* state) {
  const RunFiles& files = state->request.files;
  if (!files.offsets.empty()) {
    ASSIGN_OR_RETURN(state->inputs.offsets, OffsetSamples::Load(state->file_system, files.offsets,
                                                                state->request.reference_node));
  }
  ProgressBar progress("reading", state->files.size());
  std::vector<std::optional<OpenedTrace>> opened(state->files.size());
  RETURN_IF_ERROR(ParallelFor(
      opened.size(),
      [&](size_t n) -> absl::Status {
        ASSIGN_OR_RETURN(opened[n], state->traces->Open(n));
        return absl::OkStatus();
      },
      [&](size_t n) { progress.Update(n); }));
  for (std::optional<OpenedTrace>& node : opened) state->nodes.push_back(*std::move(node));
  return absl::OkStatus();
}

// Snapshots may need what the offsets file says about the node, whose id they give: so names come
// first where they lack that.
absl::Status LoadSnapshots(CombineState* state) {
  NodeIdInputs ids;
  ids.files = state->files.paths();
  ids.given = state->request.node_ids;
  const absl::StatusOr<std::vector<AssignedNodeId>> assigned = AssignNodeIds(ids);
  if (!ids.given.empty() && !state->traces->HaveOneRankEach()) RETURN_IF_ERROR(assigned.status());
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    OpenedTrace& node = state->nodes[n];
    SnapshotPairsOptions options;
    if (state->inputs.offsets.has_value() && assigned.ok()) {
      options.offsets_header = state->inputs.offsets->AnchorsOf((*assigned)[n].id);
    }
    const std::vector<std::string>& files = state->request.files.snapshots;
    ASSIGN_OR_RETURN(node.snapshots,
                     state->traces->LoadSnapshots(n, node, files.empty() ? "" : files[n], options));
  }
  return absl::OkStatus();
}

// Reads what there is to know of the traces.
absl::Status ReadTraces(CombineState* state) {
  const CombineRequest& request = state->request;
  TraceFilesOptions options;
  options.input = request.input;
  ASSIGN_OR_RETURN(state->files,
                   TraceFiles::Create(state->file_system, request.files.traces, options));
  state->traces = RunTraces::Create(state->file_system, state->files, request);
  for (const std::string& note : request.files.notes) state->report.add_notes(note);
  for (const std::string& note : state->files.notes()) state->report.add_notes(note);
  RETURN_IF_ERROR(state->traces->CheckRequest());
  if (request.naming != PlaneNaming::kViewer && state->traces->MergesInOwnForm()) {
    state->report.add_notes("--plane_naming is of XSpaces: Kineto traces have no planes");
  }
  RETURN_IF_ERROR(CheckCounts(request, state->files.size()));
  RETURN_IF_ERROR(CheckOutputs(*state));
  RETURN_IF_ERROR(Open(state));
  return LoadSnapshots(state);
}

// What was written, to be read back.
struct WrittenFiles {
  std::vector<std::string> paths;
  // The names under which they are read.
  std::vector<std::string> readable_paths;
  CollectiveRunOptions options;
  CollectiveRun run = {};
};

// `order` is that of the nodes in the files.
WrittenFiles FilesOf(absl::string_view kind, const std::vector<size_t>& order,
                     const CombineState& state) {
  WrittenFiles written;
  for (size_t i = 0; i < state.outputs.files().size(); ++i) {
    if (state.outputs.files()[i].kind != kind) continue;
    written.paths.push_back(state.outputs.files()[i].path);
    written.readable_paths.push_back(state.outputs.ReadablePath(i));
  }
  written.options.reader.input = state.request.input;
  if (state.request.ranks.empty()) return written;
  std::vector<int64_t>& given = written.options.ranks.given_ranks;
  for (size_t n : order) {
    const std::vector<int64_t>& ranks = state.run.ranks.ranks[n];
    given.insert(given.end(), ranks.begin(), ranks.end());
  }
  return written;
}

// Ranks of merged Kineto traces cannot be told apart any more, and XSpaces made of them hold no
// programs, which tell collectives: their aligned files are checked, or what was computed.
std::vector<WrittenFiles> FilesToCheck(const CombineState& state) {
  std::vector<WrittenFiles> files;
  if (!state.request.validate) return files;
  if (!state.request.output.empty() && !state.traces->HaveOneRankEach()) {
    files.push_back(FilesOf("combined", state.ById(), state));
  }
  if (state.request.output_dir.empty()) return files;
  std::vector<size_t> order(state.nodes.size());
  absl::c_iota(order, 0);
  files.push_back(FilesOf("aligned", order, state));
  return files;
}

absl::Status CheckWritten(const WrittenFiles& written, CombineState* state) {
  const HappensBefore check = CheckHappensBefore(written.run.table);
  HappensBeforeSummary* summary = state->report.mutable_happens_before();
  if (check.checked != summary->checked() || check.unmatched != summary->unmatched()) {
    return absl::InternalError(absl::StrCat(
        written.paths[0], ": ", check.checked, " collectives were found in what was written, ",
        summary->checked(), " in what was read; please report this with your profiles"));
  }
  const int64_t violations = static_cast<int64_t>(check.violations.size());
  const bool is_first = summary->checked_on() == "computed";
  summary->set_violations_after(is_first ? violations
                                         : std::max(summary->violations_after(), violations));
  summary->set_checked_on("written file");
  for (size_t i = 0; i < std::min<size_t>(check.violations.size(), 3); ++i) {
    state->report.add_notes(DescribeViolation(written.run.table, check.violations[i]));
  }
  return absl::OkStatus();
}

void HandOver(WrittenFiles aligned, const CombineState& state) {
  // Notes name files as they were read.
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < aligned.run.profiles.size(); ++i) {
    aligned.run.profiles[i].trace = aligned.paths[i];
    names.push_back({aligned.readable_paths[i], aligned.paths[i]});
  }
  for (auto* notes : {&aligned.run.ranks.notes, &aligned.run.runs.notes}) {
    for (std::string& note : *notes) note = absl::StrReplaceAll(note, names);
  }
  *state.request.aligned_collectives = std::move(aligned.run);
}

absl::StatusOr<CombineReport> Combine(CombineState state) {
  if (state.request.files.traces.empty()) {
    return InvalidArgument("there are no profiles to combine");
  }
  RETURN_IF_ERROR(ReadTraces(&state));
  RETURN_IF_ERROR(FindClocks(&state));
  RETURN_IF_ERROR(WriteProfiles(&state));
  std::vector<WrittenFiles> written = FilesToCheck(state);
  const auto export_or_read = [&](size_t part) -> absl::Status {
    if (part == 0) return WriteExports(&state);
    WrittenFiles& files = written[part - 1];
    ASSIGN_OR_RETURN(files.run,
                     ReadCollectiveRun(state.file_system, files.readable_paths, files.options));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ParallelFor(written.size() + 1, export_or_read));
  DescribeCombined(&state);
  for (const WrittenFiles& files : written) RETURN_IF_ERROR(CheckWritten(files, &state));
  // The aligned files are the last that are checked.
  if (state.request.aligned_collectives != nullptr && !written.empty() &&
      !state.request.output_dir.empty() && !state.traces->MergesInOwnForm()) {
    HandOver(std::move(written.back()), state);
  }
  return std::move(state.report);
}

}  // namespace

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request) {
  OutputFiles outputs(file_system);
  ASSIGN_OR_RETURN(CombineReport report, CombineRun(file_system, request, outputs));
  RETURN_IF_ERROR(outputs.Commit());
  return report;
}

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request,
                                         OutputFiles& outputs) {
  return Combine({file_system, request, outputs});
}

}  // namespace meridian
