#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/clocks/clock_log.h"
#include "trace_alignment/probes/probe_offsets.h"
#include "trace_alignment/run/combine_state.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

// Returns the ranks that the traces state; nothing unless all do, and differently.
std::vector<int64_t> StatedRanks(const std::vector<OpenedTrace>& nodes) {
  std::vector<int64_t> ranks;
  for (const OpenedTrace& node : nodes) {
    const std::vector<LocalDevice>& devices = node.collectives.devices;
    if (devices.empty() || devices[0].global_id == kUnknownId) return {};
    ranks.push_back(devices[0].global_id);
  }
  const std::set<int64_t> different(ranks.begin(), ranks.end());
  return different.size() == ranks.size() ? ranks : std::vector<int64_t>();
}

// The flag, the snapshots' header, the file's name.
absl::Status AssignIds(CombineState* state) {
  NodeIdInputs ids;
  ids.files = state->files.paths();
  ids.given = state->request.node_ids;
  if (state->traces->HaveOneRankEach()) {
    if (ids.given.empty()) ids.given = StatedRanks(state->nodes);
  } else {
    for (const OpenedTrace& node : state->nodes) {
      const std::optional<SnapshotPairs>& snapshots = node.snapshots;
      ids.from_snapshots.push_back(snapshots.has_value() ? snapshots->node_id : std::nullopt);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<AssignedNodeId> final_ids, AssignNodeIds(ids));
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    state->nodes[n].id = final_ids[n].id;
    if (state->nodes[n].unread_events.empty()) continue;
    state->report.add_notes(absl::StrCat(
        state->files.paths()[n], ": events are written as they are, but taken for nothing: ",
        state->nodes[n].unread_events));
  }
  for (const AssignedNodeId& id : final_ids) {
    if (!id.is_position) continue;
    state->report.add_notes(
        "node ids are the positions of the traces: their names hold no numbers");
    break;
  }
  return absl::OkStatus();
}

// Traces of one rank each that nothing ties together keep their clocks only if that was asked for.
absl::Status CheckTied(const CombineState& state) {
  const bool has_collectives =
      std::any_of(state.run.profiles.begin(), state.run.profiles.end(),
                  [](const ProfileCollectives& profile) { return !profile.events.empty(); });
  const AlignmentMethod method = state.request.alignment.method;
  const RunFiles& files = state.request.files;
  const bool needs_collectives =
      method == AlignmentMethod::kCollectives ||
      (method == AlignmentMethod::kAuto && files.offsets.empty() && files.probes.empty());
  if (has_collectives || !needs_collectives || state.nodes.size() < 2) return absl::OkStatus();
  return InvalidArgument(DescribeNoCollectives(state.run.profiles),
                         ": nothing ties their clocks together; profile the devices, give "
                         "--offsets or --probes, or --method=none");
}

absl::Status Match(CombineState* state) {
  RankOptions ranks;
  ranks.given_ranks = state->request.ranks;
  std::vector<ProfileCollectives> profiles;
  for (OpenedTrace& node : state->nodes) profiles.push_back(std::move(node.collectives));
  ASSIGN_OR_RETURN(state->run, MatchCollectives(std::move(profiles), ranks));
  if (state->traces->HaveOneRankEach()) RETURN_IF_ERROR(CheckTied(*state));
  for (const std::string& note : state->run.ranks.notes) state->report.add_notes(note);
  for (const std::string& note : state->run.runs.notes) state->report.add_notes(note);
  return absl::OkStatus();
}

// Ranks that have collectives, but none that ties them to the reference, are of another job.
absl::Status CheckReachable(CombineState* state) {
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    if (state->alignment.nodes[n].stated.method() != "unreachable" ||
        state->run.profiles[n].events.empty())
      continue;
    return InvalidArgument(
        state->run.profiles[n].trace, ": none of its collectives ties it to node ",
        state->inputs.reference_node, "; are the traces of one job, and of the same steps?");
  }
  std::vector<std::string> missing;
  const std::vector<uint32_t>& nodes = state->run.table.node_of_rank();
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] == CollectiveTable::kNoNode) missing.push_back(absl::StrCat(rank));
  }
  if (!missing.empty()) {
    state->report.add_notes(absl::StrCat("there is no trace of rank ", absl::StrJoin(missing, ", "),
                                         ": collectives with it are unmatched"));
  }
  return absl::OkStatus();
}

// What the user said, the node that the offsets are relative to, the lowest.
int64_t ReferenceNode(const CombineState& state) {
  if (state.request.reference_node.has_value()) return *state.request.reference_node;
  if (state.inputs.offsets.has_value() && state.inputs.offsets->reference_node().has_value()) {
    return *state.inputs.offsets->reference_node();
  }
  return state.nodes[state.ById()[0]].id;
}

// Returns within how much of the time that is kept the clock of a node was, by its log.
absl::StatusOr<std::optional<int64_t>> ClockWithin(const CombineState& state, size_t n) {
  const std::vector<std::string>& logs = state.request.files.clock_logs;
  if (logs.empty() || logs[n].empty()) return std::nullopt;
  const int64_t start_ns = state.nodes[n].clock.start_ns();
  return LoadClockLog(state.file_system, logs[n], start_ns,
                      state.nodes[n].session.profile_stop_ns.value_or(start_ns));
}

absl::Status Align(CombineState* state) {
  for (size_t n = 0; n < state->nodes.size(); ++n) {
    const OpenedTrace& node = state->nodes[n];
    ASSIGN_OR_RETURN(const std::optional<int64_t> clock_within_ns, ClockWithin(*state, n));
    state->inputs.nodes.push_back(
        {node.id, node.clock, node.snapshots, node.session.profile_stop_ns, clock_within_ns,
         node.session.hostnames.empty() ? "" : node.session.hostnames[0]});
  }
  state->inputs.reference_node = ReferenceNode(*state);
  const bool may_use_probes = state->request.alignment.method == AlignmentMethod::kAuto ||
                              state->request.alignment.method == AlignmentMethod::kProbes;
  if (may_use_probes && !state->request.files.probes.empty()) {
    ASSIGN_OR_RETURN(
        ProbeOffsets probes,
        LoadProbeOffsets(state->file_system, state->request.files.probes,
                         state->inputs.reference_node, state->request.alignment.max_drift_ppm));
    state->inputs.probes.emplace(std::move(probes.samples));
    for (const std::string& note : probes.notes) state->report.add_notes(note);
  }
  ASSIGN_OR_RETURN(state->alignment, AlignRun(state->inputs, state->run, state->request.alignment));
  return state->traces->HaveOneRankEach() ? CheckReachable(state) : absl::OkStatus();
}

}  // namespace

absl::Status FindClocks(CombineState* state) {
  RETURN_IF_ERROR(AssignIds(state));
  RETURN_IF_ERROR(Match(state));
  return Align(state);
}

}  // namespace meridian
