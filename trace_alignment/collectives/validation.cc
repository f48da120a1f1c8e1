#include "trace_alignment/collectives/validation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "trace_alignment/collectives/happens_before.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Reports list at most this many violations.
constexpr int kMaxViolationDetails = 1000;

ViolationReport Describe(const CollectiveTable& table, const Violation& violation) {
  const CollectiveInstance& instance = table.instances()[violation.instance];
  const MatchedOp& op = table.OpOf(instance);
  const CollectiveMember& ended = table.members()[violation.ended];
  const CollectiveMember& started = table.members()[violation.started];
  ViolationReport report;
  report.set_kind(std::string(CollectiveKindName(op.kind)));
  report.set_module(op.module);
  report.set_instruction(op.instruction);
  if (instance.group != CollectiveInstance::kNoGroup) {
    for (int64_t rank : table.groups()[instance.group]) report.add_group(rank);
  }
  report.set_ended_rank(ended.rank);
  report.set_started_rank(started.rank);
  report.set_gap_ns(static_cast<double>(violation.gap_ps) / 1e3);
  report.set_ended_correlation_id(static_cast<int64_t>(ended.correlation_id));
  report.set_started_correlation_id(static_cast<int64_t>(started.correlation_id));
  return report;
}

void DescribeTraces(const CollectiveRun& run, ValidationReport* report) {
  for (size_t p = 0; p < run.profiles.size(); ++p) {
    const ProfileCollectives& profile = run.profiles[p];
    ValidatedTrace* trace = report->add_traces();
    trace->set_trace(profile.trace);
    for (int64_t rank : run.ranks.ranks[p]) trace->add_ranks(rank);
    trace->set_collectives(static_cast<int64_t>(profile.events.size()));
    for (const auto& [reason, entry] : profile.unresolved.entries()) {
      trace->add_unresolved(
          absl::StrCat(entry.count, " x ", reason, ", e.g. ", FirstCharacters(entry.example, 100)));
    }
  }
}

}  // namespace

ValidationReport Validate(const CollectiveRun& run) {
  HappensBefore result = CheckHappensBefore(run.table);
  ValidationReport report;
  report.set_instances(result.instances);
  report.set_checked(result.checked);
  report.set_violations(static_cast<int64_t>(result.violations.size()));
  report.set_unmatched(result.unmatched);
  std::stable_sort(result.violations.begin(), result.violations.end(),
                   [](const Violation& a, const Violation& b) { return a.gap_ps > b.gap_ps; });
  for (const Violation& violation : result.violations) {
    if (report.details_size() == kMaxViolationDetails) break;
    *report.add_details() = Describe(run.table, violation);
  }
  DescribeTraces(run, &report);
  report.set_run_method(std::string(RunMethodName(run.runs.method)));
  for (const std::string& note : run.ranks.notes) report.add_notes(note);
  for (const std::string& note : run.runs.notes) report.add_notes(note);
  return report;
}

std::string FormatValidation(const ValidationReport& report) {
  std::string out = absl::StrCat(WithThousands(report.violations()), " violation(s) in ",
                                 WithThousands(report.checked()), " checked of ",
                                 WithThousands(report.instances()), " collectives; ",
                                 WithThousands(report.unmatched()),
                                 " unmatched; executions matched by ", report.run_method(), "\n\n");
  TextTable traces({"trace", "ranks", ">collectives"});
  for (const ValidatedTrace& trace : report.traces()) {
    traces.AddRow(
        {trace.trace(), absl::StrJoin(trace.ranks(), ","), WithThousands(trace.collectives())});
  }
  absl::StrAppend(&out, traces.ToString());
  for (const std::string& note : report.notes()) absl::StrAppend(&out, Printable(note), "\n");
  for (const ValidatedTrace& trace : report.traces()) {
    for (const std::string& text : trace.unresolved()) {
      absl::StrAppend(&out, Printable(absl::StrCat(trace.trace(), ": ", text)), "\n");
    }
  }
  if (report.details_size() == 0) return out;
  constexpr int kShown = 20;
  TextTable details({">ended", ">before", ">by us", "collective"});
  for (int i = 0; i < std::min(kShown, report.details_size()); ++i) {
    const ViolationReport& violation = report.details(i);
    details.AddRow(
        {absl::StrCat("rank ", violation.ended_rank()),
         absl::StrCat("rank ", violation.started_rank()),
         absl::StrFormat("%.3f", violation.gap_ns() / 1e3),
         absl::StrCat(violation.kind(), " ", violation.instruction(), " of ", violation.module())});
  }
  absl::StrAppend(&out, "\n", details.ToString());
  if (report.violations() > kShown) {
    absl::StrAppend(&out, "... and ", WithThousands(report.violations() - kShown), " more\n");
  }
  return out;
}

std::string ValidationCsv(const ValidationReport& report) {
  std::string out =
      "kind,module,instruction,group,ended_rank,started_rank,gap_ns,ended_correlation_id,"
      "started_correlation_id\n";
  for (const ViolationReport& violation : report.details()) {
    absl::StrAppend(&out, violation.kind(), ",", CsvField(violation.module()), ",",
                    CsvField(violation.instruction()), ",\"", absl::StrJoin(violation.group(), " "),
                    "\",", violation.ended_rank(), ",", violation.started_rank(), ",",
                    absl::StrFormat("%.3f", violation.gap_ns()), ",",
                    violation.ended_correlation_id(), ",", violation.started_correlation_id(),
                    "\n");
  }
  return out;
}

}  // namespace meridian
