#include "pipeline/align_stage.h"

#include <optional>
#include <set>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "pipeline/findings.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/run/waiting_summary.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/sources/collective_log.h"

namespace meridian {
namespace {

// A profile may begin or end in the middle of a collective; one that lacks more lost events.
constexpr double kMostLost = 0.05;

void DescribeEvidence(const CombineReport& combined, Evidence* evidence) {
  evidence->set_job_ranks(combined.job_ranks());
  *evidence->mutable_missing_ranks() = combined.missing_ranks();
  for (const CombinedCoverage& rank : combined.coverage()) {
    const auto lost = static_cast<double>(rank.expected() - rank.collectives());
    if (lost <= kMostLost * static_cast<double>(rank.expected())) continue;
    *evidence->add_lost() = rank;
  }
  for (const CombinedNode& node : combined.nodes()) {
    if (!HasUnknownClock(combined, node)) continue;
    for (const int64_t rank : node.ranks()) evidence->add_unknown_clocks(rank);
  }
  const std::optional<int64_t> uncertainty_ns = ClockUncertaintyNs(combined);
  if (uncertainty_ns.has_value()) {
    evidence->set_clock_uncertainty_ms(static_cast<double>(*uncertainty_ns) * kMsPerNs);
  }
  const HappensBeforeSummary& check = combined.happens_before();
  evidence->set_collectives(check.instances());
  evidence->set_complete_collectives(check.instances() - check.incomplete());
  const bool by_order = combined.run_method() == "subsequence" || combined.run_method() == "order";
  evidence->set_matched_by_order(by_order && check.instances() > 0);
  evidence->set_steps(combined.steps());
  evidence->set_common_steps(combined.steps_on_all_ranks());
}

absl::string_view NoteOnFile(absl::string_view kind) {
  if (kind == "combined") return "one profile of all ranks: xprof, TensorBoard, xspace_inspect";
  if (kind == "perfetto") return "open it at ui.perfetto.dev";
  if (kind == "trace_json") return "Chrome trace: chrome://tracing, Perfetto";
  if (kind == "aligned") return "a rank's profile on the common clock";
  if (kind == "chakra") return "execution traces: astra_simulate, ASTRA-sim";
  if (kind == "calibration") return "network, system and corrections: --calibration";
  return "";
}

}  // namespace

void AddFile(absl::string_view kind, absl::string_view name, int64_t bytes, RunReport* report) {
  ReportedFile& file = *report->add_files();
  file.set_kind(std::string(kind));
  file.set_path(std::string(name));
  file.set_bytes(bytes);
  file.set_note(std::string(NoteOnFile(kind)));
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

void DescribeAlignment(absl::string_view folder, RunReport* report) {
  const CombineReport& combined = report->combine();
  RunSummary& run = *report->mutable_run();
  if (!IsMadeUp(combined.start_ns())) {
    run.set_recorded(UtcText(absl::FromUnixNanos(combined.start_ns())));
  }
  run.set_wall_ms(combined.wall_ms());
  std::set<int64_t> ranks;
  std::set<std::string> hosts;
  for (const CombinedNode& node : combined.nodes()) {
    if (!node.hostname().empty()) hosts.insert(node.hostname());
    ranks.insert(node.ranks().begin(), node.ranks().end());
  }
  run.set_ranks(static_cast<int64_t>(ranks.size()));
  for (const std::string& host : hosts) run.add_hosts(host);
  DescribeEvidence(combined, report->mutable_evidence());
  *report->mutable_slow_links() = combined.slow_links();
  *report->mutable_notes() = combined.notes();
  for (const CombinedOutput& output : combined.outputs()) {
    AddFile(output.kind(), absl::StripPrefix(output.path(), folder), output.bytes(), report);
  }
}

RunReport AlignmentReport(const CombineReport& combined, const std::string& title) {
  RunReport report;
  *report.mutable_combine() = combined;
  DescribeAlignment("", &report);
  report.set_title(title);
  report.set_created(UtcText(absl::Now()));
  AddFindings(&report);
  return report;
}

}  // namespace meridian
