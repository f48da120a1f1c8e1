#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/combine/viewer_planes.h"
#include "trace_alignment/run/combine_state.h"
#include "trace_alignment/run/waiting_summary.h"

namespace meridian {
namespace {

int64_t LargestCorrectionNs(const AlignmentStats& stats) {
  return std::abs(stats.min_correction_ns()) > std::abs(stats.max_correction_ns())
             ? stats.min_correction_ns()
             : stats.max_correction_ns();
}

void DescribeNode(const CombineState& state, size_t n, CombinedNode* out) {
  const OpenedTrace& node = state.nodes[n];
  *out = state.alignment.nodes[n].stated;
  out->set_node_id(node.id);
  if (!node.session.hostnames.empty()) out->set_hostname(node.session.hostnames[0]);
  out->set_trace(state.files.paths()[n]);
  if (node.snapshots.has_value()) {
    const std::optional<int64_t> reading_ns = ReadingUncertaintyNs(*node.snapshots);
    if (reading_ns.has_value()) out->set_tracer_uncertainty_ns(*reading_ns);
  }
  out->set_events(node.stats.events());
  out->set_max_correction_ns(LargestCorrectionNs(node.stats));
  for (int64_t rank : state.run.ranks.ranks[n]) out->add_ranks(rank);
  out->set_collectives(static_cast<int64_t>(state.run.profiles[n].events.size()));
}

// Tells by how much each node's clock was ahead of the common one in the course of the run.
void DescribeClocks(CombineState* state) {
  const int64_t start_ns = state->alignment.table.base_ns();
  state->report.set_start_ns(start_ns);
  for (const ShownTimes& reading : ReadClocks(ViewedNodes(*state), start_ns)) {
    for (CombinedNode& node : *state->report.mutable_nodes()) {
      const auto found = reading.node_times_ns.find(node.node_id());
      if (found == reading.node_times_ns.end()) continue;
      node.add_clock_at_ms(static_cast<double>(reading.time_ns - start_ns) * 1e-6);
      node.add_clock_offset_ns(found->second - reading.time_ns);
    }
  }
}

}  // namespace

void AddOutput(const OutputFile& file, CombineReport* report) {
  CombinedOutput* output = report->add_outputs();
  output->set_kind(file.kind);
  output->set_path(file.path);
  output->set_bytes(static_cast<int64_t>(file.bytes));
}

void DescribeCombined(CombineState* state) {
  state->report.set_reference_node(state->inputs.reference_node);
  state->report.set_method(std::string(AlignmentMethodName(state->alignment.method)));
  state->report.set_run_method(std::string(RunMethodName(state->run.runs.method)));
  for (const OutputFile& file : state->outputs.files()) AddOutput(file, &state->report);
  for (size_t n : state->ById()) {
    DescribeNode(*state, n, state->report.add_nodes());
    const int64_t without_time = state->nodes[n].stats.events_without_time();
    if (without_time == 0) continue;
    state->report.add_notes(absl::StrCat(
        state->files.paths()[n], ": events are written as they are, but taken for nothing: ",
        without_time, " that end before they start, or at no time that a clock can show"));
  }
  HappensBeforeSummary* check = state->report.mutable_happens_before();
  check->set_instances(state->alignment.after.instances);
  check->set_checked(state->alignment.after.checked);
  check->set_unmatched(state->alignment.after.unmatched);
  check->set_violations_before(static_cast<int64_t>(state->alignment.before.violations.size()));
  check->set_violations_after(static_cast<int64_t>(state->alignment.after.violations.size()));
  check->set_checked_on("computed");
  for (const std::string& note : state->alignment.notes) state->report.add_notes(note);
  DescribeWaiting(state->alignment.table, state->run, &state->report);
  DescribeClocks(state);
}

}  // namespace meridian
