#include "xla_profiler/inspect/xspace_inspector.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/combined_profile.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr int64_t kEventsPerProgress = 1 << 14;

// Names and groups are as long as their writer likes; a table is not.
constexpr size_t kMaxNameCharacters = 96;
constexpr size_t kMaxGroupsCharacters = 60;

std::string GroupsText(const CollectiveOp& op) {
  if (op.pairs.size() > kMaxGroupsCharacters) return absl::StrCat(op.pairs.size(), " pairs");
  if (op.groups.ids().size() > kMaxGroupsCharacters) {
    return absl::StrCat(op.groups.size(), " groups of ", op.groups[0].size());
  }
  std::string text = ToString(op.groups);
  for (const SourceTargetPair& pair : op.pairs) {
    absl::StrAppend(&text, text.empty() ? "" : ",", pair.source, "->", pair.target);
  }
  return FirstCharacters(text, kMaxGroupsCharacters);
}

// Adds the collectives, those of equal kind, size and groups together, and what could not be
// resolved.
absl::Status AddCollectives(const XSpaceReader& reader, XSpaceReport* report) {
  XSpaceCollectivesOptions options;
  // Durations and counts need no absolute time.
  if (!report->has_profile_start_ns()) options.profile_start_ns = 0;
  std::map<std::tuple<CollectiveKind, int64_t, std::string>, CollectiveReport> rows;
  std::map<std::string, UnresolvedReport> unresolved;
  const auto add = [&](const XSpaceReader& profile_reader) -> absl::Status {
    ASSIGN_OR_RETURN(const ProfileCollectives profile,
                     ReadXSpaceCollectives(profile_reader, options));
    std::vector<CollectiveReport*> rows_of_ops;
    for (const CollectiveOp& op : profile.ops) {
      rows_of_ops.push_back(&rows[{op.kind, op.operand_bytes, GroupsText(op)}]);
    }
    for (const CollectiveEvent& event : profile.events) {
      CollectiveReport& row = *rows_of_ops[event.op];
      row.set_events(row.events() + 1);
      // Pieces far apart may span more than 2^63 ps.
      row.set_total_duration_ps(
          SaturateToInt64(absl::int128(row.total_duration_ps()) +
                          Timespan::FromEndPoints(event.start_ps, event.end_ps).duration_ps()));
    }
    for (const auto& [reason, entry] : profile.unresolved.entries()) {
      UnresolvedReport& sum = unresolved[reason];
      if (sum.count() == 0) sum.set_example(entry.example);
      sum.set_count(sum.count() + entry.count);
    }
    return absl::OkStatus();
  };
  // Ids of a combined profile are those of its nodes.
  ASSIGN_OR_RETURN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
  for (const NodeProfile& node : nodes) RETURN_IF_ERROR(add(node.reader));
  if (nodes.empty()) RETURN_IF_ERROR(add(reader));
  for (auto& [key, row] : rows) {
    if (row.events() == 0) continue;
    row.set_kind(std::string(CollectiveKindName(std::get<0>(key))));
    row.set_operand_bytes(std::get<1>(key));
    row.set_groups(std::get<2>(key));
    *report->add_collectives() = std::move(row);
  }
  std::stable_sort(report->mutable_collectives()->begin(), report->mutable_collectives()->end(),
                   [](const CollectiveReport& a, const CollectiveReport& b) {
                     return a.total_duration_ps() > b.total_duration_ps();
                   });
  for (auto& [reason, row] : unresolved) {
    row.set_reason(reason);
    *report->add_unresolved() = std::move(row);
  }
  return absl::OkStatus();
}

absl::Status DescribeSession(const XSpaceReader& reader, XSpaceReport* report) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  report->set_trace(reader.path());
  report->set_bytes(reader.source().bytes.size());
  for (const std::string& hostname : info.hostnames) report->add_hostnames(hostname);
  if (info.profile_start_ns.has_value()) report->set_profile_start_ns(*info.profile_start_ns);
  if (info.profile_stop_ns.has_value()) report->set_profile_stop_ns(*info.profile_stop_ns);
  for (absl::string_view text : reader.layout().errors) report->add_errors(std::string(text));
  for (absl::string_view text : reader.layout().warnings) report->add_warnings(std::string(text));
  if (!info.profile_start_ns.has_value()) {
    report->add_notes(
        "no profile_start_time: times are known only relative to the session's start");
  }
  return absl::OkStatus();
}

absl::Status DescribeLine(const XPlaneVisitor& plane, const XLineVisitor& line,
                          absl::FunctionRef<void(uint64_t)> count_event, LineReport* out) {
  out->set_id(line.Id());
  out->set_name(std::string(line.Name()));
  out->set_display_name(std::string(line.DisplayName()));
  out->set_clock_domain(std::string(ClockDomainName(ClockDomainOf(plane.Name(), line.Name()))));
  out->set_events(line.NumEvents());
  const absl::int128 base_ps = absl::int128(line.TimestampNs()) * kPsPerNs;
  return line.ForEachEvent([&](const XEventVisitor& event) {
    count_event(event.FileOffset());
    if (event.IsAggregatedEvent()) return;
    // A report may not fail on an absurd time: it shows the nearest that fits.
    const absl::int128 start_ps = base_ps + event.OffsetPs();
    const int64_t shown_start_ps = SaturateToInt64(start_ps);
    const int64_t end_ps = SaturateToInt64(start_ps + std::max<int64_t>(0, event.DurationPs()));
    const bool is_first = !out->has_first_start_ps();
    if (is_first || shown_start_ps < out->first_start_ps()) out->set_first_start_ps(shown_start_ps);
    if (is_first || end_ps > out->last_end_ps()) out->set_last_end_ps(end_ps);
  });
}

void AddTotals(XSpaceReport* report) {
  ClockDomainReport* domains[2];
  for (ClockDomain domain : {ClockDomain::kHost, ClockDomain::kTracer}) {
    domains[static_cast<int>(domain)] = report->add_clock_domains();
    domains[static_cast<int>(domain)]->set_name(std::string(ClockDomainName(domain)));
  }
  for (PlaneReport& plane : *report->mutable_planes()) {
    for (const LineReport& line : plane.lines()) {
      ClockDomainReport& domain = *domains[line.clock_domain() == domains[1]->name() ? 1 : 0];
      domain.set_lines(domain.lines() + 1);
      domain.set_events(domain.events() + line.events());
      plane.set_events(plane.events() + line.events());
    }
    report->set_lines(report->lines() + plane.lines_size());
    report->set_events(report->events() + plane.events());
  }
}

std::string UtcTime(int64_t unix_ns) {
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%E9S", absl::FromUnixNanos(unix_ns), absl::UTCTimeZone()),
      " UTC");
}

std::string Shorten(const std::string& name) { return FirstCharacters(name, kMaxNameCharacters); }

std::string HeaderText(const XSpaceReport& report) {
  std::string out;
  const auto row = [&out](absl::string_view title, absl::string_view text) {
    absl::StrAppend(&out, title, std::string(10 - title.size(), ' '), Printable(text), "\n");
  };
  row("trace", report.trace());
  row("size", absl::StrCat(WithThousands(report.bytes()), " bytes"));
  const std::set<std::string> hosts(report.hostnames().begin(), report.hostnames().end());
  if (!hosts.empty()) row("host", Shorten(absl::StrJoin(hosts, ", ")));
  if (report.has_profile_start_ns()) row("start", UtcTime(report.profile_start_ns()));
  if (report.has_profile_stop_ns()) row("stop", UtcTime(report.profile_stop_ns()));
  for (const std::string& text : report.errors()) row("error", text);
  for (const std::string& text : report.warnings()) row("warning", text);
  for (const std::string& text : report.notes()) row("note", text);
  return out;
}

// Returns the collectives as text for people; empty when there are none.
std::string CollectivesText(const XSpaceReport& report) {
  std::string out;
  if (report.collectives_size() > 0) {
    TextTable table({"collective", ">bytes", "groups", ">events", ">total ms"});
    for (const CollectiveReport& row : report.collectives()) {
      table.AddRow({row.kind(), WithThousands(row.operand_bytes()), row.groups(),
                    WithThousands(row.events()), FormatMillis(row.total_duration_ps(), 6)});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  if (report.unresolved_size() > 0) {
    TextTable table({"not resolved", ">count", "first example"});
    for (const UnresolvedReport& row : report.unresolved()) {
      table.AddRow({row.reason(), WithThousands(row.count()), Shorten(row.example())});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  return out;
}

}  // namespace

absl::StatusOr<XSpaceReport> InspectXSpace(const XSpaceReader& reader,
                                           std::function<void(uint64_t offset)> progress) {
  XSpaceReport report;
  RETURN_IF_ERROR(DescribeSession(reader, &report));
  int64_t events_seen = 0;
  const auto count_event = [&](uint64_t offset) {
    if (++events_seen % kEventsPerProgress == 0 && progress != nullptr) progress(offset);
  };
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    PlaneReport* out = report.add_planes();
    out->set_name(std::string(plane.Name()));
    return plane.ForEachLine([&](const XLineVisitor& line) {
      return DescribeLine(plane, line, count_event, out->add_lines());
    });
  }));
  AddTotals(&report);
  RETURN_IF_ERROR(AddCollectives(reader, &report));
  return report;
}

std::string FormatReport(const XSpaceReport& report) {
  TextTable table({"plane / line", "clock", ">events", ">first ms", ">last ms"});
  for (const PlaneReport& plane : report.planes()) {
    table.AddRow({plane.name().empty() ? "(no name)" : Shorten(plane.name()), "",
                  WithThousands(plane.events()), "", ""});
    for (const LineReport& line : plane.lines()) {
      const bool timed = line.has_first_start_ps();
      table.AddRow({absl::StrCat("  ", line.display_name().empty() ? absl::StrCat("#", line.id())
                                                                   : Shorten(line.display_name())),
                    line.clock_domain(), WithThousands(line.events()),
                    timed ? FormatMillis(line.first_start_ps()) : "",
                    timed ? FormatMillis(line.last_end_ps()) : ""});
    }
  }
  table.AddRow({"total", "", WithThousands(report.events()), "", ""});
  return absl::StrCat(HeaderText(report), "\n", table.ToString(), CollectivesText(report));
}

}  // namespace meridian
