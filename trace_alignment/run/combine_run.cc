#include "trace_alignment/run/combine_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/run/combine_state.h"
#include "trace_alignment/run/node_bytes.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/wire/packed_bytes.h"
#include "xla_profiler/sources/trace_source.h"
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

absl::Status CheckCounts(const CombineRequest& request) {
  const RunFiles& files = request.files;
  if (!files.snapshots.empty() && files.snapshots.size() != files.traces.size()) {
    return InvalidArgument(files.snapshots.size(), " files of snapshot pairs for ",
                           files.traces.size(),
                           " traces; --snapshots takes one per trace, in the order of the traces");
  }
  const size_t starts = request.profile_start_ns.size();
  if (starts > 0 && starts != files.traces.size()) {
    return InvalidArgument(
        "--profile_start_ns has ", starts, " times for ", files.traces.size(),
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
  state->profiles.resize(files.traces.size());
  for (size_t n = 0; n < files.traces.size(); ++n) {
    ASSIGN_OR_RETURN(SessionClock unknown, SessionClock::Create(files.traces[n], {}, 0));
    state->nodes.emplace_back(std::move(unknown));
    if (!state->processes.Has(n)) continue;
    RETURN_IF_ERROR(state->traces->Open(n, &state->nodes[n]));
  }
  return absl::OkStatus();
}

// Snapshots may need what the offsets file says about the node, whose id they give: so names come
// first where they lack that.
absl::Status LoadSnapshots(CombineState* state) {
  NodeIdInputs ids;
  ids.files = state->request.files.traces;
  ids.given = state->request.node_ids;
  const absl::StatusOr<std::vector<AssignedNodeId>> assigned = AssignNodeIds(ids);
  if (!ids.given.empty() && !state->traces->HaveOneRankEach()) RETURN_IF_ERROR(assigned.status());
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    if (!state->processes.Has(n)) continue;
    RunNode& node = state->nodes[n];
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

// Reads what there is to know of this process's traces.
absl::Status ReadOwn(CombineState* state) {
  const CombineRequest& request = state->request;
  TraceFilesOptions options;
  options.input = request.input;
  options.is_own = [&](size_t n) { return state->processes.Has(n); };
  ASSIGN_OR_RETURN(state->files,
                   TraceFiles::Create(state->file_system, request.files.traces, options));
  state->traces = RunTraces::Create(state->file_system, state->files, request);
  for (const std::string& note : request.files.notes) state->report.add_notes(note);
  for (const std::string& note : state->files.notes()) state->report.add_notes(note);
  RETURN_IF_ERROR(state->traces->CheckRequest());
  RETURN_IF_ERROR(CheckCounts(request));
  if (state->processes.is_first()) RETURN_IF_ERROR(CheckOutputs(*state));
  RETURN_IF_ERROR(Open(state));
  RETURN_IF_ERROR(LoadSnapshots(state));
  ProgressBar progress("reading", state->nodes.size());
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    if (!state->processes.Has(n)) continue;
    progress.Update(n);
    ASSIGN_OR_RETURN(state->profiles[n], state->traces->ReadCollectives(n));
  }
  return absl::OkStatus();
}

// Tells the first process of the others' nodes.
absl::Status GatherNodes(CombineState* state) {
  CollectivesPacker packer;
  const auto pack = [&](PackedBytes& bytes, RunNode& node, ProfileCollectives& profile) {
    bytes(node.base_ns, node.unread_events, node.session, node.snapshots);
    packer.Pack(bytes, profile);
  };
  const auto make = [&](size_t n) {
    PackedBytes bytes;
    bool has_one_rank = state->traces->HaveOneRankEach();
    bytes(has_one_rank);
    pack(bytes, state->nodes[n], state->profiles[n]);
    state->profiles[n] = {};
    return bytes.bytes();
  };
  const auto take = [&](size_t n, absl::string_view packed) -> absl::Status {
    PackedBytes bytes(packed);
    bool has_one_rank = false;
    bytes(has_one_rank);
    const std::vector<std::string>& traces = state->request.files.traces;
    if (has_one_rank != state->traces->HaveOneRankEach()) {
      return DetectOneSource(state->file_system, {traces[0], traces[n]}).status();
    }
    pack(bytes, state->nodes[n], state->profiles[n]);
    RETURN_IF_ERROR(bytes.Finish());
    ASSIGN_OR_RETURN(state->nodes[n].clock, SessionClock::Create(traces[n], state->nodes[n].session,
                                                                 state->request.StartOf(n)));
    return absl::OkStatus();
  };
  return state->processes.Gather(state->nodes.size(), make, take);
}

// Tells the other processes the clocks of their nodes.
absl::Status ScatterClocks(CombineState* state) {
  if (!state->processes.is_first())
    state->alignment.nodes.assign(state->nodes.size(), AlignedNode(RunClock(0)));
  const auto make = [&](size_t n) {
    PackedBytes bytes;
    bytes(state->nodes[n].id, state->alignment.nodes[n]);
    return bytes.bytes();
  };
  const auto take = [&](size_t n, absl::string_view packed) {
    PackedBytes bytes(packed);
    bytes(state->nodes[n].id, state->alignment.nodes[n]);
    return bytes.Finish();
  };
  return state->processes.Scatter(state->nodes.size(), make, take);
}

absl::Status GatherStats(CombineState* state) {
  const auto make = [&](size_t n) {
    PackedBytes bytes;
    std::string stats = state->nodes[n].stats.SerializeAsString();
    bytes(state->nodes[n].aligned_bytes, stats);
    return bytes.bytes();
  };
  const auto take = [&](size_t n, absl::string_view packed) {
    PackedBytes bytes(packed);
    std::string stats;
    bytes(state->nodes[n].aligned_bytes, stats);
    state->nodes[n].stats.ParseFromString(stats);
    return bytes.Finish();
  };
  return state->processes.Gather(state->nodes.size(), make, take);
}

// Puts the files of all processes in their place: at once, unless there are some already.
absl::Status Publish(const std::string& folder, CombineState* state) {
  const std::string target = AlignedFolder(*state);
  const std::string parent = target.substr(0, target.rfind('/'));
  RETURN_IF_ERROR(state->file_system.CreateDirectories(parent));
  if (!state->file_system.Kind(target).ok()) {
    RETURN_IF_ERROR(state->file_system.Rename(folder.substr(0, folder.size() - 1), target));
    return state->file_system.SyncDirectory(parent);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, state->file_system.List(folder));
  for (const std::string& name : names) {
    RETURN_IF_ERROR(
        state->file_system.Rename(absl::StrCat(folder, name), absl::StrCat(target, "/", name)));
  }
  return state->file_system.SyncDirectory(target);
}

// Several processes write into a folder that the first one renames when all have succeeded.
// Should one be lost, the others remove the folder with all that it had written.
absl::StatusOr<CombineReport> WriteTogether(CombineState* state) {
  std::string folder = absl::StrCat(state->request.output_dir, "/.combine.", getpid(), ".",
                                    state->nodes[0].clock.start_ns(), ".tmp/");
  state->processes.Broadcast(&folder);
  const UnfinishedFile unfinished(folder);
  absl::Status status = state->processes.Agree(WriteAlignedFiles(folder, state));
  if (status.ok()) status = GatherStats(state);
  // The first alone, since it is its moment that counts.
  if (status.ok()) {
    status = state->processes.Agree(state->processes.is_first() ? Publish(folder, state)
                                                                : absl::OkStatus());
  }
  std::error_code ignored;
  if (state->processes.is_first()) std::filesystem::remove_all(folder, ignored);
  RETURN_IF_ERROR(status);
  if (state->processes.is_first()) DescribeCombined(state);
  return std::move(state->report);
}

// `order` is that of the nodes in the files.
absl::Status CheckFiles(absl::string_view kind, const std::vector<size_t>& order,
                        CombineState* state) {
  // They are read under other names than they will have.
  std::vector<std::string> files, names;
  for (size_t i = 0; i < state->outputs.files().size(); ++i) {
    if (state->outputs.files()[i].kind != kind) continue;
    files.push_back(state->outputs.ReadablePath(i));
    names.push_back(state->outputs.files()[i].path);
  }
  CollectiveRunOptions options;
  options.reader.input = state->request.input;
  if (!state->request.ranks.empty()) {
    for (size_t n : order) {
      const std::vector<int64_t>& ranks = state->run.ranks.ranks[n];
      options.ranks.given_ranks.insert(options.ranks.given_ranks.end(), ranks.begin(), ranks.end());
    }
  }
  ASSIGN_OR_RETURN(const CollectiveRun written,
                   ReadCollectiveRun(state->file_system, files, options));
  const HappensBefore check = CheckHappensBefore(written.table);
  HappensBeforeSummary* summary = state->report.mutable_happens_before();
  if (check.checked != summary->checked() || check.unmatched != summary->unmatched()) {
    return absl::InternalError(absl::StrCat(
        names[0], ": ", check.checked, " collectives were found in what was written, ",
        summary->checked(), " in what was read; please report this with your profiles"));
  }
  const int64_t violations = static_cast<int64_t>(check.violations.size());
  const bool is_first = summary->checked_on() == "computed";
  summary->set_violations_after(is_first ? violations
                                         : std::max(summary->violations_after(), violations));
  summary->set_checked_on("written file");
  for (size_t i = 0; i < std::min<size_t>(check.violations.size(), 3); ++i) {
    state->report.add_notes(DescribeViolation(written.table, check.violations[i]));
  }
  return absl::OkStatus();
}

// Reads the collectives back from what was written.
absl::Status CheckWritten(CombineState* state) {
  // Ranks of merged Kineto traces cannot be told apart any more, and XSpaces made of them hold no
  // programs, which tell collectives: their aligned files are checked, or what was computed.
  if (!state->request.output.empty() && !state->traces->HaveOneRankEach()) {
    RETURN_IF_ERROR(CheckFiles("combined", state->ById(), state));
  }
  if (state->request.output_dir.empty()) return absl::OkStatus();
  std::vector<size_t> order(state->nodes.size());
  absl::c_iota(order, 0);
  return CheckFiles("aligned", order, state);
}

absl::StatusOr<CombineReport> Combine(CombineState state) {
  if (state.request.files.traces.empty()) {
    return InvalidArgument("there are no profiles to combine");
  }
  RunProcesses& processes = state.processes;
  RETURN_IF_ERROR(processes.Agree(ReadOwn(&state)));
  RETURN_IF_ERROR(GatherNodes(&state));
  RETURN_IF_ERROR(processes.Agree(processes.is_first() ? FindClocks(&state) : absl::OkStatus()));
  RETURN_IF_ERROR(ScatterClocks(&state));
  if (!processes.is_alone()) return WriteTogether(&state);
  const CombineRequest& request = state.request;
  if (!request.output_dir.empty()) {
    RETURN_IF_ERROR(WriteAlignedFiles(AlignedFolder(state), &state));
  }
  const bool has_exports = !request.trace_json.empty() || !request.perfetto.empty();
  if (!request.output.empty() || request.output_dir.empty() || has_exports) {
    RETURN_IF_ERROR(WriteCombinedFile(&state));
  }
  RETURN_IF_ERROR(WriteExports(&state));
  DescribeCombined(&state);
  if (request.validate) RETURN_IF_ERROR(CheckWritten(&state));
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
  RunProcesses alone;
  return Combine({file_system, request, alone, outputs});
}

absl::StatusOr<CombineReport> CombineRun(FileSystem& file_system, const CombineRequest& request,
                                         RunProcesses& processes) {
  OutputFiles outputs(file_system);
  return Combine({file_system, request, processes, outputs});
}

}  // namespace meridian
