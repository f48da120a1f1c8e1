#include "xla_profiler/inspect/xspace_inspector.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
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
constexpr TextTable::Align kRight = TextTable::Align::kRight;

constexpr size_t kMaxGroupsText = 200;

// Groups can name millions: only as many are written as are shown.
std::string GroupsText(const CollectiveOp& op) {
  std::string text;
  if (HasPairs(op.kind)) {
    for (const SourceTargetPair& pair : op.pairs) {
      if (text.size() > kMaxGroupsText) break;
      absl::StrAppend(&text, text.empty() ? "" : ",", pair.source, "->", pair.target);
    }
  }
  for (size_t g = 0; g < op.groups.size() && text.size() <= kMaxGroupsText; ++g) {
    const absl::Span<const int64_t> group = op.groups[g];
    const size_t shown = std::min(group.size(), kMaxGroupsText);
    absl::StrAppend(&text, text.empty() ? "{" : ",{", absl::StrJoin(group.subspan(0, shown), ","),
                    shown < group.size() ? ",..." : "", "}");
  }
  return FirstCharacters(text, kMaxGroupsText);
}

// Sums up the collectives of equal kind, size and groups.
class CollectiveSummary {
 public:
  void Add(const ProfileCollectives& profile) {
    std::vector<Row*> rows_of_ops;
    std::vector<bool> has_events(profile.ops.size());
    for (const CollectiveOp& op : profile.ops) {
      rows_of_ops.push_back(&rows_[{op.kind, op.operand_bytes, GroupsText(op)}]);
    }
    for (const CollectiveEvent& event : profile.events) {
      Add(event, rows_of_ops[event.op]);
      has_events[event.op] = true;
    }
    for (size_t i = 0; i < profile.ops.size(); ++i) {
      const CollectiveOp& op = profile.ops[i];
      if (has_events[i]) rows_of_ops[i]->instructions.insert({op.module, op.instruction});
    }
  }

  void Write(XSpaceReport* report) const {
    for (const auto& [key, row] : rows_) {
      if (row.events == 0) continue;
      CollectiveReport* out = report->add_collectives();
      out->set_kind(std::string(CollectiveKindName(std::get<0>(key))));
      out->set_operand_bytes(std::get<1>(key));
      out->set_groups(std::get<2>(key));
      out->set_instructions(static_cast<int64_t>(row.instructions.size()));
      out->set_events(row.events);
      out->set_events_without_run(row.without_run);
      out->set_total_duration_ps(row.total_ps);
      out->set_shortest_duration_ps(row.shortest_ps);
    }
    std::stable_sort(report->mutable_collectives()->begin(), report->mutable_collectives()->end(),
                     [](const CollectiveReport& a, const CollectiveReport& b) {
                       return a.total_duration_ps() > b.total_duration_ps();
                     });
  }

 private:
  struct Row {
    std::set<std::pair<std::string, std::string>> instructions;
    int64_t events = 0;
    int64_t without_run = 0;
    int64_t total_ps = 0;
    int64_t shortest_ps = 0;
  };

  static void Add(const CollectiveEvent& event, Row* to) {
    Row& row = *to;
    // Pieces far apart may span more than 2^63 ps.
    const int64_t duration_ps = Timespan::FromEndPoints(event.start_ps, event.end_ps).duration_ps();
    row.shortest_ps = row.events == 0 ? duration_ps : std::min(row.shortest_ps, duration_ps);
    row.total_ps = SaturateToInt64(absl::int128(row.total_ps) + duration_ps);
    ++row.events;
    if (!event.run_id.has_value()) ++row.without_run;
  }

  // By kind, operand bytes and groups; rows keep their address.
  std::map<std::tuple<CollectiveKind, int64_t, std::string>, Row> rows_;
};

// The node is that of a combined profile, in which several devices may have one name.
void WriteDevices(const ProfileCollectives& profile, std::optional<int64_t> node,
                  XSpaceReport* report) {
  // One profile tells ranks only for devices whose id it tells.
  const std::vector<int64_t>& ids = profile.assigned_devices;
  for (const LocalDevice& device : profile.devices) {
    DeviceReport* out = report->add_devices();
    out->set_name(node.has_value() ? absl::StrCat("Node ", *node, ": ", device.name) : device.name);
    out->set_source(std::string(DeviceIdSourceName(device.source)));
    if (device.global_id == kUnknownId) continue;
    out->set_global_id(device.global_id);
    const auto it = std::lower_bound(ids.begin(), ids.end(), device.global_id);
    if (it != ids.end() && *it == device.global_id) out->set_rank(it - ids.begin());
  }
}

// Adds devices, collectives and what could not be resolved.
absl::Status AddCollectives(const XSpaceReader& reader, XSpaceReport* report) {
  XSpaceCollectivesOptions options;
  // Durations and counts need no absolute time.
  if (!report->has_profile_start_ns()) options.profile_start_ns = 0;
  CollectiveSummary summary;
  std::map<std::string, UnresolvedCounts::Entry> unresolved;
  const auto add = [&](const XSpaceReader& profile_reader,
                       std::optional<int64_t> node) -> absl::Status {
    ASSIGN_OR_RETURN(const ProfileCollectives profile,
                     ReadXSpaceCollectives(profile_reader, options));
    if (!profile.events.empty()) WriteDevices(profile, node, report);
    summary.Add(profile);
    for (const auto& [reason, entry] : profile.unresolved.entries()) {
      UnresolvedCounts::Entry& sum = unresolved[reason];
      if (sum.count == 0) sum.example = entry.example;
      sum.count += entry.count;
    }
    return absl::OkStatus();
  };
  // Ids of a combined profile are those of its nodes.
  ASSIGN_OR_RETURN(const std::vector<NodeProfile> nodes, SplitCombinedProfile(reader));
  for (const NodeProfile& node : nodes) RETURN_IF_ERROR(add(node.reader, node.node_id));
  if (nodes.empty()) RETURN_IF_ERROR(add(reader, std::nullopt));
  summary.Write(report);
  for (const auto& [reason, entry] : unresolved) {
    UnresolvedReport* out = report->add_unresolved();
    out->set_reason(reason);
    out->set_count(entry.count);
    out->set_example(entry.example);
  }
  return absl::OkStatus();
}

// Things that are legal but make a reader wonder.
struct Oddities {
  int64_t negative_durations = 0;
  int64_t negative_offsets = 0;
  int64_t unordered_lines = 0;
  int64_t saturated_lines = 0;
};

class Inspector {
 public:
  Inspector(const XSpaceReader& reader, const InspectOptions& options)
      : reader_(reader), options_(options) {}

  absl::StatusOr<XSpaceReport> Run() {
    DescribeFile();
    RETURN_IF_ERROR(DescribeSession());
    RETURN_IF_ERROR(
        reader_.ForEachPlane([this](const XPlaneVisitor& plane) { return DescribePlane(plane); }));
    AddTotals();
    AddNotes();
    RETURN_IF_ERROR(AddCollectives(reader_, &report_));
    return std::move(report_);
  }

 private:
  void DescribeFile() {
    report_.set_trace(reader_.path());
    report_.set_bytes(reader_.source().bytes.size());
    if (reader_.file() == nullptr) return;
    report_.set_file_bytes(reader_.file()->file_size());
    report_.set_compressed(reader_.file()->was_compressed());
  }

  absl::Status DescribeSession() {
    ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader_));
    for (const std::string& hostname : info.hostnames) report_.add_hostnames(hostname);
    if (info.process_id.has_value()) report_.set_process_id(*info.process_id);
    if (info.profile_start_ns.has_value()) report_.set_profile_start_ns(*info.profile_start_ns);
    if (info.profile_stop_ns.has_value()) report_.set_profile_stop_ns(*info.profile_stop_ns);
    for (const std::string& problem : info.problems) report_.add_notes(problem);
    for (absl::string_view text : reader_.layout().errors) report_.add_errors(std::string(text));
    for (absl::string_view text : reader_.layout().warnings) {
      report_.add_warnings(std::string(text));
    }
    return absl::OkStatus();
  }

  absl::Status DescribePlane(const XPlaneVisitor& plane) {
    PlaneReport* out = report_.add_planes();
    out->set_name(std::string(plane.Name()));
    out->set_id(plane.Id());
    out->set_event_metadata(plane.EventMetadata().size());
    out->set_stat_metadata(plane.StatMetadata().size());
    out->set_stats(plane.Stats().size());
    RETURN_IF_ERROR(plane.ForEachLine(
        [&](const XLineVisitor& line) { return DescribeLine(plane, line, out->add_lines()); }));
    int64_t events = 0;
    for (const LineReport& line : out->lines()) events += line.events();
    out->set_events(events);
    return absl::OkStatus();
  }

  absl::Status DescribeLine(const XPlaneVisitor& plane, const XLineVisitor& line, LineReport* out) {
    out->set_id(line.Id());
    out->set_name(std::string(line.Name()));
    out->set_display_name(std::string(line.DisplayName()));
    out->set_clock_domain(std::string(ClockDomainName(ClockDomainOf(plane.Name(), line.Name()))));
    out->set_timestamp_ns(line.TimestampNs());
    out->set_events(line.NumEvents());

    std::optional<int64_t> first_offset_ps, last_end_ps;
    int64_t previous_offset_ps = 0;
    bool ordered = true;
    bool saturated = false;
    RETURN_IF_ERROR(line.ForEachEvent([&](const XEventVisitor& event) {
      ReportProgress(event.FileOffset());
      if (event.DurationPs() < 0) ++oddities_.negative_durations;
      if (event.IsAggregatedEvent()) {
        out->set_aggregated_events(out->aggregated_events() + 1);
        return;
      }
      const int64_t offset_ps = event.OffsetPs();
      if (offset_ps < 0) ++oddities_.negative_offsets;
      if (first_offset_ps.has_value() && offset_ps < previous_offset_ps) ordered = false;
      previous_offset_ps = offset_ps;
      const absl::int128 end_ps =
          absl::int128(offset_ps) + std::max<int64_t>(0, event.DurationPs());
      first_offset_ps = std::min(first_offset_ps.value_or(offset_ps), offset_ps);
      last_end_ps = std::max(last_end_ps.value_or(offset_ps), Saturate(end_ps, &saturated));
    }));
    if (!ordered) ++oddities_.unordered_lines;
    if (first_offset_ps.has_value()) {
      const absl::int128 base_ps = absl::int128(line.TimestampNs()) * 1000;
      out->set_first_start_ps(Saturate(base_ps + *first_offset_ps, &saturated));
      out->set_last_end_ps(Saturate(base_ps + *last_end_ps, &saturated));
    }
    if (saturated) ++oddities_.saturated_lines;
    return absl::OkStatus();
  }

  void ReportProgress(uint64_t offset) {
    if (++events_seen_ % kEventsPerProgress == 0 && options_.progress) options_.progress(offset);
  }

  // A report may not fail on an absurd time: it shows the nearest that fits.
  static int64_t Saturate(absl::int128 value, bool* saturated) {
    const int64_t fitting = SaturateToInt64(value);
    if (fitting != value) *saturated = true;
    return fitting;
  }

  void AddTotals() {
    ClockDomainReport domains[2];
    for (ClockDomain domain : {ClockDomain::kHost, ClockDomain::kTracer}) {
      domains[static_cast<int>(domain)].set_name(std::string(ClockDomainName(domain)));
    }
    for (const PlaneReport& plane : report_.planes()) {
      report_.set_lines(report_.lines() + plane.lines_size());
      report_.set_events(report_.events() + plane.events());
      for (const LineReport& line : plane.lines()) {
        ClockDomainReport& domain = domains[line.clock_domain() == domains[1].name() ? 1 : 0];
        domain.set_lines(domain.lines() + 1);
        domain.set_events(domain.events() + line.events());
      }
    }
    for (ClockDomainReport& domain : domains) *report_.add_clock_domains() = std::move(domain);
  }

  void AddNotes() {
    if (!report_.has_profile_start_ns()) {
      report_.add_notes(
          "no profile_start_time: times are known only relative to the session's start");
    }
    AddCount(oddities_.unordered_lines, "line(s) whose events are not in order of their start");
    AddCount(oddities_.negative_offsets, "event(s) that start before the base of their line");
    AddCount(oddities_.saturated_lines,
             "line(s) whose times do not fit 64 bits; the nearest is shown");
    AddCount(oddities_.negative_durations, "event(s) of negative duration");
  }

  void AddCount(int64_t count, absl::string_view what) {
    if (count != 0) report_.add_notes(absl::StrCat(WithThousands(count), " ", what));
  }

  const XSpaceReader& reader_;
  const InspectOptions& options_;
  XSpaceReport report_;
  Oddities oddities_;
  int64_t events_seen_ = 0;
};

std::string UtcTime(int64_t unix_ns) {
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%E9S", absl::FromUnixNanos(unix_ns), absl::UTCTimeZone()),
      " UTC");
}

// Names are as long as their writer likes; a table is not.
std::string Shorten(const std::string& name) {
  constexpr size_t kMaxCharacters = 96;
  return FirstCharacters(name, kMaxCharacters);
}

void AppendHeader(const XSpaceReport& report, std::string* out) {
  const auto row = [out](absl::string_view title, absl::string_view text) {
    absl::StrAppend(out, title, std::string(10 - title.size(), ' '), Printable(text), "\n");
  };
  row("trace", report.trace());
  row("size",
      absl::StrCat(WithThousands(report.bytes()), " bytes",
                   report.compressed()
                       ? absl::StrCat(" (", WithThousands(report.file_bytes()), " compressed)")
                       : ""));
  const std::set<std::string> hosts(report.hostnames().begin(), report.hostnames().end());
  if (!hosts.empty()) row("host", Shorten(absl::StrJoin(hosts, ", ")));
  if (report.has_process_id()) row("process", absl::StrCat(report.process_id()));
  if (report.has_profile_start_ns()) row("start", UtcTime(report.profile_start_ns()));
  if (report.has_profile_stop_ns()) row("stop", UtcTime(report.profile_stop_ns()));
  for (const std::string& text : report.errors()) row("error", text);
  for (const std::string& text : report.warnings()) row("warning", text);
  for (const std::string& text : report.notes()) row("note", text);
}

std::string Optional(bool known, int64_t number) { return known ? absl::StrCat(number) : "?"; }

// Returns the collectives as text for people; empty when there are none.
std::string FormatCollectives(const XSpaceReport& report) {
  std::string out;
  constexpr size_t kMaxWidth = 60;
  if (report.devices_size() > 0) {
    TextTable table({{"device"}, {"global id", kRight}, {"rank", kRight}, {"known by"}});
    for (const DeviceReport& device : report.devices()) {
      table.AddRow({device.name(), Optional(device.has_global_id(), device.global_id()),
                    Optional(device.has_rank(), device.rank()), device.source()});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  if (report.collectives_size() > 0) {
    TextTable table({{"collective"},
                     {"bytes", kRight},
                     {"groups"},
                     {"ops", kRight},
                     {"events", kRight},
                     {"no run", kRight},
                     {"total ms", kRight},
                     {"shortest ms", kRight}});
    for (const CollectiveReport& row : report.collectives()) {
      table.AddRow({row.kind(), WithThousands(row.operand_bytes()),
                    FirstCharacters(row.groups(), kMaxWidth), WithThousands(row.instructions()),
                    WithThousands(row.events()), WithThousands(row.events_without_run()),
                    FormatMillis(row.total_duration_ps(), 6),
                    FormatMillis(row.shortest_duration_ps(), 6)});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  if (report.unresolved_size() > 0) {
    TextTable table({{"not resolved"}, {"count", kRight}, {"first example"}});
    for (const UnresolvedReport& row : report.unresolved()) {
      table.AddRow(
          {row.reason(), WithThousands(row.count()), FirstCharacters(row.example(), kMaxWidth)});
    }
    absl::StrAppend(&out, "\n", table.ToString());
  }
  return out;
}

}  // namespace

absl::StatusOr<XSpaceReport> InspectXSpace(const XSpaceReader& reader,
                                           const InspectOptions& options) {
  return Inspector(reader, options).Run();
}

std::string FormatReport(const XSpaceReport& report) {
  std::string out;
  AppendHeader(report, &out);
  TextTable table({{"plane / line"},
                   {"clock"},
                   {"events", kRight},
                   {"event names", kRight},
                   {"stat names", kRight},
                   {"first ms", kRight},
                   {"last ms", kRight}});
  for (const PlaneReport& plane : report.planes()) {
    table.AddRow({plane.name().empty() ? "(no name)" : Shorten(plane.name()), "",
                  WithThousands(plane.events()), WithThousands(plane.event_metadata()),
                  WithThousands(plane.stat_metadata()), "", ""});
    for (const LineReport& line : plane.lines()) {
      const bool timed = line.has_first_start_ps();
      table.AddRow({absl::StrCat("  ", line.display_name().empty() ? absl::StrCat("#", line.id())
                                                                   : Shorten(line.display_name())),
                    line.clock_domain(), WithThousands(line.events()), "", "",
                    timed ? FormatMillis(line.first_start_ps()) : "",
                    timed ? FormatMillis(line.last_end_ps()) : ""});
    }
  }
  table.AddRow({"total", "", WithThousands(report.events()), "", "", "", ""});
  absl::StrAppend(&out, "\n", table.ToString(), FormatCollectives(report));
  return out;
}

}  // namespace meridian
